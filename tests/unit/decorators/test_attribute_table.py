"""docs/attributes.md says of every attribute where it goes, and there it is: in each kind of workload that the table has it for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from metaflow.plugins.kubernetes.kubernetes_decorator import KubernetesDecorator as Core

from metaflow_extensions.kubernetes_ext.backends.base import Manifest
from metaflow_extensions.kubernetes_ext.decorators import attributes as attribute_table
from metaflow_extensions.kubernetes_ext.decorators import backend_choice
from metaflow_extensions.kubernetes_ext.decorators.launch_spec import TaskCode, TaskRef, launch_spec
from metaflow_extensions.kubernetes_ext.decorators.preflight import stand_in_script
from metaflow_extensions.kubernetes_ext.decorators.settings import Settings

TABLE = Path(__file__).parents[3] / "docs" / "attributes.md"
ROW = re.compile(r"\| `(\w+)` \| (.*) \| (.*) ?\|$")
FIELD = re.compile(r"(pod|workload): `([\w.\[\]-]+)`")
TMPFS = {"use_tmpfs": True, "tmpfs_path": "/tmpfs"}
# What an attribute is set to, and what else it needs. Where there is no value, the attribute has no field.
VALUES: dict[str, Any] = {
    "cpu": "3", "memory": "5Gi", "disk": "7Gi", "gpu": 2, "gpu_vendor": ("amd", {"gpu": 1}), "extended_resources": {"a.com/b": 1},
    "qos": "guaranteed", "image": "mine:1", "image_pull_policy": "Always", "image_pull_secrets": ["registry"],
    "service_account": "me", "secrets": ("keys",), "security_context": {"run_as_user": 1}, "port": 8080, "namespace": "team",
    "labels": {"a": "b"}, "annotations": {"a": "b"}, "shared_memory": 64, "use_tmpfs": (True, {"tmpfs_path": "/tmpfs"}),
    "tmpfs_size": (64, TMPFS), "tmpfs_path": ("/other", {"use_tmpfs": True}), "tmpfs_tempdir": (False, TMPFS),
    "persistent_volume_claims": {"data": "/data"}, "node_selector": {"a": "b"}, "tolerations": [{"operator": "Exists"}],
    "affinity": {"podAffinity": {}}, "instance_type": "g5.xlarge", "runtime_class": "nvidia", "priority_class": "high",
    "scheduler": "other", "topology": "required:rack", "resource_claims": ["gpu"], "grace_period": 99, "queue": "team",
    "workload_priority": "high", "gang": "coscheduling", "backend": "appwrapper",
    "fault_tolerance": ({"retry_limit": 7}, {"backend": "appwrapper"}), "stall_timeout": 77,
}  # fmt: skip


def table() -> dict[str, tuple[str, str]]:
    rows = [match.groups() for line in TABLE.read_text(encoding="utf-8").splitlines() if (match := ROW.match(line))]
    assert len(rows) == len({name for name, _, _ in rows}), "a row each"
    return {name: (field, only.strip()) for name, field, only in rows}


def test_every_attribute_is_in_the_table() -> None:
    assert set(table()) == {*attribute_table.CORE, *attribute_table.OURS}


def built(size: int | None, **attributes: Any) -> Manifest:
    options = {**attribute_table.defaults(Core.defaults), "image": "python:3.11", "namespace": "default", **attributes}
    options["secrets"] = options["secrets"] or ()
    for name in ("use_tmpfs", "tmpfs_tempdir"):
        options[name] = attribute_table.is_true(options[name])
    task = TaskRef(flow="F", run_id="1", step="train", task_id="7", attempt=0, user="me", num_parallel=size)
    spec = launch_spec(task, options, TaskCode(script=stand_in_script(), environment={}), Settings(), "s")
    return backend_choice.backend_of(size, options, Settings()).build(spec)


def pods(manifest: Manifest) -> list[Any]:
    """The templates of its pods."""
    if manifest["kind"] == "AppWrapper":
        return pods(manifest["spec"]["components"][0]["template"])
    if manifest["kind"] == "JobSet":
        return [one["template"]["spec"]["template"] for one in manifest["spec"]["replicatedJobs"]]
    return [manifest["spec"]["template"]]


def at(value: Any, path: str) -> Any:
    for name in re.split(r"\.", path):
        value = (value or {}).get(name.removesuffix("[]"))
        value = value[0] if name.endswith("[]") else value
    return value


@pytest.mark.parametrize("backend", ["", "appwrapper"])
@pytest.mark.parametrize("size", [None, 3])
@pytest.mark.parametrize(("name", "field"), [(name, field) for name, (field, _) in table().items() if FIELD.search(field)])
def test_it_is_where_the_table_says(name: str, field: str, size: int | None, backend: str) -> None:
    value, further = VALUES[name] if isinstance(VALUES[name], tuple) and name != "secrets" else (VALUES[name], {})
    further = {**({"backend": backend} if backend else {}), **further}
    match = FIELD.search(field)
    assert match is not None
    where, path = match.groups()
    without, with_it = (
        [one] if where == "workload" else pods(one) for one in (built(size, **further), built(size, **{**further, name: value}))
    )
    if name == "backend" and backend:
        return
    for before, after in zip(without, with_it, strict=True):
        assert at(after, path) is not None
        assert at(before, path) != at(after, path)


def test_what_has_no_field_changes_no_manifest() -> None:
    nowhere = [name for name, (field, _) in table().items() if field.startswith("none")]
    assert nowhere == ["logs", "launch_timeout", "image_pull_timeout", "max_restarts"]
    for name in nowhere:
        assert built(3, **{name: "5" if name != "logs" else "all"}) == built(3)
