"""Two million clients in parts: one histogram from blocks of a dask array, or from a pool of processes that is killed once.

The clients are drawn with replacement from the RAND Health Insurance Experiment, which statsmodels contains
(``pip install 'shufflebounds[examples]' 'dask[array]'``): the number of visits to a doctor in a year, 20 standing for 20 or more.
Each part of the clients is randomized with a seed of its own and counted; only the counts of 21 bins leave it. The sum of
the counts gives one estimate, whose error is compared with the stated quantile::

    python examples/two_million_clients.py
    python examples/two_million_clients.py --protocol kary-response --runs 20

In a deployment the messages of all parts go through one shuffler, or the counts are added by secure aggregation. The counts of a
part are not protected as well as their sum.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from shufflebounds.mechanisms import KaryResponse
from shufflebounds.shuffle import ClearReports, FlippedReports, Shuffled, ShuffledHistogram

USERS, BINS, PARTS = 2_000_000, 21, 8
TARGET = {"eps": 1.0, "delta": 1e-9}

PROTOCOLS = {
    "clear-reports": lambda: ClearReports.calibrate(bins=BINS, **TARGET),
    "histogram": lambda: ShuffledHistogram.calibrate(users=USERS, bins=BINS, **TARGET),
    "flipped-reports": lambda: FlippedReports.calibrate(users=USERS, bins=BINS, view="sums", **TARGET),
    "kary-response": lambda: Shuffled.calibrate(partial(KaryResponse, BINS), users=USERS, **TARGET).randomizer,
}


def clients(seed=0):
    """Return the bins of all clients."""
    from statsmodels.datasets import randhie

    visits = randhie.load_pandas().data["mdvis"].to_numpy().astype(np.int64)
    return np.random.default_rng(seed).choice(np.minimum(visits, BINS - 1), USERS)


def seeds(run):
    """Return a seed for each part, and one for the dummy reports."""
    *parts, last = np.random.SeedSequence(run).spawn(PARTS + 1)
    return parts, last


def counts_of(protocol, values, seed):
    """Randomize the values of a part, and return the counts of its messages."""
    return protocol.aggregate(protocol.randomize(values, rng=seed))


def with_dask(protocol, values, run):
    """Return the counts of all messages, each block of a dask array counted where it lies."""
    import dask
    import dask.array as da

    parts, last = seeds(run)
    blocks = da.from_array(values, chunks=-(-len(values) // PARTS)).to_delayed()
    counts = [dask.delayed(counts_of)(protocol, block, seed) for block, seed in zip(blocks, parts)]
    return dask.delayed(sum)(counts).compute() + protocol.aggregate(protocol.dummies(last))


def from_file(task, protocol, path, part, seed):
    """Count one part of the values in a file by `task`."""
    return task(protocol, np.array_split(np.load(path, mmap_mode="r"), PARTS)[part], seed)


def with_processes(protocol, values, run, workers=2, task=counts_of):
    """Return the same counts from a pool of processes. Parts whose process is killed are repeated.

    A repeated part has the same seed, and its counts enter the sum once: the result is that of a run without the accident. Nothing
    of the failed attempt may have been sent. The processes read the values from a file: before Python 3.12 a pool whose process is
    killed waits forever if the arguments of a call are larger than a pipe holds.
    """
    parts, last = seeds(run)
    waiting, counts = dict(enumerate(parts)), {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "values.npy"
        np.save(path, values)
        for _ in range(3):
            with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
                started = {part: pool.submit(from_file, task, protocol, path, part, seed) for part, seed in waiting.items()}
                for part, future in started.items():
                    try:
                        counts[part] = future.result()
                    except BrokenProcessPool:
                        continue
                    del waiting[part]
            if not waiting:
                return sum(counts.values()) + protocol.aggregate(protocol.dummies(last))
    raise RuntimeError(f"the processes of the parts {sorted(waiting)} ended three times")


def killed_once(protocol, values, seed, marker):
    """Count a part as `counts_of` does; the first process that comes here ends without a result."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return counts_of(protocol, values, seed)
    os._exit(1)


def main(arguments=None):
    """Calibrate the protocol, run it, and print the error of every run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--protocol", choices=PROTOCOLS, default="clear-reports", help="default clear-reports")
    parser.add_argument("--runs", type=int, default=3, help="number of simulated runs, default 3")
    given = parser.parse_args(arguments)
    values = clients()
    truth = np.bincount(values, minlength=BINS)
    protocol = PROTOCOLS[given.protocol]()
    quantiles = [protocol.error_quantile(0.05, data, users=USERS, of="any") for data in (truth, None)]
    print(protocol)
    known, other = (f"{quantile:.1f}" for quantile in quantiles)
    print(f"the largest error of {BINS} bins exceeds {known} with these data, {other} with any data, in at most 5 %")
    for run in range(given.runs):
        counts = with_dask(protocol, values, run)
        error = np.abs(protocol.estimate(counts=counts, users=USERS) - truth).max()
        print(f"run {run}: largest error {error:.1f}")


if __name__ == "__main__":
    main()
