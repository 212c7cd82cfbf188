"""Backends: what is built is of the kind they say, and the selectors find exactly its Jobs and pods."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from metaflow_extensions.kubernetes_ext.backends.appwrapper import AppWrapperBackend
from metaflow_extensions.kubernetes_ext.backends.base import Backend
from metaflow_extensions.kubernetes_ext.backends.job import JobBackend
from metaflow_extensions.kubernetes_ext.backends.jobset import JobSetBackend
from metaflow_extensions.kubernetes_ext.backends.registry import BACKENDS, backend, backend_of
from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.status.model import Observation, Phase
from tests.builders import make_spec


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_what_is_built_is_of_the_backends_kind(name: str) -> None:
    chosen: Backend = backend(name)
    manifest = chosen.build(make_spec(1))
    assert (manifest["apiVersion"], manifest["kind"]) == (chosen.api_version, chosen.kind)
    assert manifest["metadata"]["name"] == make_spec(1).name


@pytest.mark.parametrize(
    ("name", "pods", "jobs"),
    [
        ("job", "batch.kubernetes.io/job-name=w", None),
        ("appwrapper", "jobset.sigs.k8s.io/jobset-name=w", "jobset.sigs.k8s.io/jobset-name=w"),
        ("jobset", "jobset.sigs.k8s.io/jobset-name=w", "jobset.sigs.k8s.io/jobset-name=w"),
    ],
)
def test_selectors(name: str, pods: str, jobs: str | None) -> None:
    assert (backend(name).pod_selector("w"), backend(name).job_selector("w")) == (pods, jobs)


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_a_workload_that_was_never_seen_is_pending(name: str) -> None:
    nothing = Observation(at=datetime(2026, 1, 1, tzinfo=timezone.utc))
    assert backend(name).reduce(nothing).phase is Phase.PENDING


def test_group_and_version_of_the_jobset_api_are_configurable() -> None:
    ours = JobSetBackend(group="jobset.example.com", version="v1")
    assert ours.build(make_spec(2))["apiVersion"] == ours.api_version == "jobset.example.com/v1"


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidSpec, match="there are appwrapper, job, jobset"):
        backend("cronjob")


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("batch/v1", "Job", JobBackend()),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", JobSetBackend()),
        ("jobset.x-k8s.io/v1", "JobSet", JobSetBackend()),
        ("workload.codeflare.dev/v1beta2", "AppWrapper", AppWrapperBackend()),
        ("batch/v1", "CronJob", None),
        ("example.com/v1", "Job", None),
        ("v1", "Pod", None),
    ],
)
def test_the_backend_of_an_object_is_found_by_its_group_and_kind(api_version: str, kind: str, expected: Backend | None) -> None:
    assert backend_of(api_version, kind) == expected
