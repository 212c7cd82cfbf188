"""Older JobSets: what they don't know is left out where nothing is lost, and what is too old is said in one sentence."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.manifests.jobset import jobset
from metaflow_extensions.kubernetes_ext.manifests.versions import without_fields
from tests.builders import make_spec

PUBLISH = "spec.network.publishNotReadyAddresses"


def test_jobset_0_5_is_not_asked_to_publish_names_early() -> None:
    manifest = jobset(make_spec(2, ttl_seconds=60))
    fitted = without_fields(manifest, [PUBLISH])
    assert fitted["spec"]["network"] == {"enableDNSHostnames": True}
    assert {**fitted["spec"], "network": manifest["spec"]["network"]} == manifest["spec"]
    assert "publishNotReadyAddresses" in manifest["spec"]["network"], "the argument is left alone"


def test_an_older_jobset_is_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidSpec) as refusal:
        without_fields(jobset(make_spec(2)), ["spec.ttlSecondsAfterFinished", PUBLISH])
    assert str(refusal.value) == (
        "The JobSet on this cluster is older than 0.5 (it has no spec.ttlSecondsAfterFinished): "
        "ask its administrator for JobSet 0.5 or later."
    )


def test_a_field_we_did_not_expect_to_be_unknown_is_named() -> None:
    with pytest.raises(InvalidSpec, match=r"does not know spec\.replicatedJobs\.template"):
        without_fields(jobset(make_spec(2)), ["spec.replicatedJobs.template", PUBLISH])


def test_a_manifest_without_the_field_stays_as_it_is() -> None:
    assert without_fields({"kind": "JobSet", "spec": {}}, [PUBLISH]) == {"kind": "JobSet", "spec": {}}
