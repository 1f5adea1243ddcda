"""Trade-off functions: the least error of the second kind of a test whose error of the first kind is given."""

from shufflebounds.tradeoff._curve import Tradeoff

__all__ = ["Tradeoff"]
