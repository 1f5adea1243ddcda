"""Programs that a user could install instead (None if they are not installed), and distributions in their formats."""

import importlib.util
from pathlib import Path

try:
    from dp_accounting.pld import privacy_loss_distribution
except ImportError:
    privacy_loss_distribution = None
try:
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
except ImportError:
    get_epsilon_gaussian = None
try:
    from fast_poibin import PoiBin
except ImportError:
    PoiBin = None
try:
    from PLD_accounting import gaussian_allocation_epsilon_range
except ImportError:
    gaussian_allocation_epsilon_range = None
try:
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant
except ImportError:
    PoissonSubsampledGaussianMechanism = PRVAccountant = None
try:
    from riskcal.analysis import get_beta_from_gdp, get_beta_from_pld
except ImportError:
    get_beta_from_gdp = get_beta_from_pld = None


def _opake():
    """Return the compiled accountant of opake, whose package itself needs a later Python than this library; None without it."""
    package = importlib.util.find_spec("opake")
    folders = package.submodule_search_locations or [] if package else []
    for path in (path for folder in folders for path in Path(folder).glob("api/accounting/core/opake_accounting.*")):
        if path.suffix in (".so", ".pyd", ".dylib"):
            spec = importlib.util.spec_from_file_location("opake_accounting", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return None


opake = _opake()


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
