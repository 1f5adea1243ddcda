r"""Attacks on one run with many canaries, each of which is part of the data with probability 1/2: exact p-values.

The theorem, its proof and the certificate for any profile are on the page docs/theorems/one-run-audit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import plotting
from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import explained
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGE_TABLE_SIZE, LARGEST_EXPONENT, SAME_LOG
from shufflebounds._base.progress import tick
from shufflebounds._base.scipy_functions import linprog
from shufflebounds._base.search import bracket
from shufflebounds._base.types import SLACK, ULP, FloatArray
from shufflebounds.audit.refuted import Claim, Refuted, largest_refuted, level_of, rounded_up
from shufflebounds.audit.two_samples import relation_given
from shufflebounds.tails import binom_logcdf, binom_logpmf, binom_logsf, poisson_binom_logcdf
from shufflebounds.tradeoff import Tradeoff

__all__ = ["OneRun", "canaries", "certificate", "log_success", "one_run"]

_BREAKPOINTS = 120
"""Largest number of values h of wrong guesses at which the linear program has a multiplier for each eps. Raised: longer run time,
which is about 0.1 s at this value. Lowered: larger p-values of profiles; at this value they are too large by a relative 1e-3."""

_MOST_EPS = 41
"""Number of eps whose multipliers form a certificate; for up to 40 guesses three times this number. Raised: longer run time.
Lowered: larger p-values."""

_ROUNDS = 14
"""Largest number of rounds in the search for the best single eps; each divides the interval by 7. Raised: longer run time if the
profile has a kink. Lowered: larger p-values of such profiles."""

_LEAST_P = 1e-6
"""Least p-value for which the linear program is solved, whose tolerance is an absolute 1e-9. If the best single eps gives a
smaller p-value, this p-value is the result."""


def log_success(right: int, guesses: int, canaries: int, eps: FloatArray, log_delta: FloatArray) -> FloatArray:
    """Return log P*, the log of the largest probability of at least `right` >= 1 right guesses.

    The maximum is over all (eps, delta)-differentially private mechanisms; P* is p in the docstring of :func:`one_run`. The code
    uses the tails of the number of wrong guesses, because 1 - q is accurate even if q = 1/(1 + e^-eps) rounds to 1.
    """
    wrong, most, small = float(guesses - right), float(guesses), (1 - 4 * ULP) / (1 + np.exp(np.minimum(eps, LARGEST_EXPONENT)))
    beta, rest, exactly = (np.asarray(f(wrong, most, small)) for f in (binom_logcdf, binom_logsf, binom_logpmf))
    with np.errstate(invalid="ignore"):
        # The errors of the logarithms `beta` and `exactly` are relative to their sizes, which may far exceed their difference. For
        # few wrong guesses, the ratio of two neighbouring probabilities is at most `step` < 1, and beta/b at most 1/(1 - step).
        step = wrong / (right + 1) * (1 - small) / small * (1 + SLACK)
        geometric = np.where(step < 1, -np.log1p(-step) + SLACK, np.inf)
        ratio = np.minimum(beta - exactly + SLACK * (np.abs(beta) + np.abs(exactly)), geometric)
        extra = log_delta + math.log(canaries / right) + rest + ratio
    return np.asarray(np.minimum(np.logaddexp(beta, np.where(np.isnan(extra), -np.inf, extra)), 0.0))


def certificate(multipliers: FloatArray, eps: FloatArray, delta: FloatArray, right: int, guesses: int, canaries: int) -> float:
    r"""Return an upper bound of the probability of at least `right` right guesses. All multipliers w >= 0 give a valid bound.

    .. math:: \sum_k \lambda_k \frac{m}{r} \delta(\varepsilon_k) + \max_{0 \le h \le r} \Bigl\{1[h \le r - v] - \sum_k
        \Bigl(w_{k,h} \frac{r - h}{r} - e^{\varepsilon_k} w_{k,h-1} \frac{h}{r}\Bigr)\Bigr\}, \qquad \lambda_k = \max_h w_{k,h}

    There are m canaries and r guesses, v is `right`, h is a number of wrong guesses, and :math:`w_{k,h}` is ``multipliers[k, h]``,
    0 for h = -1 and h = r. A bound of the rounding error is added.
    """
    r, wrong = guesses, np.arange(guesses + 1)
    none = np.zeros((eps.size, 1))
    kept = np.concatenate([multipliers, none], axis=1) * ((r - wrong) / r)
    moved = np.exp(eps)[:, None] * np.concatenate([none, multipliers], axis=1) * (wrong / r)
    inner = (wrong <= r - right) - kept.sum(axis=0) + moved.sum(axis=0)
    priced = float(multipliers.max(axis=1) @ delta) * canaries / r
    size = priced + float((1 + kept.sum(axis=0) + moved.sum(axis=0)).max())
    return priced + float(inner.max()) + (eps.size + 8) * 4 * ULP * size


def _proposed(eps: FloatArray, delta: FloatArray, right: int, guesses: int, canaries: int) -> FloatArray:
    """Return multipliers for :func:`certificate`, by the linear program whose value is this bound.

    The variables of the program are the multipliers at some numbers h of wrong guesses (linearly interpolated at all other h),
    the largest multiplier of each eps, and the maximum over h in the formula of :func:`certificate`.
    """
    from scipy.sparse import coo_matrix, csr_matrix, eye_array, hstack, vstack

    r, many, edge = guesses, eps.size, guesses - right
    steps = np.rint(np.geomspace(1, max(r, 2), _BREAKPOINTS // 2))
    near_edge = np.unique(np.clip(np.concatenate([[0, edge], edge - steps, edge + steps]), 0, r - 1))
    points = np.arange(r) if r <= _BREAKPOINTS else near_edge
    wrong = np.unique(np.concatenate([points, points + 1, (points[1:] + points[:-1]) // 2, [edge, edge + 1]]))

    def interpolated(at: FloatArray) -> FloatArray:
        """Return the matrix of the linear interpolation from `points` to `at`; rows outside of 0..r - 1 are 0."""
        return np.array([np.interp(at, points, row, left=0.0, right=0.0) for row in np.eye(points.size)]).T

    kept, moved = interpolated(wrong) * ((r - wrong) / r)[:, None], interpolated(wrong - 1) * (wrong / r)[:, None]
    size = many * points.size
    braces = hstack([*(csr_matrix(math.exp(e) * moved - kept) for e in eps.tolist()), csr_matrix((wrong.size, many)),
                     csr_matrix(-np.ones((wrong.size, 1)))])
    largest = coo_matrix((-np.ones(size), (np.arange(size), np.repeat(np.arange(many), points.size))), (size, many))
    matrix: Any = csr_matrix(vstack([braces, hstack([eye_array(size), largest, csr_matrix((size, 1))])]))
    limit = np.concatenate([np.where(wrong <= edge, -1.0, 0.0), np.zeros(size)])
    price = np.concatenate([np.zeros(size), delta * canaries / r, [1.0]])
    bounds: Any = [(0, None)] * (size + many) + [(None, None)]
    solved: Any = linprog(price, A_ub=matrix, b_ub=limit, bounds=bounds, method="highs")
    if solved.status:
        return np.zeros((many, r))
    return np.array([np.interp(np.arange(r), points, row) for row in np.maximum(solved.x[:size].reshape(many, -1), 0.0)])


@dataclass(frozen=True, repr=False)
class OneRun(Refuted):
    """Claims refuted by the number of right guesses about the canaries of one run."""

    right: int
    guesses: int
    canaries: int
    log_alpha: float
    relation: str | None
    method: str = "guesses about the canaries of one run"

    def _log_success(self, eps: FloatArray, log_delta: FloatArray) -> FloatArray:
        return log_success(self.right, self.guesses, self.canaries, eps, log_delta)

    def _epsilon(self, delta: float) -> float:
        if self.right == 0:
            return 0.0
        log_delta = np.array([math.log(delta) if delta else -math.inf])
        return largest_refuted(lambda eps: rounded_up(float(self._log_success(np.array([eps]), log_delta)[0])) <= self.log_alpha,
                               LARGEST_EXPONENT)

    def _gdp_mu(self) -> float:
        def refutes(mu: float, certified: bool = False) -> bool:
            return rounded_up(self._log_p(Tradeoff.gaussian(mu), certified)) <= self.log_alpha

        # `low` is the largest mu refuted at a single eps. The linear program is solved only for larger mu.
        low = largest_refuted(refutes, 1e3)
        return low and bracket(lambda mu: not refutes(mu, True), low, 1.05 * low, rtol=1e-4)[0]

    def _log_p(self, claim: Claim, certified: bool = True) -> float:
        if self.right == 0:
            return 0.0
        orders: list[Any] = [claim] if isinstance(claim, Tradeoff) or claim.reverse() is claim else [claim, claim.reverse()]
        eps, log_p = np.concatenate([np.linspace(0, 2, 21), np.geomspace(2.2, 60, 40)]), 0.0
        pure = max(float(one.epsilon(0.0)) for one in orders)
        if pure < LARGEST_EXPONENT:
            eps = np.unique(np.append(eps[eps < pure], pure))
        for _ in range(_ROUNDS):
            log_delta = np.max([np.asarray(one.log_delta(eps)) for one in orders], axis=0) + SLACK
            values = self._log_success(eps, log_delta)
            place = int(values.argmin())
            log_p = min(log_p, float(values[place]))
            best, near = float(eps[place]), slice(max(place - 1, 0), place + 2)
            if float(np.ptp(values[near])) < SAME_LOG:
                break
            eps = np.linspace(float(eps[near][0]), float(eps[near][-1]), 15)
            tick()
        if not certified or log_p < math.log(_LEAST_P) or self.guesses > LARGE_TABLE_SIZE // _MOST_EPS:
            return log_p
        many = _MOST_EPS * min(3, _BREAKPOINTS // min(self.guesses, _BREAKPOINTS))
        eps = np.unique(np.append(np.linspace(0.0, min(2.5 * best + 1, pure, 20.0), many), min(best, 20.0)))
        delta = np.exp(np.max([np.asarray(one.log_delta(eps)) for one in orders], axis=0)) * (1 + SLACK)
        sizes = self.right, self.guesses, self.canaries
        proven = certificate(_proposed(eps, delta, *sizes), eps, delta, *sizes)
        return min(log_p, math.log(proven)) if proven > 0 else log_p

    def _draw(self, ax: Any, claim: Claim | None) -> None:
        refuted = self.epsilon()
        eps = np.linspace(0, 1.6 * refuted + 0.5, 201)
        log_p = self._log_success(eps, np.full(eps.size, -np.inf)) if self.right else np.zeros(eps.size)
        ax.plot(eps, log_p / math.log(10), label=r"p-value of $(\varepsilon, 0)$", linewidth=1.8, **plotting.style(0))
        ax.axhline(self.log_alpha / math.log(10), color=plotting.COLORS[6], linewidth=1.0, label=f"{1 - self.confidence:.4g}")
        ax.axvspan(0, refuted, color=plotting.COLORS[1], alpha=0.15, linewidth=0, label="refuted")
        if claim is not None:
            ax.axhline(self.log_p_value(claim) / math.log(10), label="p-value of the claim", **plotting.style(2))
        ax.set(title=f"{self.right} of {self.guesses} guesses right: eps below {refuted:.4g} is refuted",
               xlabel=r"privacy loss $\varepsilon$ (nats)", ylabel=r"$\log_{10}$ of the p-value", xlim=(0, float(eps[-1])))
        plotting.plain_axes(ax)
        plotting.legend(ax)


@explained
@with_passages
def one_run(
    right: int, guesses: int, *, canaries: int | None = None, confidence: float = 0.95, log_alpha: float | None = None,
    relation: str | None = "add-remove",
) -> Refuted:
    r"""Return the claims that v right guesses of r guesses about m canaries refute, in one run of the program.

    .. math:: p = \min\Bigl(1,\; \beta + \frac{m \delta}{v}\, \frac{\beta (1 - \beta)}{b}\Bigr), \qquad
        \beta = \Pr[\mathrm{Bin}(r, q) \ge v], \quad b = \Pr[\mathrm{Bin}(r, q) = v], \quad q = \frac{1}{1 + e^{-\varepsilon}}

    Each canary is part of the data with probability 1/2, independently. From the output a rule guesses which canaries are part of
    the data. The claim that the program is (eps, delta)-private has the p-value p; it is refuted if p is at most 1 - confidence.

    Parameters
    ----------
    right : int
        Number v of right guesses.
    guesses : int
        Number r of guesses that the rule makes, or can make at most, 1 to 2**53; r must be fixed before the run. Example of a rule
        with 100 guesses: "in" for the 50 canaries with the highest scores, "out" for the 50 with the lowest ones.
    canaries : int, optional
        Number m of canaries, including those without a guess; `guesses` by default.
    confidence : float
        Probability in (0, 1) that no true claim is refuted.
    log_alpha : float, optional
        In place of `confidence`: the natural logarithm of 1 - confidence, in [-1e5, 0).
    relation : {"add-remove", "replace-one"}, optional
        Whether a canary that is not part of the data is absent, or replaced by another value. Claims about the other relation raise
        ValueError.

    Returns
    -------
    Refuted
        The refuted claims. The p-value of a pair (eps, delta) is exact: some (eps, delta)-private program and rule have v or more
        right guesses with the probability p. The p-value of a profile is the smallest upper bound that was found.

    {raises: If not right <= guesses <= canaries, or an argument lies outside its range.}

    See Also
    --------
    canaries : canaries with different guarantees or rates.

    Notes
    -----
    Theorem and proofs: :doc:`/theorems/one-run-audit`. For a profile, p is computed for (eps, delta(eps)) at many eps. For up to
    1e5 guesses and p-values above 1e-6, a linear program combines several eps, which may give a smaller p-value.

    References
    ----------
    Steinke, T., Nasr, M., Jagielski, M. Privacy auditing with one (1) training run. NeurIPS 2023 (their bound is larger).

    Examples
    --------
    >>> from shufflebounds import audit
    >>> found = audit.one_run(1439, 1510, canaries=10**5)
    >>> print(f"{found.epsilon():.6f} {found.epsilon(1e-5):.6f}")
    2.806207 2.802838
    """
    r = _validate.integer("guesses", guesses, 1)
    m = r if canaries is None else _validate.integer("canaries", canaries, 1)
    v = _validate.integer("right", right)
    for name, many, of, most in (("right", v, "guesses", r), ("guesses", r, "canaries", m)):
        if many > most:
            raise ValueError(f"{name}={many} must be at most {of}={most}")
    return OneRun(v, r, m, level_of(confidence, log_alpha), relation_given(relation))


@explained
@with_passages
def canaries(right: int, eps: ArrayLike, *, rates: ArrayLike = 0.5) -> float:
    r"""Return log p, where p is the p-value of v right guesses about canaries with different guarantees, for delta = 0.

    .. math:: p = \Pr\Bigl[\sum_i \mathrm{Ber}(q_i) \ge v\Bigr], \qquad q_i = \frac{1}{1 + e^{-\varepsilon_i} (1 - \pi_i)/\pi_i}

    Parameters
    ----------
    right : int
        Number v of right guesses.
    eps : array_like
        The claimed pure guarantee of each canary that was guessed, in nats, finite and >= 0.
    rates : float or array_like
        Probability :math:`\pi_i` in (0, 1) that the guess is right if the output is ignored: the rate at which the canary is part
        of the data if "in" was guessed, and 1 minus this rate if "out" was guessed.

    Returns
    -------
    float
        Natural logarithm of p, rounded up. If all rates are 1/2, p is the exact p-value, otherwise an upper bound. The number of
        guesses may depend on the output.

    {raises: If `right` exceeds the number of guesses, or an argument lies outside its range.}

    Examples
    --------
    >>> from shufflebounds import audit
    >>> print(f"{audit.canaries(3, [1, 2, 0.5, 1]):.12f}")
    -0.320228000737
    """
    budgets = np.atleast_1d(_validate.real_array("eps", eps, 0))
    shares = _validate.real_array("rates", rates, 0, 1, open_low=True, open_high=True)
    if budgets.ndim != 1 or (shares.ndim and shares.shape != budgets.shape):
        raise ValueError(f"rates has shape {shares.shape}, eps {budgets.shape}: both must hold one number a guess")
    v = _validate.integer("right", right, 0, budgets.size)
    with np.errstate(over="ignore"):
        odds = np.exp(np.minimum(budgets, LARGEST_EXPONENT)) * (shares / (1 - shares))
    # If e^eps overflows, a wrong guess counts as impossible.
    wrong = np.where(budgets > LARGEST_EXPONENT, 0.0, (1 - 4 * ULP) / (1 + odds))
    return rounded_up(float(np.asarray(poisson_binom_logcdf(budgets.size - v, wrong))))
