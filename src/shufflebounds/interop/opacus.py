"""An accountant for Opacus, with its public interface; Opacus and torch are imported by `register` only."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import Bound
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile import Composition

__all__ = ["OpacusAccountant", "register"]

NAME = "shufflebounds"


@with_passages
class OpacusAccountant:
    """Bounds of eps for Poisson-sampled Gaussian steps, with the interface of an Opacus accountant.

    The methods are those of ``opacus.accountants.IAccountant``. :func:`register` registers the accountant as ``"shufflebounds"``,
    so that ``PrivacyEngine(accountant="shufflebounds")`` uses it.

    Notes
    -----
    Opacus draws Poisson batches unless ``poisson_sampling=False``; with shuffled batches the bounds here do not apply.

    Examples
    --------
    >>> from shufflebounds.interop.opacus import OpacusAccountant
    >>> accountant = OpacusAccountant()
    >>> for _ in range(100):
    ...     accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> len(accountant), f"{accountant.get_epsilon(1e-5):.4f}"
    (100, '0.7180')
    """

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count one optimisation step.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the clipping norm, > 0.
        sample_rate : float
            Probability that a record is in the batch, in [1e-100, 1].
        """
        GaussianMechanism(noise_multiplier).subsampled(sample_rate)
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            noise_multiplier, sample_rate, count = self.history.pop()
            self.history.append((noise_multiplier, sample_rate, count + 1))
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    def get_epsilon(self, delta: float, *, bound: Bound = "upper") -> float:
        """Return a bound of the eps of all steps so far.

        Parameters
        ----------
        delta : float
            Failure probability, in [0, 1].
        bound : {"upper", "lower"}
            Which bound to return.

        Returns
        -------
        float
            Privacy loss in nats; 0 before the first step.
        """
        delta = _validate.real("delta", delta, 0, 1)
        if not self.history:
            return 0.0
        steps = tuple((GaussianMechanism(sigma).subsampled(rate), count) for sigma, rate, count in self.history)
        return Composition(steps).epsilon(delta, bound=bound)

    def __len__(self) -> int:
        return sum(count for _, _, count in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Return the name under which the accountant is registered."""
        return NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return the function that an Opacus optimizer calls at every step.

        Parameters
        ----------
        sample_rate : float
            Probability that a record is in a batch.

        Returns
        -------
        callable
            A function of the optimizer.
        """

        def hook(optimizer: Any) -> None:
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate * optimizer.accumulated_iterations)

        return hook

    def state_dict(self, destination: MutableMapping[str, Any] | None = None) -> MutableMapping[str, Any]:
        """Return the steps and the accountant's name, for a checkpoint.

        Parameters
        ----------
        destination : mapping, optional
            Mapping to write them to.

        Returns
        -------
        mapping
            A mapping with the keys ``history`` and ``mechanism``.
        """
        out = {} if destination is None else destination
        out["history"], out["mechanism"] = list(self.history), NAME
        return out

    def load_state_dict(self, state_dict: MutableMapping[str, Any]) -> None:
        """Load the steps of a checkpoint.

        Parameters
        ----------
        state_dict : mapping
            A mapping returned by :meth:`state_dict`.

        {raises: If a key is missing, or the checkpoint is of another accountant; the steps are then unchanged.}
        """
        if not state_dict or "history" not in state_dict or "mechanism" not in state_dict:
            raise ValueError("state_dict must have the keys 'history' and 'mechanism'")
        if state_dict["mechanism"] != NAME:
            raise ValueError(f"state_dict is of the accountant {state_dict['mechanism']!r}: it must be of {NAME!r}")
        fresh = []
        for sigma, rate, count in state_dict["history"]:
            step = GaussianMechanism(sigma).subsampled(rate)
            fresh.append((float(sigma), step.rate, _validate.integer("count", count, 1)))
        self.history = fresh


def register() -> None:
    """Register the accountant with Opacus under the name ``"shufflebounds"``.

    Raises
    ------
    ImportError
        If opacus is not installed.
    """
    from opacus.accountants.registry import register_accountant

    register_accountant(NAME, OpacusAccountant)
