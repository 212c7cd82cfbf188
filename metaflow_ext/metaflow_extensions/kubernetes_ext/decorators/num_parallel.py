"""What `num_parallel` may be. Core lets 0, negatives and 2.0 pass `self.next` and fails later in odd ways."""

from __future__ import annotations

from typing import Any

from .host_errors import KubernetesError


def require_num_parallel(value: Any, step: str) -> int:
    """A whole number of at least 1; else an error that names the step."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 1:
        raise KubernetesError(
            f"Step *{step}* is started with num_parallel={value!r}. num_parallel is a whole number of at least 1: "
            f"self.next(self.{step}, num_parallel=4)."
        )
    return int(value.__index__())


def require_started_in_parallel(ubf_context: Any, step: str) -> None:
    """A @parallel step that core starts as a plain one was given a num_parallel below 1 (core drops it)."""
    if not ubf_context:
        raise KubernetesError(
            f"Step *{step}* is @parallel but was started with num_parallel below 1 (or without it). num_parallel is a "
            f"whole number of at least 1: self.next(self.{step}, num_parallel=4)."
        )


def check_literal(graph: Any, step: str) -> None:
    """Refuse a wrong number written literally in `self.next(self.<step>, num_parallel=...)`, before the run starts.

    A value that is not a literal (None in the graph) is checked when it is known.
    """
    for parent in graph[step].in_funcs:
        node = graph[parent]
        if node.parallel_foreach and node.num_parallel is not None:
            require_num_parallel(node.num_parallel, step)
