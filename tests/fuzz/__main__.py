"""Runs a fuzzing campaign of any length and prints counts and failures: ``python -m tests.fuzz hostile --seconds 3600``."""

import argparse
import signal
import time
import warnings

from tests.fuzz import (
    at_hand,
    certify,
    compositions,
    consistency,
    datasets,
    enumeration,
    hostile,
    monotone,
    protocols,
    shared_objects,
)


def main():
    # Random arguments may look like a user's mistake, about which the library warns.
    warnings.simplefilter("ignore", UserWarning)
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    campaigns = [
        "hostile", "enumeration", "compositions", "datasets", "protocols", "threads", "consistency", "monotone", "certify",
        "at_hand",
    ]
    parser.add_argument("which", choices=campaigns)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on (default 60)")
    parser.add_argument("--cases", type=int, default=None, help="how many cases at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=None, help="part of the names, or of the kinds (enumeration)")
    parser.add_argument("--record", action="store_true", help="certify: add the counts of each class to tests/fuzz/certified.json")
    parser.add_argument("--memory", type=float, default=3.0, help="hostile: GB of address space (default 3)")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds

    def late():
        return time.monotonic() > end

    if options.which == "enumeration":
        counts, found = enumeration.attack(options.seed, options.cases, late, options.only)
    elif options.which == "compositions":
        counts, found = compositions.attack(options.seed, options.cases, late)
    elif options.which == "datasets":
        counts, found = datasets.attack(options.seed, options.cases, late)
    elif options.which == "certify":
        counts, found = certify.attack(options.seed, options.cases, late, options.only)
        if options.record and not found:
            certify.record(counts, options.seed, options.seconds)
        counts = {f"{title}: {kind}": many for (title, kind), many in counts.items()}
    elif options.which == "protocols":
        counts, found = protocols.attack(options.seed, options.cases, late, options.only)
    elif options.which == "at_hand":
        counts, found = at_hand.attack(options.seed, options.cases, late, options.only)
    elif options.which in ("consistency", "monotone"):
        # A single call may take minutes; the alarm ends it.
        signal.signal(signal.SIGALRM, consistency.stop)
        signal.setitimer(signal.ITIMER_REAL, options.seconds)
        campaign = consistency if options.which == "consistency" else monotone
        counts, found = campaign.attack(options.seed, options.cases, late, options.only)
    elif options.which == "threads":
        counts, found = shared_objects.campaign(options.seed, options.seconds, options.only)
    else:
        import resource

        size = int(options.memory * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        counts, harm = hostile.campaign(options.seed, options.cases, late, only=options.only)
        found = [f"{kind}   {words}" for (_, kind), words in harm.items()]
    print(", ".join(f"{many} {name}" for name, many in sorted(counts.items())), f"{len(found)} findings", sep="; ", flush=True)
    for line in found:
        print(" ", line)
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
