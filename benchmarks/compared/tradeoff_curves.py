"""Trade-off curves against riskcal and dp-accounting."""

import numpy as np
from measuring import row

from compared.counts import bits_pmfs
from compared.peers import get_beta_from_gdp, get_beta_from_pld, privacy_loss_distribution, two_laws
from shufflebounds import Tradeoff
from shufflebounds.tradeoff import hockey_stick


def random_laws(atoms):
    """Return log P and log Q of two distributions whose ratio is not monotone."""
    laws = np.random.default_rng(12345).random((2, atoms))
    return np.log(laws / laws.sum(axis=1, keepdims=True))


def tradeoff():
    """Return rows for curves at 1001 levels and of a million atoms, against riskcal and lines from dp-accounting's delta."""
    rows = []
    alpha = np.linspace(0, 1, 1001)

    def peer_row(task, ours, theirs, note):
        # `far` states the largest error of the other program's curve, and by how much it exceeds the exact curve.
        error = theirs() - ours() if theirs else 0
        far = f": off by {np.abs(error).max():.1e}, above by {max(error.max(), 0):.1e}" if theirs else ""
        rows.append(row(task, ours, theirs, note + far, ""))

    users, flip = 1000, 0.25
    pmfs = bits_pmfs(users, flip)

    def exact():
        return Tradeoff.from_pmfs(*pmfs).symmetrized().beta(alpha)

    riskcal = get_beta_from_pld and privacy_loss_distribution
    for grid in (1e-4, 1e-5):
        theirs = (lambda g=grid: get_beta_from_pld(two_laws(*pmfs, g, symmetric=False), alpha)) if riskcal else None
        peer_row("curve of shuffled bits, n=1e3, all zeros", exact, theirs, f"riskcal on a dp-accounting PLD, grid {grid:g}")

    def lines():
        eps = np.linspace(0, 1, 1001)
        delta = np.maximum(two_laws(*pmfs, 1e-4, symmetric=False).get_delta_for_epsilon(eps), 0)
        return np.maximum(0, np.maximum(1 - delta[:, None] - np.exp(eps)[:, None] * alpha,
                                        np.exp(-eps)[:, None] * (1 - delta[:, None] - alpha)).max(axis=0))

    peer_row("the same", exact, lines if privacy_loss_distribution else None, "1001 lines of dp-accounting's delta")
    theirs = (lambda: get_beta_from_gdp(1.0, alpha)) if get_beta_from_gdp else None
    peer_row("Gaussian curve, mu=1", lambda: Tradeoff.gaussian(1.0).beta(alpha), theirs, "riskcal")
    log_p, log_q = random_laws(10**6)
    curve, eps = Tradeoff.from_pmfs(log_p, log_q), np.linspace(0, 3, 1000)
    rows.append(row("from_pmfs, 1e6 atoms", lambda: Tradeoff.from_pmfs(log_p, log_q), show=""))
    rows.append(row("beta at 1001 levels, 1e6 breakpoints", lambda: curve.beta(alpha), show=""))
    rows.append(row("hull of 1e6 breakpoints", lambda: Tradeoff.from_knots(*curve.knots).convex_hull(), show=""))
    rows.append(row("hockey stick, 1e6 atoms, 1000 eps", lambda: hockey_stick(log_p, log_q, eps), show=""))
    rows.append(row("gdp_mu, 1e6 breakpoints", curve.gdp_mu))
    return rows
