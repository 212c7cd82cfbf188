"""Whose word counts for an attribute: the step's, @resources', a setting's, or what a site says for all steps."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.decorators.attributes import is_same
from metaflow_extensions.kubernetes_ext.decorators.site_policy import (
    BUILT_IN,
    DEFAULTS,
    FORCED,
    IMAGE_PREFIX,
    RESOURCES,
    SETTINGS,
    STEP,
    Effective,
    SitePolicy,
    effective,
)
from metaflow_extensions.kubernetes_ext.errors import InvalidSpec

USUAL = {"cpu": "1", "image": None, "queue": None, "tolerations": None, "labels": None, "pod_overlay": None, "secrets": None}


def counting(step: dict[str, Any] | None = None, resources: dict[str, Any] | None = None, **policy: Any) -> Effective:
    """`step` is what its decorator says, `resources` what @resources does."""
    step, resources = step or {}, resources or {}
    return effective({**USUAL, **step, **resources}, USUAL, set(step), set(resources), SitePolicy(**policy))


@pytest.mark.parametrize(
    ("given", "value", "origin"),
    [
        pytest.param({}, "1", BUILT_IN, id="nobody"),
        pytest.param({"defaults": {"cpu": 2}}, 2, DEFAULTS, id="the site's default"),
        pytest.param({"step": {"cpu": 3}, "defaults": {"cpu": 2}}, 3, STEP, id="the step before the site's default"),
        pytest.param({"resources": {"cpu": "4.0"}, "defaults": {"cpu": 2}}, "4.0", RESOURCES, id="@resources before it, too"),
        pytest.param({"step": {"cpu": 3}, "forced": {"cpu": 8}}, 8, FORCED, id="what the site forces, before the step"),
    ],
)
def test_the_stronger_word_counts(given: dict[str, Any], value: Any, origin: str) -> None:
    found = counting(**given)
    assert (found.attributes["cpu"], found.origins["cpu"]) == (value, origin)


def test_the_setting_of_an_attribute_comes_before_the_site_s_default() -> None:
    found = counting(own={"queue": "mine"}, defaults={"queue": "theirs"})
    assert (found.attributes["queue"], found.origins["queue"]) == ("mine", "METAFLOW_KUBERNETES_QUEUE")


def test_a_number_that_core_has_only_written_anew_is_nobody_s_word() -> None:
    """With @resources for the memory alone, core's 1 becomes "1.0"."""
    found = effective({**USUAL, "cpu": "1.0"}, USUAL, set(), {"memory"}, SitePolicy(defaults={"cpu": 8}))
    assert (found.attributes["cpu"], found.origins["cpu"]) == (8, DEFAULTS)


def test_what_metaflow_s_settings_say_comes_before_the_site_s_default() -> None:
    found = effective({**USUAL, "cpu": "6"}, USUAL, set(), set(), SitePolicy(defaults={"cpu": 8}))
    assert (found.attributes["cpu"], found.origins["cpu"]) == ("6", SETTINGS)


@pytest.mark.parametrize(
    ("name", "mine", "forced", "expected"),
    [
        pytest.param("labels", {"a": "1", "b": "1"}, {"b": "2"}, {"a": "1", "b": "2"}, id="dictionaries are merged"),
        pytest.param("tolerations", [{"key": "a"}], [{"key": "b"}], [{"key": "a"}, {"key": "b"}], id="lists are joined"),
        pytest.param("tolerations", [{"key": "a"}], [{"key": "a"}], [{"key": "a"}], id="nothing comes twice"),
        pytest.param("tolerations", None, [{"key": "b"}], [{"key": "b"}], id="nothing of the step's"),
        pytest.param("secrets", "mine", ["theirs"], ["mine", "theirs"], id="a single one"),
        pytest.param("pod_overlay", {"a": 1}, {"a": 2}, [{"a": 1}, {"a": 2}], id="overlays, the site's last"),
        pytest.param("queue", "mine", "theirs", "theirs", id="a text is replaced"),
    ],
)
def test_what_is_forced_adds_to_the_step_s_where_it_can(name: str, mine: Any, forced: Any, expected: Any) -> None:
    assert counting({name: mine}, forced={name: forced}).attributes[name] == expected


@pytest.mark.parametrize(("image", "expected"), [("mine:1", "mirror/mine:1"), ("mirror/mine:1", "mirror/mine:1"), (None, None)])
def test_the_prefix_of_images_is_there_once(image: str | None, expected: str | None) -> None:
    found = counting({"image": image}, image_prefix="mirror/")
    assert found.attributes["image"] == expected
    if image == "mine:1":
        assert found.origins["image"] == f"{IMAGE_PREFIX} before that of {STEP}"


@pytest.mark.parametrize(("setting", "field"), [(DEFAULTS, "defaults"), (FORCED, "forced")])
def test_an_attribute_that_there_is_not_is_named_with_what_may_be_meant(setting: str, field: str) -> None:
    with pytest.raises(InvalidSpec, match=f"{setting}: @kubernetes has no attribute 'queu'. Is queue meant?"):
        SitePolicy(**{field: {"queu": "team"}})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("1", 1.0, True), (None, {}, True), ("", None, True), (0, None, False), (False, None, False), ("a", "b", False)],
)
def test_what_means_the_same(one: Any, other: Any, same: bool) -> None:
    assert is_same(one, other) is is_same(other, one) is same
