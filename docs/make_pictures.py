"""Draw the pictures of docs/sweeps.md into docs/_static."""

from pathlib import Path
from typing import Any

import matplotlib

from shufflebounds import compare, shuffle

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "shufflebounds"
STATIC = Path(__file__).with_name("_static")


def plots() -> dict[str, Any]:
    """Return the Axes of each picture by its name."""
    profiles = compare(*(shuffle.StrongerClones(users, local_eps=2.0) for users in (10**3, 10**4, 10**5, 10**6)), kind="profile")
    tradeoffs = compare(*(shuffle.ShuffledBits.boolean_sum(users=100, lam=lam) for lam in (2, 5, 15, 50)))
    return {"profiles": profiles, "tradeoffs": tradeoffs}


def main() -> None:
    """Draw them."""
    for name, ax in plots().items():
        ax.figure.savefig(STATIC / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
