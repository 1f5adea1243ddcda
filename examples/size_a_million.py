"""Compute eps of a million deployments of shuffled randomized response: every (users, local eps, delta) of a grid.

    python size_a_million.py                            a million rows, in as many threads as the machine has cores
    python size_a_million.py --side 10 --workers 2      a thousand rows, in two threads
    python size_a_million.py --save sizes.npz           keeps the table: numpy.load("sizes.npz")["table"]

After Ctrl-C the finished rows are summarised and saved.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

from shufflebounds import SweepInterrupted, shuffle, sweep


def grid(side: int, largest: float) -> dict[str, np.ndarray]:
    return {
        "users": np.unique(np.geomspace(1e3, largest, side).astype(np.int64)),
        "local_eps": np.linspace(0.1, 8, side),
        "delta": np.geomspace(1e-4, 1e-12, side),
    }


def summary(table: np.ndarray) -> str:
    """Return a table: for several numbers of users, the largest local eps for which eps is at most 1, and at most 0.1."""
    lines = [f"{'users':>12}  {'eps0 for eps <= 1':>18}  {'eps0 for eps <= 0.1':>20}   (smallest delta of the grid)"]
    strict = table[table["delta"] == table["delta"].min()]
    users = np.unique(strict["users"])
    for n in users[np.linspace(0, users.size - 1, min(users.size, 8)).astype(int)]:
        rows = strict[strict["users"] == n]
        cells = []
        for target in (1.0, 0.1):
            met = rows["local_eps"][rows["value"] <= target]
            cells.append(f"{met.max():.3g}" if met.size else "none")
        lines.append(f"{n:>12,}  {cells[0]:>18}  {cells[1]:>20}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Size a million deployments of shuffled randomized response.")
    parser.add_argument("--side", type=int, default=100, help="values of each parameter (default 100: a million rows)")
    parser.add_argument("--largest", type=float, default=1e7, help="largest number of users (default 1e7)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="threads (default: one a core)")
    parser.add_argument("--progress", action="store_true", help="show a bar (needs tqdm)")
    parser.add_argument("--save", type=Path, metavar="FILE.npz", help="write the table")
    arguments = parser.parse_args()
    axes = grid(arguments.side, arguments.largest)
    progress = True if arguments.progress else None
    started = time.perf_counter()
    try:
        # clones_epsilons is a function of arrays: it computes a batch of rows in one call and releases the interpreter lock.
        table = sweep(shuffle.clones_epsilons, axes, workers=arguments.workers, progress=progress, arrays=True)
    except SweepInterrupted as stop:
        print(f"interrupted: {stop.remaining.size:,} rows are left")
        table = stop.partial
    seconds = time.perf_counter() - started
    print(f"{table.size:,} deployments in {seconds:.1f} s, {1e3 * seconds / max(table.size, 1):.3f} ms each")
    if "value" in (table.dtype.names or ()):
        print(summary(table))
    if arguments.save:
        np.savez_compressed(arguments.save, table=table)


if __name__ == "__main__":
    main()
