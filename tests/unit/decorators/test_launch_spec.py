"""Attributes of @kubernetes become a LaunchSpec: sizes, names, environment, in core's meaning."""

from typing import Any

import pytest
from metaflow.plugins.kubernetes.kubernetes_decorator import KubernetesDecorator as Core

from metaflow_extensions.kubernetes_ext.decorators import gang_environment
from metaflow_extensions.kubernetes_ext.decorators.container_script import TaskScript
from metaflow_extensions.kubernetes_ext.decorators.launch_spec import TaskCode, TaskRef, camel_case, launch_spec
from metaflow_extensions.kubernetes_ext.decorators.settings import Settings
from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.spec.launch import Group, LaunchSpec
from metaflow_extensions.kubernetes_ext.spec.placement import Placement, Topology

SCRIPT = TaskScript(
    pathspec="Flow/1/train/7",
    attempt=0,
    datastore="s3",
    datastore_root="s3://b/r",
    init_commands=[],
    bootstrap_commands=[],
    step_words=["python", "flow.py", "step", "train"],
)


def make(
    num_parallel: int | None = None,
    code: TaskCode | None = None,
    settings: Settings | None = None,
    restart: int = 0,
    **options: Any,
) -> LaunchSpec:
    attributes = {**Core.defaults, "namespace": "default", "image": "python:3.11", "run_time_limit": 432000, **options}
    task = TaskRef(flow="Flow", run_id="1", step="train_it", task_id="7", attempt=0, user="me", num_parallel=num_parallel)
    code = code or TaskCode(script=SCRIPT, environment={})
    return launch_spec(task, attributes, code, settings or Settings(), "abc", restart=restart)


def env(group: Group) -> dict[str, str | None]:
    return {
        variable.name: variable.value or variable.template if variable.field_path is None else f"<{variable.field_path}>"
        for variable in group.container.env
    }


def test_a_plain_step_is_one_group() -> None:
    spec = make()
    assert [(group.name, group.replicas) for group in spec.groups] == [("task", 1)]
    assert spec.groups[0].container.name == "train-it"
    assert spec.deadline_seconds == 432000


@pytest.mark.parametrize(
    ("size", "groups"),
    [(1, [("control", 1)]), (2, [("control", 1), ("worker", 1)]), (16, [("control", 1), ("worker", 15)])],
)
def test_a_gang_is_control_and_worker(size: int, groups: list[tuple[str, int]]) -> None:
    assert [(group.name, group.replicas) for group in make(size).groups] == groups


def test_each_start_of_an_attempt_is_a_workload_of_its_own_and_its_ranks_know_which() -> None:
    first, second, third = (make(2, restart=number) for number in range(3))
    assert len({first.name, second.name, third.name}) == 3
    assert second.name == make(2, restart=1).name
    assert labels.RESTART not in first.annotations
    assert second.annotations[labels.RESTART] == "1"
    assert [env(group).get("METAFLOW_KUBERNETES_RESTART") for group in third.groups] == ["2", "2"]


def test_every_rank_gets_core_s_variables() -> None:
    spec = make(4, port=1234)
    for group in spec.groups:
        found = env(group)
        name = "$(METAFLOW_KUBERNETES_JOBSET_NAME)"
        assert found["MF_MASTER_ADDR"] == f"{name}-control-0-0.{name}"
        assert found["METAFLOW_KUBERNETES_JOBSET_NAME"] == "<metadata.labels['jobset.sigs.k8s.io/jobset-name']>"
        assert list(found).index("METAFLOW_KUBERNETES_JOBSET_NAME") < list(found).index("MF_MASTER_ADDR"), (
            "or it isn't expanded"
        )
        assert (found["MF_MASTER_PORT"], found["MF_WORLD_SIZE"], found["MF_PARALLEL_CONTROL_TASK_ID"]) == ("1234", "4", "7")
        assert found[gang_environment.CONTRACT] == gang_environment.CONTRACT_VERSION
    assert env(spec.groups[0])["MF_CONTROL_INDEX"] == "0"
    assert (
        env(spec.groups[1])["MF_WORKER_REPLICA_INDEX"] == "<metadata.annotations['batch.kubernetes.io/job-completion-index']>"
    )


def test_names_are_the_same_for_the_same_task_and_attempt() -> None:
    assert make(2).name == make(2).name
    assert make().name.startswith("flow-train-it-")


def test_the_user_s_variables_win_over_settings_and_lose_against_what_the_task_needs() -> None:
    code = TaskCode(
        script=SCRIPT,
        environment={"METAFLOW_CODE_SHA": "needed"},
        user_environment={
            "A": "$(B) 'q'",
            "METAFLOW_CODE_SHA": "x",
            "METAFLOW_S3_ENDPOINT_URL": "mine",
            "METAFLOW_RUN_ID": "x",
        },
    )
    found = env(make(code=code, settings=Settings(task_environment={"METAFLOW_S3_ENDPOINT_URL": "theirs"})).groups[0])
    assert (found["A"], found["METAFLOW_CODE_SHA"], found["METAFLOW_S3_ENDPOINT_URL"]) == ("$(B) 'q'", "needed", "mine")
    assert found["METAFLOW_RUN_ID"] == "1"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"memory": "4096"}, "4096M", id="plain number"),
        pytest.param({"memory": "4096.0"}, "4096M", id="as core merges @resources"),
        pytest.param({"memory": 500}, "500M", id="number"),
        pytest.param({"memory": "4Gi"}, "4Gi", id="quantity"),
    ],
)
def test_memory(options: dict[str, Any], expected: str) -> None:
    assert make(**options).groups[0].container.resources.memory == expected


def test_a_tmpfs_without_a_size_has_half_of_the_memory() -> None:
    storage = make(use_tmpfs=True, memory="1Gi").groups[0].storage
    assert (storage.tmpfs_path, storage.tmpfs_size) == ("/metaflow_temp", "512Mi")


def test_no_tmpfs_unless_asked_for() -> None:
    assert make().groups[0].storage.tmpfs_path is None


def test_metaflow_s_tempdir_is_the_tmpfs() -> None:
    assert env(make(tmpfs_size="100").groups[0])["METAFLOW_TEMPDIR"] == "/metaflow_temp"


def test_secrets_of_the_step_and_of_the_settings() -> None:
    spec = make(secrets=("a", "b"), settings=Settings(secrets=("b", "c")))
    assert spec.groups[0].container.env_from_secrets == ("a", "b", "c")


def test_labels_are_valid_and_annotations_full() -> None:
    spec = make(4, labels={"team": "x", "empty": None})
    assert spec.labels[labels.STEP] == "train_it"
    assert (spec.labels["team"], spec.labels["empty"]) == ("x", "")
    assert spec.annotations[labels.SUBMISSION] == "abc"
    assert spec.annotations[labels.WORLD_SIZE] == "4"
    assert spec.annotations["metaflow/control-task-id"] == "7"


def test_core_s_snake_case_becomes_kubernetes_spelling() -> None:
    assert camel_case({"run_as_user": 1, "runAsGroup": 2, "privileged": None}) == {"runAsUser": 1, "runAsGroup": 2}
    spec = make(
        tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute", "toleration_seconds": 3}],
        security_context={"run_as_user": 1},
    )
    assert spec.groups[0].placement.tolerations[0]["tolerationSeconds"] == 3
    assert spec.groups[0].container.security_context == {"runAsUser": 1}


def test_gpu_and_guaranteed() -> None:
    resources = make(gpu="2", gpu_vendor="AMD", qos="Guaranteed").groups[0].container.resources
    assert (resources.gpu, resources.gpu_resource, resources.limits_equal_requests) == (2, "amd.com/gpu", True)


@pytest.mark.parametrize(
    "options", [{"memory": "lots"}, {"port": "x"}, {"namespace": "No_Such"}, {"gpu": "1.5"}, {"tolerations": ["x"]}]
)
def test_what_can_t_be_is_an_invalid_spec(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec):
        make(**options)


@pytest.mark.parametrize("size", [None, 3])
def test_cluster_policy(size: int | None) -> None:
    made = make(
        size, queue="team", workload_priority="high", priority_class="batch", scheduler="theirs", runtime_class="gvisor",
        topology="preferred:rack",
    )  # fmt: skip
    assert (made.labels[labels.KUEUE_QUEUE], made.labels[labels.KUEUE_PRIORITY_CLASS]) == ("team", "high")
    expected = Placement(
        priority_class="batch", scheduler="theirs", runtime_class="gvisor", topology=Topology(level="rack", is_required=False)
    )
    assert [group.placement for group in made.groups] == [expected] * len(made.groups)


def test_no_cluster_policy_unless_asked_for() -> None:
    made = make(2)
    assert not {labels.KUEUE_QUEUE, labels.KUEUE_PRIORITY_CLASS} & set(made.labels)
    assert all(group.placement == Placement() and not group.claims and not group.overlays for group in made.groups)


@pytest.mark.parametrize("name", ["queue", "workload_priority"])
def test_names_of_kueue_s_objects(name: str) -> None:
    with pytest.raises(InvalidSpec, match=f"{name} 'No_Name' is not valid"):
        make(2, **{name: "No_Name"})
