import numpy
import pytest

from metaflow_extensions.kubernetes_ext.decorators import num_parallel
from metaflow_extensions.kubernetes_ext.decorators.host_errors import KubernetesError


class Node:
    def __init__(self, in_funcs: tuple[str, ...] = (), parallel_foreach: bool = False, value: object = 0) -> None:
        self.in_funcs, self.parallel_foreach, self.num_parallel = in_funcs, parallel_foreach, value


@pytest.mark.parametrize(
    "value", [pytest.param(1, id="one"), pytest.param(16, id="many"), pytest.param(numpy.int64(4), id="numpy")]
)
def test_whole_numbers_from_one_on_are_taken(value: object) -> None:
    assert num_parallel.require_num_parallel(value, "train") == int(value)  # type: ignore[call-overload]


@pytest.mark.parametrize("value", [0, -1, 2.0, "4", None, True, [4]])
def test_anything_else_is_refused_with_the_step_s_name(value: object) -> None:
    with pytest.raises(KubernetesError, match="train"):
        num_parallel.require_num_parallel(value, "train")


@pytest.mark.parametrize("literal", [0, 2.0])
def test_a_wrong_literal_is_refused_from_the_graph(literal: object) -> None:
    graph = {"train": Node(("start",)), "start": Node(parallel_foreach=True, value=literal)}
    with pytest.raises(KubernetesError, match="num_parallel"):
        num_parallel.check_literal(graph, "train")


@pytest.mark.parametrize("value", [pytest.param(None, id="not a literal"), pytest.param(4, id="good")])
def test_good_and_unknown_values_pass(value: object) -> None:
    graph = {"train": Node(("start",)), "start": Node(parallel_foreach=True, value=value)}
    num_parallel.check_literal(graph, "train")


def test_a_parent_that_is_no_parallel_foreach_says_nothing() -> None:
    num_parallel.check_literal({"train": Node(("start",)), "start": Node()}, "train")


def test_a_parallel_step_started_as_a_plain_one_is_refused() -> None:
    with pytest.raises(KubernetesError, match="below 1"):
        num_parallel.require_started_in_parallel(None, "train")
