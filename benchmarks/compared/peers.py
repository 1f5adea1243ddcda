"""Programs that a user could install instead (None if they are not installed), and distributions in their formats."""

try:
    from dp_accounting.pld import privacy_loss_distribution
except ImportError:
    privacy_loss_distribution = None
try:
    from fast_poibin import PoiBin
except ImportError:
    PoiBin = None
try:
    from PLD_accounting import gaussian_allocation_epsilon_range
except ImportError:
    gaussian_allocation_epsilon_range = None
try:
    from riskcal.analysis import get_beta_from_gdp, get_beta_from_pld
except ImportError:
    get_beta_from_gdp = get_beta_from_pld = None


def two_laws(log_p, log_q, grid, symmetric=True):
    """Return dp-accounting's pessimistic privacy loss distribution of two enumerated distributions.

    If `symmetric` is true, the direction (P, Q) is used for (Q, P), too; otherwise both are computed.
    """
    return privacy_loss_distribution.from_two_probability_mass_functions(
        dict(enumerate(log_p.tolist())),
        dict(enumerate(log_q.tolist())),
        value_discretization_interval=grid,
        symmetric=symmetric,
    )
