"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

_Value = TypeVar("_Value", covariant=True)


class computed(Generic[_Value]):
    """A pure function of an object, kept in the object once it was computed.

    Like `functools.cached_property`, but without the lock that this has in Python 3.11: that lock is one for all
    objects of a class, so that two threads that each walk a tree of mixed nodes can wait for one another for
    ever. Here two threads may both compute the value, which must therefore not matter.
    """

    def __init__(self, function: Callable[[Any], _Value]) -> None:
        self._function = function
        self._name = ""
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...
    def __get__(self, instance: object | None, owner: type) -> Self | _Value:
        if instance is None:
            return self
        value = self._function(instance)
        # Found there from now on, before this method: it sets nothing and so comes after the object's own.
        instance.__dict__[self._name] = value
        return value
