"""Iterators that another thread can end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from .closing import Closed, Closing

T = TypeVar("T")


class Stream(Generic[T]):
    """An iterator that stops, rather than fails, when it is closed; `close` may be called from any thread."""

    def __init__(self, items: Iterator[T], closing: Closing) -> None:
        self._items = items
        self._closing = closing

    def __iter__(self) -> Stream[T]:
        return self

    def __next__(self) -> T:
        try:
            self._closing.check()
            return next(self._items)
        except Closed:
            raise StopIteration from None

    def close(self) -> None:
        self._closing.close()
