"""Write budgets.csv: a thousand users for each of the four distributions of budgets in Liu et al. 2024, Table 1.

Uniform1 is U(0.05, 1), Uniform2 U(0.5, 2), Gauss1 N(0.8, 0.5) clipped to [0.05, 1], Gauss2 N(1.5, 0.5) clipped to [0.5, 2]
(the paper does not state whether 0.5 is the standard deviation or the variance; it is the standard deviation here). The columns are
law, the name of the distribution, and eps. The command reads the column eps only, so write one distribution or filter the file:

    python make_budgets.py                              writes budgets.csv, all four laws
    python make_budgets.py --law Uniform2 --users 10000 uniform2.csv
    shufflebounds personalized uniform2.csv --delta 1e-5 --randomizer bits
"""

import argparse
import csv
from pathlib import Path

import numpy as np

LAWS = {
    "Uniform1": lambda rng, n: rng.uniform(0.05, 1, n),
    "Uniform2": lambda rng, n: rng.uniform(0.5, 2, n),
    "Gauss1": lambda rng, n: np.clip(rng.normal(0.8, 0.5, n), 0.05, 1),
    "Gauss2": lambda rng, n: np.clip(rng.normal(1.5, 0.5, n), 0.5, 2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the budget laws of Liu et al. 2024, Table 1.")
    parser.add_argument("file", nargs="?", type=Path, default=Path(__file__).with_name("budgets.csv"))
    parser.add_argument("--law", choices=LAWS, action="append", help="one law only (may be repeated)")
    parser.add_argument("--users", type=int, default=1000, help="users a law (default 1000)")
    parser.add_argument("--seed", type=int, default=2024)
    arguments = parser.parse_args()
    with arguments.file.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["law", "eps"])
        for law in arguments.law or LAWS:
            # Each distribution has its own generator, so that its budgets do not depend on which other distributions are written.
            rng = np.random.default_rng([arguments.seed, list(LAWS).index(law)])
            writer.writerows([law, f"{eps:.6f}"] for eps in LAWS[law](rng, arguments.users))


if __name__ == "__main__":
    main()
