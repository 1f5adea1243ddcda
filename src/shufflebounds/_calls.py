"""Errors of public methods name the public object: calls whose arguments do not fit, and bounds that contradict each other."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from shufflebounds._types import InconsistentBoundsError
from shufflebounds._validate import short_repr

__all__ = ["explained"]

_Kind = TypeVar("_Kind", bound=type)


def explained(kind: _Kind) -> _Kind:
    """Make the public methods of a class explain a call with missing, surplus or unknown arguments.

    Python's own message names the class that defines the method, which may be private, and not the arguments that it takes. An
    InconsistentBoundsError of a public method names the object with its parameters.
    """
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if inspect.isfunction(member):
            setattr(kind, name, _wrapped(member))
        elif isinstance(member, classmethod):
            setattr(kind, name, classmethod(_wrapped(member.__func__)))
    return kind


def _wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
    # Decorators such as numpy.errstate hide the signature of the function that they wrap, so `wraps` copies it.
    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except InconsistentBoundsError as error:
            # The object that the user called is the last one to be named.
            error.source = short_repr(self, 1000)
            raise
        except TypeError:
            problem = _mismatch(method, self, args, kwargs)
            if problem is None:
                raise
        raise TypeError(problem)

    return call


def _mismatch(method: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return a description of what is wrong with the arguments, or None if they fit the signature of the method.

    In the latter case the TypeError was raised inside the method.
    """
    signature = inspect.signature(method)
    try:
        signature.bind(self, *args, **kwargs)
    except TypeError as problem:
        kind = self if isinstance(self, type) else type(self)
        owner = next((one.__name__ for one in kind.__mro__ if not one.__name__.startswith("_")), kind.__name__)
        name = f"{owner}.{method.__name__}"
        given = [*(short_repr(value, 40) for value in args), *(f"{word}={short_repr(value, 40)}" for word, value in kwargs.items())]
        taken, words = [], []
        for parameter in list(signature.parameters.values())[1:]:
            bare = parameter.replace(annotation=inspect.Parameter.empty)
            if parameter.kind is parameter.KEYWORD_ONLY and "*" not in taken:
                taken.append("*")
            taken.append(str(bare))
            choices = re.findall(r"Literal\[(.*?)\]", str(parameter.annotation))
            words += [f"{parameter.name} is one of {choices[0]}"] if choices else []
        named = "; arguments after * are given by name, such as eps=1.0" if "*" in taken else ""
        return "; ".join([f"{name}({', '.join(given)}): {problem}", f"call it as {name}({', '.join(taken)}){named}", *words])
    return None
