"""What the command knows of every mechanism: its constructor, its options, its calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from shufflebounds import mechanisms, shuffle
from shufflebounds.profile import PrivacyProfile

__all__ = ["MECHANISMS", "WORDS", "Mechanism"]


@dataclass(frozen=True)
class Mechanism:
    """How the command builds one mechanism: its constructor and what each of its options means."""

    build: type[PrivacyProfile]
    options: dict[str, str]
    defaults: dict[str, Any]
    calibrate: Callable[..., PrivacyProfile] | None = None
    renamed: dict[str, str] = field(default_factory=dict)
    """The constructor's names of options that are called otherwise, as `--eps` is the question."""

    def make(self, given: dict[str, Any]) -> PrivacyProfile:
        """Return the profile with the given options."""
        try:
            return self.build(**{self.renamed.get(name, name): value for name, value in given.items()})
        except ValueError as problem:
            for option, name in self.renamed.items():
                if str(problem).startswith(f"{name}="):
                    raise ValueError(str(problem).replace(name, option, 1)) from None
            raise

    def required(self, name: str) -> bool:
        """Return whether the option must be given."""
        return name not in self.defaults


USERS, BINS, GAMMA = "number of users", "number of bins", "chance of a zero noise bit"

MECHANISMS: dict[str, Mechanism] = {
    "stronger-clones": Mechanism(
        shuffle.StrongerClones,
        {"users": "number of users", "local_eps": "local budget of every user, in nats"},
        {},
    ),
    "clones": Mechanism(
        shuffle.Clones,
        {"users": "number of users", "local_eps": "local budget of every user, in nats"},
        {},
    ),
    "binomial-noise": Mechanism(
        shuffle.BinomialNoise,
        {"trials": "number of noise bits", "prob": "chance of a one among them"},
        {"prob": 0.5},
        shuffle.BinomialNoise.calibrate,
    ),
    "shuffled-bits": Mechanism(
        shuffle.ShuffledBits,
        {"users": "number of users", "flip": "probability of flipping a bit", "ones": "how many others hold 1, or worst"},
        {"ones": "worst"},
        shuffle.ShuffledBits.calibrate,
    ),
    "real-sum": Mechanism(
        shuffle.RealSum,
        {"users": USERS, "lam": "random bits expected in a column", "bits": "bits a user", "view": "total or columns"},
        {"view": "total"},
        shuffle.RealSum.calibrate,
    ),
    "clear-reports": Mechanism(
        shuffle.ClearReports, {"fakes": "number of fake reports", "bins": BINS}, {}, shuffle.ClearReports.calibrate
    ),
    "flipped-reports": Mechanism(
        shuffle.FlippedReports,
        {
            "users": USERS,
            "fakes": "number of fake reports",
            "bins": BINS,
            "flip": "probability of flipping a bit",
            "view": "what the analyst sees: sums or records",
            "fake": "bins of the fakes: uniform or known",
        },
        {"fakes": 0, "fake": "uniform"},
        shuffle.FlippedReports.calibrate,
    ),
    "zero-sum": Mechanism(shuffle.ZeroSum, {"users": USERS, "gamma": GAMMA}, {}, shuffle.ZeroSum.calibrate),
    "histogram": Mechanism(
        shuffle.ShuffledHistogram, {"users": USERS, "bins": BINS, "gamma": GAMMA}, {}, shuffle.ShuffledHistogram.calibrate
    ),
    "randomized-response": Mechanism(
        mechanisms.RandomizedResponse,
        {"budget": "the mechanism's own eps, in nats", "upper": "largest value"},
        {"upper": 1.0},
        renamed={"budget": "eps"},
    ),
    "laplace": Mechanism(
        mechanisms.LaplaceMechanism,
        {"scale": "scale of the noise", "sensitivity": "the most by which neighbouring values differ"},
        {"sensitivity": 1.0},
        mechanisms.LaplaceMechanism.from_eps,
    ),
    "gaussian": Mechanism(
        mechanisms.GaussianMechanism,
        {"sigma": "standard deviation of the noise", "sensitivity": "the most by which neighbouring values differ"},
        {"sensitivity": 1.0},
        mechanisms.GaussianMechanism.from_dp,
    ),
    "geometric": Mechanism(
        mechanisms.GeometricMechanism,
        {
            "budget": "the noise's own eps without truncation, in nats",
            "sensitivity": "the most by which neighbouring whole numbers differ",
            "bound": "largest size of the noise",
        },
        {"sensitivity": 1, "bound": None},
        mechanisms.GeometricMechanism.from_dp,
        renamed={"budget": "eps"},
    ),
    "discrete-gaussian": Mechanism(
        mechanisms.DiscreteGaussianMechanism,
        {"sigma": "parameter of the noise", "sensitivity": "the most by which neighbouring whole numbers differ"},
        {"sensitivity": 1},
    ),
    "rappor": Mechanism(
        mechanisms.Rappor,
        {
            "f": "share of permanent noise",
            "p": "chance of a one where the permanent bit is 1",
            "q": "chance of a one where it is 0",
            "hashes": "bits that a value sets",
            "bits": "bits of the filter",
        },
        {"p": 1.0, "q": 0.0, "hashes": 1, "bits": None},
    ),
}

WORDS = {"ones": ("worst",), "view": ("total", "columns", "sums", "records"), "fake": ("uniform", "known")}
"""Options that take words, beside numbers or alone."""
