"""Older JobSets: what they don't know is left out where nothing is lost, and what is too old is said in one sentence."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.manifests.jobset import jobset
from metaflow_extensions.kubernetes_ext.manifests.versions import for_served_version, schema_fields
from tests.builders import make_spec

# What the CRDs of these releases have of the fields that matter here.
V0_4 = {"spec.network", "spec.network.enableDNSHostnames", "spec.replicatedJobs", "spec.startupPolicy"}
V0_5 = V0_4 | {"spec.ttlSecondsAfterFinished", "spec.managedBy"}
V0_6 = V0_5 | {"spec.network.publishNotReadyAddresses", "spec.coordinator"}


def test_a_recent_jobset_gets_the_whole_manifest() -> None:
    manifest = jobset(make_spec(2, ttl_seconds=60))
    assert for_served_version(manifest, V0_6) == manifest


def test_a_cluster_that_does_not_say_gets_the_whole_manifest() -> None:
    manifest = jobset(make_spec(2))
    assert for_served_version(manifest, None) == manifest


def test_jobset_0_5_is_not_asked_to_publish_names_early() -> None:
    manifest = jobset(make_spec(2, ttl_seconds=60))
    fitted = for_served_version(manifest, V0_5)
    assert fitted["spec"]["network"] == {"enableDNSHostnames": True}
    assert {**fitted["spec"], "network": manifest["spec"]["network"]} == manifest["spec"]
    assert "publishNotReadyAddresses" in manifest["spec"]["network"], "the argument is left alone"


def test_an_older_jobset_is_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidSpec) as refusal:
        for_served_version(jobset(make_spec(2)), V0_4)
    assert str(refusal.value) == (
        "The JobSet on this cluster is older than 0.5 (it has no spec.ttlSecondsAfterFinished): "
        "ask its administrator for JobSet 0.5 or later."
    )


def test_a_manifest_without_the_field_stays_as_it_is() -> None:
    assert for_served_version({"kind": "JobSet", "spec": {}}, V0_5) == {"kind": "JobSet", "spec": {}}


def test_schema_fields_are_dotted_paths_through_objects_and_lists() -> None:
    text = {"type": "string"}
    schema = {
        "properties": {
            "kind": text,
            "spec": {
                "properties": {
                    "network": {"properties": {"subdomain": text}},
                    "replicatedJobs": {
                        "type": "array",
                        "items": {"properties": {"name": text, "template": {"properties": {"spec": {}}}}},
                    },
                }
            },
        }
    }
    assert schema_fields(schema) == {
        "kind",
        "spec",
        "spec.network",
        "spec.network.subdomain",
        "spec.replicatedJobs",
        "spec.replicatedJobs.name",
        "spec.replicatedJobs.template",
    }
