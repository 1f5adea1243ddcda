"""What every protocol with an estimate has: what users run, what is read off, how many messages that takes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import ArrayLike

from shufflebounds._docs import with_passages
from shufflebounds.profile import PrivacyProfile
from shufflebounds.shuffle._accuracy import ErrorLaw


@with_passages
class ShuffleProtocol(PrivacyProfile, ErrorLaw):
    """A protocol of many users, with an estimate and the law of its error."""

    @abstractmethod
    def randomize(self, values: ArrayLike, rng: Any = None) -> Any:
        """Return what the analyst sees of one run, which tells no more than the shuffled messages do.

        Parameters
        ----------
        values : array_like
            The data, one entry a user, as the class describes it.
        rng : None, int or numpy.random.Generator
            Source of randomness.

        Returns
        -------
        int or ndarray
            In the form that the class describes.

        {raises: If `values` is no data of this protocol, `rng` is no generator, or the messages would not fit into memory.}
        """

    @abstractmethod
    def estimate(self, messages: Any) -> Any:
        """Return the unbiased estimate, as the class gives it.

        Parameters
        ----------
        messages : int or array_like
            What :meth:`randomize` returns.

        Returns
        -------
        float or ndarray
            One number, or one a bin. It may fall outside the range of the truth: clipping would bias it.

        {raises: If `messages` is nothing that the analyst may see, or says nothing of the data, as fair coins.}
        """
