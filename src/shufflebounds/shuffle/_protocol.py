"""Base class of shuffle protocols with an estimate: randomization, estimation and the distribution of the error."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

from numpy.typing import ArrayLike

from shufflebounds._docs import with_passages
from shufflebounds.profile import PrivacyProfile
from shufflebounds.shuffle._accuracy import CountErrorLaw, ErrorLaw


@with_passages
class ShuffleProtocol(PrivacyProfile, ErrorLaw):
    """A shuffle protocol with an estimate and the distribution of its error."""

    @abstractmethod
    def randomize(self, values: ArrayLike, rng: Any = None) -> Any:
        """Run the protocol once and return what the analyst sees, which is a function of the shuffled messages.

        Parameters
        ----------
        values : array_like
            The dataset, with one entry for each user, as described for the class.
        rng : None, int or numpy.random.Generator
            Source of randomness.

        Returns
        -------
        int or ndarray
            In the form described for the class.

        {raises: If `values` is no dataset of this protocol, `rng` is no generator, or the messages would not fit into memory.}
        """

    @abstractmethod
    def estimate(self, messages: Any) -> Any:
        """Return the unbiased estimate, by the formula that the description of the class states.

        Parameters
        ----------
        messages : int or array_like
            What :meth:`randomize` returns.

        Returns
        -------
        float or ndarray
            One number, or one for each bin. It may lie outside the range of the exact value, because clipping would bias it.

        {raises: If `messages` is not a possible output of the protocol, or the messages do not depend on the data.}
        """


class FlippedProtocol(ShuffleProtocol, CountErrorLaw):
    """A protocol whose users flip each of their bits with probability `flip`."""

    flip: float

    def _scale(self) -> float:
        return math.sqrt(self.variance) + 1 / (1 - 2 * self.flip)

    def _informative(self) -> None:
        if self.flip == 0.5:
            raise ValueError("flip=0.5 must be < 0.5 for an estimate: the messages do not depend on the data")
