"""Any value of any attribute of @kubernetes: refused with a message, or a manifest that the API server takes."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metaflow.plugins.kubernetes.kubernetes_decorator import KubernetesDecorator as Core

from metaflow_extensions.kubernetes_ext.backends.registry import backend_of
from metaflow_extensions.kubernetes_ext.cli import dry_run
from metaflow_extensions.kubernetes_ext.cluster.protocol import PODS
from metaflow_extensions.kubernetes_ext.decorators import attributes as attribute_table
from metaflow_extensions.kubernetes_ext.decorators import backend_choice, step_check
from metaflow_extensions.kubernetes_ext.decorators.container_script import TaskScript
from metaflow_extensions.kubernetes_ext.decorators.host_errors import KubernetesError
from metaflow_extensions.kubernetes_ext.decorators.launch_spec import TaskCode, TaskRef, launch_spec
from metaflow_extensions.kubernetes_ext.decorators.settings import Settings
from metaflow_extensions.kubernetes_ext.errors import InvalidSpec, Rejected
from metaflow_extensions.kubernetes_ext.runtime.resources import resource_of
from tests.contract.places import ON_REAL, Place

EXAMPLES = int(os.environ.get("METAFLOW_KUBERNETES_EXT_EXAMPLES", "200"))
SCRIPT = TaskScript(
    pathspec="Flow/1/train/7", attempt=0, datastore="s3", datastore_root="s3://b/r", init_commands=[], bootstrap_commands=[],
    step_words=["python", "flow.py", "step", "train"],
)  # fmt: skip

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text("abz019-._/:AZ", max_size=70)  # nearly what Kubernetes takes
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**33), 2**70), st.floats(), texts, names)
anything = st.one_of(scalars, st.lists(scalars, max_size=3), st.dictionaries(st.one_of(texts, names), scalars, max_size=3))
sizes = st.from_regex(r"\A-?[0-9]{1,20}(\.[0-9]{1,12})?(m|k|Ki|M|Mi|G|Gi|T|e3|E|Ei|u|n)?\Z")


def like(*values: Any) -> st.SearchStrategy[Any]:
    """Mostly what is right or nearly right, so that it goes on to the server."""
    return st.one_of(st.sampled_from(values), st.sampled_from(values), anything)


def pairs(keys: Any, values: Any) -> st.SearchStrategy[Any]:
    return st.one_of(st.dictionaries(keys, values, max_size=3), anything)


label_keys = st.one_of(
    st.sampled_from(["team", "example.com/team", "kubernetes.io/arch", "a" * 63, "x/" + "b" * 63]), names, texts
)
toleration = st.fixed_dictionaries(
    {},
    optional={
        "key": st.one_of(st.sampled_from(["gpu", "node.kubernetes.io/not-ready"]), names),
        "operator": st.sampled_from(["Equal", "Exists", "Gt", "Lt", "In", ""]),
        "value": st.one_of(st.sampled_from(["true", ""]), names),
        "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule", "Never", ""]),
        "toleration_seconds": st.one_of(st.integers(-1, 2**33), scalars),
        "tolerationSeconds": st.integers(0, 600),
    },
)
security_context = st.fixed_dictionaries(
    {},
    optional={
        "privileged": st.booleans(),
        "allow_privilege_escalation": st.one_of(st.booleans(), scalars),
        "run_as_user": st.one_of(st.integers(-1, 2**33), scalars),
        "runAsGroup": st.integers(-1, 2**31),
        "run_as_non_root": st.booleans(),
        "read_only_root_filesystem": st.booleans(),
        "capabilities": st.sampled_from([{"drop": ["ALL"]}, {"add": ["NET_ADMIN"]}, {"lose": ["ALL"]}, "ALL"]),
        "seccomp_profile": st.sampled_from([{"type": "RuntimeDefault"}, {"type": "Default"}, {}]),
        "proc_mount": st.sampled_from(["Default", "Unmasked", "None"]),
        "se_linux_options": st.sampled_from([{"level": "s0"}, {"levels": "s0"}]),
        "no_such_field": st.just(True),
    },
)
ATTRIBUTES: dict[str, st.SearchStrategy[Any]] = {
    "cpu": st.one_of(sizes, like(1, "1", "500m", 0.5, "0.001", 0.0001, "1e3")),
    "memory": st.one_of(sizes, like(1, "4096", "4Gi", "0.5Gi", "100000000")),
    "disk": st.one_of(sizes, like(1, "10240", "1Ti")),
    "image": like("python:3.11", "registry.example:5000/a/b@sha256:" + "0" * 64, " python", "UPPER/case"),
    "image_pull_policy": like("Always", "IfNotPresent", "Never", "always", "Sometimes"),
    "image_pull_secrets": st.one_of(st.lists(st.one_of(names, scalars), max_size=2), anything),
    "service_account": like("default", "a.b", "A"),
    "secrets": st.one_of(st.lists(st.one_of(names, scalars), max_size=2), like("a", "a,b", "")),
    "node_selector": pairs(label_keys, st.one_of(names, scalars)),
    "namespace": like("team-a", "a.b", "Team", "x" * 64),
    "gpu": like(0, 1, "2", 2**31, "1.5"),
    "gpu_vendor": like("nvidia", "amd", "NVIDIA", "intel"),
    "tolerations": st.one_of(st.lists(toleration, max_size=2), anything),
    "labels": pairs(label_keys, st.one_of(names, scalars)),
    "annotations": pairs(label_keys, st.one_of(texts, scalars)),
    "use_tmpfs": like(True, False, "true", "no"),
    "tmpfs_tempdir": like(True, False),
    "tmpfs_size": st.one_of(sizes, like("100", "1Gi")),
    "tmpfs_path": like("/metaflow_temp", "relative", "/a:b", "/dev/shm", "/"),
    "persistent_volume_claims": pairs(st.one_of(st.sampled_from(["data", "a.b", "dhsm"]), names), st.one_of(st.just("/data"), names)),
    "shared_memory": st.one_of(sizes, like("64", "1Gi")),
    "port": like(1, 29500, "8080", 65535, 65536),
    "qos": like("Burstable", "guaranteed", "BestEffort"),
    "extended_resources": pairs(st.one_of(st.sampled_from(["vpc.amazonaws.com/efa", "example.com/fpga", "cpu"]), names), st.one_of(sizes, scalars)),
    "security_context": st.one_of(security_context, anything),
    "logs": like("all", "0,1", [1, 2]),
    "grace_period": like(0, 30, "60", 2**31),
    "launch_timeout": like(0, 60),
    "image_pull_timeout": like(0, 60),
    "stall_timeout": like(0, 60),
    "max_restarts": like(0, 3),
    "queue": like("team-a", "a.b", "Team", "x" * 64),
    "workload_priority": like("high", "High"),
    "priority_class": like("high", "system-node-critical", "High", ""),
    "scheduler": like("default-scheduler", "a/b"),
    "topology": like("required:rack", "preferred:a/b", "rack", "near:rack", "required:"),
    "affinity": like({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}, {"podAffinity": {}}, "{a: 1}"),
    "instance_type": like("g5.xlarge", "a,b", ["a"], ["a b"]),
    "runtime_class": like("gvisor", "a/b"),
    "resource_claims": like(["gpu"], {"gpu": "one"}, {"gpu": {"claim": "shared", "request": "a"}}, {"gpu": {}}, ["a.b"]),
    "pod_overlay": like({"hostNetwork": True}, {"metadata": {"labels": {"a": "b"}}}, {"restartPolicy": "Always"}, "priorityClassName: null", ["x"]),
    "gang": like("auto", "kueue", "coscheduling", "none", "Kueue"),
    "backend": like("appwrapper", "job", "jobset", "JobSet"),
    "fault_tolerance": like({"retry_limit": 2}, "{retry_pause: 5, terminal_exit_codes: [3]}", {"retries": 2}, {"retry_limit": -1}, []),
    "hostname_resolution_timeout": like(1, 600),
    "executable": like("python3"),
}  # fmt: skip

# Few at a time: of many, one is wrong for sure, and the server never sees the others.
some_attributes = st.sets(st.sampled_from(sorted(ATTRIBUTES)), max_size=3).flatmap(
    lambda names: st.fixed_dictionaries({name: ATTRIBUTES[name] for name in sorted(names)})
)


@ON_REAL
@settings(max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES == 200, suppress_health_check=list(HealthCheck))
@given(given_attributes=some_attributes, size=st.sampled_from([None, 1, 3]))
def test_a_message_or_a_manifest_that_the_server_takes(
    place: Place, given_attributes: dict[str, Any], size: int | None
) -> None:
    """The children of a JobSet are looked at, too: the API server checks pod templates in Jobs alone.

    What a pod_overlay says is the user's own word to the server.
    """
    manifest = made(given_attributes, size)
    if isinstance(manifest, str):
        assert len(manifest) > 10
        return
    manifest["metadata"]["namespace"] = place.namespace
    backend = backend_of(manifest["apiVersion"], manifest["kind"])
    assert backend is not None
    parts = [("the workload", resource_of(backend), manifest), *dry_run.parts(manifest)]
    for name, resource, body in parts:
        if resource != PODS:  # which only takes service accounts that are there
            refused = dry_run.refusal(place.admin, resource, body)
            is_their_word = isinstance(refused, Rejected) and given_attributes.get("pod_overlay")
            assert refused is None or is_their_word, f"{name}: {refused}"


@pytest.mark.parametrize("name", sorted({*attribute_table.CORE, *attribute_table.OURS}))
def test_every_attribute_is_tried(name: str) -> None:
    assert name in ATTRIBUTES


def made(given_attributes: dict[str, Any], size: int | None) -> dict[str, Any] | str:
    """As a step has it: checked, then built. The message where it is refused."""
    attributes = {**attribute_table.defaults(Core.defaults), "image": "python:3.11", "namespace": "default", **given_attributes}
    task = TaskRef(flow="Flow", run_id="1", step="train", task_id="7", attempt=0, user="me", num_parallel=size)
    try:
        step_check.check_attributes("train", attributes)
        secrets = attribute_table.command_options({"secrets": attributes["secrets"]})["secrets"]
        flags = {name: attribute_table.is_true(attributes[name]) for name in ("use_tmpfs", "tmpfs_tempdir")}
        options = {**attributes, **flags, "secrets": secrets, "run_time_limit": 3600}
        backend = backend_choice.backend_of(size, options, Settings())
        return backend.build(launch_spec(task, options, TaskCode(script=SCRIPT, environment={}), Settings(), "abc"))
    except (InvalidSpec, KubernetesError) as error:
        return str(error).strip()
