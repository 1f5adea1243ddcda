"""Errors that name the public object whose arguments do not fit or whose bounds contradict each other."""

from __future__ import annotations

import functools
import inspect
import re
from abc import ABCMeta
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from shufflebounds._base.types import InconsistentBoundsError
from shufflebounds._base.validate import OTHER_NAMES, short_repr

__all__ = ["Explaining", "class_given", "explained"]

_Explained = TypeVar("_Explained", bound=Callable[..., Any])


class Explaining(ABCMeta):
    """The metaclass of classes whose constructors explain a call with missing, surplus or unknown arguments."""

    if not TYPE_CHECKING:
        # The method `__call__` is hidden from type checkers: they would take its result type for the type of every instance.
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().__call__(*args, **kwargs)
            except TypeError:
                problem = _mismatch(cls.__init__, None, args, kwargs, _public(cls))
                if problem is None:
                    raise
            raise TypeError(problem)

        @property
        def __signature__(cls) -> inspect.Signature:
            # inspect.signature would return the signature of __call__ above.
            whole = inspect.signature(cls.__init__)
            return whole.replace(parameters=list(whole.parameters.values())[1:])


def explained(given: _Explained) -> _Explained:
    """Make a function, or the public methods and constructor of a class, raise an error that explains arguments that do not fit.

    Python's own message names the class that defines the method, which may be private, and does not name the arguments that the
    method takes. An InconsistentBoundsError of a public method names the object with its parameters.
    """
    if not isinstance(given, type):
        return _wrapped_function(given)
    for name, member in list(vars(given).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if inspect.isfunction(member):
            setattr(given, name, _wrapped(member))
        elif isinstance(member, classmethod):
            setattr(given, name, classmethod(_wrapped(member.__func__)))
    return given


def class_given(value: object) -> str:
    """Return advice for an error message if a class was given in place of an instance, otherwise an empty string."""
    if not isinstance(value, type):
        return ""
    try:
        taken = [str(one.replace(annotation=inspect.Parameter.empty)) for one in inspect.signature(value).parameters.values()]
    except ValueError:
        taken = ["..."]
    return f", got the class {value.__name__}: pass an instance, {value.__name__}({', '.join(taken)})"


def _wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
    # Decorators such as numpy.errstate hide the signature of the function that they wrap, so `wraps` copies it.
    @functools.wraps(method)
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except InconsistentBoundsError as error:
            # In nested calls the outermost one sets the name last, so the error names the object that the user called. An object
            # under construction has no parameters to show.
            if method.__name__ != "__init__":
                error.source = short_repr(self, 1000)
            raise
        except TypeError:
            owner = _public(self if isinstance(self, type) else type(self))
            name = owner if method.__name__ == "__init__" else f"{owner}.{method.__name__}"
            problem = _mismatch(method, self, args, kwargs, name)
            if problem is None:
                raise
        raise TypeError(problem)

    return call


def _wrapped_function(function: _Explained) -> _Explained:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError:
            problem = _mismatch(function, None, args, kwargs, function.__name__, bound=True)
            if problem is None:
                raise
        raise TypeError(problem)

    return call  # type: ignore[return-value]


def _public(kind: type) -> str:
    """Return the name of a class, or of its first public parent."""
    return next((one.__name__ for one in kind.__mro__ if not one.__name__.startswith("_")), kind.__name__)


def _mismatch(
    function: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str, *, bound: bool = False
) -> str | None:
    """Return a description of the arguments that do not fit the signature of the function, or None if all do.

    None means that the TypeError was raised inside the function. `bound` is true if the function takes no `self`.
    """
    signature = inspect.signature(function)
    try:
        signature.bind(*(() if bound else (self,)), *args, **kwargs)
    except TypeError as problem:
        given = [*(short_repr(value, 40) for value in args), *(f"{word}={short_repr(value, 40)}" for word, value in kwargs.items())]
        taken: list[str] = []
        words: list[str] = []
        parameters = list(signature.parameters.values())[0 if bound else 1 :]
        for parameter in parameters:
            bare = parameter.replace(annotation=inspect.Parameter.empty)
            if parameter.kind is parameter.KEYWORD_ONLY and "*" not in taken:
                surplus, default = args[len(taken) :], parameter.default
                example = short_repr(surplus[0], 40) if surplus else "..." if default is parameter.empty else repr(default)
                words.append(f"arguments after * are given by name, such as {parameter.name}={example}")
                taken.append("*")
            taken.append(str(bare))
            choices = re.findall(r"Literal\[(.*?)\]", str(parameter.annotation))
            words += [f"{parameter.name} is one of {choices[0]}"] if choices else []
        names = {parameter.name for parameter in parameters}
        words += [f"did you mean {OTHER_NAMES[word]}= for {word}=?" for word in kwargs
                  if word not in names and OTHER_NAMES.get(word) in names]
        return "; ".join([f"{name}({', '.join(given)}): {problem}", f"call it as {name}({', '.join(taken)})", *words])
    return None
