"""Iterators that another thread can end."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Generic, TypeVar

from .closing import Closed, Closing

T = TypeVar("T")


class Stream(Generic[T]):
    """An iterator that stops, rather than fails, when it is closed; `close` may be called from any thread.

    Its connection is closed with it, and when it ends by itself.
    """

    def __init__(self, items: Generator[T, None, None], closing: Closing) -> None:
        self._items = items
        self._closing = closing
        closing.on_close(self._end_items)

    def __iter__(self) -> Stream[T]:
        return self

    def __next__(self) -> T:
        is_over = True
        try:
            self._closing.check()
            item = next(self._items)
            is_over = False
            return item
        except Closed:
            raise StopIteration from None
        finally:
            if is_over:
                self._closing.close()

    def close(self) -> None:
        self._closing.close()

    def _end_items(self) -> None:
        with contextlib.suppress(ValueError):  # another thread is in it, and ends it on its own
            self._items.close()
