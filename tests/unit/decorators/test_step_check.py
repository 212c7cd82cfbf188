"""What is refused before a launch; and that core's values stay core's, for the compilers that read them."""

from typing import Any

import pytest
from metaflow.plugins.kubernetes.kubernetes_decorator import KubernetesDecorator as Core
from metaflow.plugins.resources_decorator import ResourcesDecorator

from metaflow_extensions.kubernetes_ext.decorators import attributes as table
from metaflow_extensions.kubernetes_ext.decorators import step_check
from metaflow_extensions.kubernetes_ext.decorators.host_errors import KubernetesError
from metaflow_extensions.kubernetes_ext.decorators.kubernetes_decorator import KubernetesDecorator


def attributes(**changes: Any) -> dict[str, Any]:
    return {**KubernetesDecorator.defaults, "gpu_vendor": "nvidia", "labels": {}, **changes}


def merged(mine: dict[str, Any], resources: dict[str, Any]) -> dict[str, Any]:
    found = attributes(**mine)
    step_check.merge_resources(found, KubernetesDecorator.defaults, [ResourcesDecorator(resources)])
    return found


def test_every_attribute_of_core_is_there_and_ours_default_to_none() -> None:
    assert {name: KubernetesDecorator.defaults[name] for name in Core.defaults} == Core.defaults
    assert {KubernetesDecorator.defaults[name] for name in table.OURS} == {None}


def test_every_attribute_travels_on_the_command_line_or_is_known_not_to() -> None:
    assert set(KubernetesDecorator.defaults) - {*table.CORE, *table.OURS} == {"compute_pool", "hostname_resolution_timeout"}


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        pytest.param("4096", 16000, "16000.0", id="as core writes it"),
        pytest.param("4Gi", "4000", "4Gi", id="quantity is larger"),
        pytest.param("4Gi", 16000, "16000M", id="number is larger"),
        pytest.param("500m", 4096, "4096M", id="small"),
    ],
)
def test_the_larger_memory_wins(mine: Any, theirs: Any, expected: str) -> None:
    if mine == "500m":
        with pytest.raises(KubernetesError, match="byte"):
            step_check.larger(mine, theirs, "memory")
        return
    assert merged({"memory": mine}, {"memory": theirs})["memory"] == expected


def test_millicores_and_numbers_compare() -> None:
    assert step_check.larger("500m", "1", "cpu") == "1"
    assert step_check.larger("1500m", 1, "cpu") == "1500m"


def test_gpu_and_shared_memory_of_resources_override() -> None:
    found = merged({"gpu": 1}, {"gpu": 4, "shared_memory": 64})
    assert (found["gpu"], found["shared_memory"]) == (4, 64)


@pytest.mark.parametrize(
    "changes",
    [
        {"cpu": "-1"}, {"cpu": "0"}, {"cpu": "many"}, {"memory": 0}, {"memory": None}, {"disk": "x"}, {"gpu": "1.5"}, {"gpu": -1},
        {"gpu_vendor": "intel"}, {"qos": "best"}, {"port": 0}, {"port": "ssh"}, {"tmpfs_size": "big"}, {"shared_memory": -1},
        {"logs": "some"}, {"grace_period": -1}, {"tolerations": "x"}, {"persistent_volume_claims": ["x"]},
        {"hostname_resolution_timeout": "soon"}, {"extended_resources": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_is_one_sentence_that_names_step_and_attribute(changes: dict[str, Any]) -> None:
    with pytest.raises(KubernetesError) as raised:
        step_check.check_attributes("train", attributes(**changes))
    assert "train" in str(raised.value)
    assert next(iter(changes)) in str(raised.value)


@pytest.mark.parametrize(
    "changes",
    [{"cpu": 0.5}, {"cpu": "500m"}, {"memory": "4Gi"}, {"gpu": "2"}, {"port": "29500"}, {"shared_memory": "64"}],
    ids=str,
)
def test_good_values_pass_and_stay(changes: dict[str, Any]) -> None:
    given = attributes(**changes)
    step_check.check_attributes("train", given)
    assert {name: given[name] for name in changes} == changes


@pytest.mark.parametrize(
    ("value", "expected"),
    [("control", "control"), ("all", "all"), ("none", "none"), ("0, 3", (0, 3)), ([1, 2], (1, 2)), (2, (2,))],
)
def test_which_ranks_logs_are_shown(value: Any, expected: Any) -> None:
    assert step_check.parse_logs(value) == expected


def test_local_needs_shared_files() -> None:
    step_check.require_datastore("local", is_shared=True)
    step_check.require_datastore("s3", is_shared=False)
    with pytest.raises(KubernetesError, match="metaflow-devcluster"):
        step_check.require_datastore("local", is_shared=False)


def test_a_short_timeout_is_refused() -> None:
    with pytest.raises(KubernetesError, match="60 s"):
        step_check.require_run_time_limit("train", 30)
