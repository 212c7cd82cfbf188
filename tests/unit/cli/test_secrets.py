"""What is printed and kept of an object has no secrets in it."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.cli.secrets import REMOVED, without_secrets


@pytest.mark.parametrize(
    ("name", "value", "is_removed"),
    [
        pytest.param("METAFLOW_SERVICE_HEADERS", '{"x-api-key": "abc"}', True, id="the service's key"),
        pytest.param("METAFLOW_SERVICE_HEADERS", "{}", False, id="no key"),
        pytest.param("WANDB_API_KEY", "abc", True, id="a key"),
        pytest.param("hf_token", "abc", True, id="small letters"),
        pytest.param("DB_PASSWORD", "abc", True, id="a password"),
        pytest.param("MF_MASTER_PORT", "3456", False, id="a port"),
        pytest.param("TOKENIZERS_PARALLELISM", "false", False, id="a word that only begins so"),
        pytest.param("METAFLOW_ARGO_WORKFLOWS_KUBERNETES_SECRETS", "s3", False, id="names of secrets"),
    ],
)
def test_values_of_variables_with_telling_names_are_removed(name: str, value: str, is_removed: bool) -> None:
    pod = {"spec": {"containers": [{"env": [{"name": name, "value": value}, {"name": "A", "value": "b"}]}]}}
    found, removed = without_secrets({"spec": {"replicatedJobs": [{"template": pod}, {"template": pod}]}})
    shown = REMOVED if is_removed else value
    cleaned = {"spec": {"containers": [{"env": [{"name": name, "value": shown}, {"name": "A", "value": "b"}]}]}}
    assert found == {"spec": {"replicatedJobs": [{"template": cleaned}, {"template": cleaned}]}}
    assert removed == ([name] if is_removed else [])


def test_references_stay_and_the_copy_of_the_whole_object_goes() -> None:
    env = [{"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    made = {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}}, "env": env}
    assert without_secrets(made) == ({"metadata": {"annotations": {"a": "b"}}, "env": env}, [])
