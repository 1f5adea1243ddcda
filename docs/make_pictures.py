"""Draw the pictures of docs/plots.md into docs/_static."""

from pathlib import Path

import matplotlib

from shufflebounds import compare, shuffle

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "shufflebounds"
STATIC = Path(__file__).with_name("_static")


def main() -> None:
    """Draw them."""
    profiles = compare(*(shuffle.StrongerClones(users, local_eps=2.0) for users in (10**3, 10**4, 10**5, 10**6)), kind="profile")
    tradeoffs = compare(*(shuffle.ShuffledBits.boolean_sum(users=100, lam=lam) for lam in (2, 5, 15, 50)))
    for name, ax in (("profiles", profiles), ("tradeoffs", tradeoffs)):
        ax.figure.savefig(STATIC / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
