"""The rules for names and labels, with the sentences the server gives for each broken one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..errors import Cause

_LABEL_1123 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_1123 = rf"{_LABEL_1123}(\.{_LABEL_1123})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_ENV_NAME = re.compile(r"[ -<>-~]+")
_CONFIG_KEY = "[-._a-zA-Z0-9]+"


def _regex_text(text: str, pattern: str, *examples: str) -> str:
    shown = "".join(f"'{example}',  or " for example in examples[:-1]) + f"'{examples[-1]}'"
    return f"{text} (e.g. {shown}, regex used for validation is '{pattern}')"


_SUBDOMAIN_TEXT = _regex_text(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN_1123,
    "example.com",
)
_LABEL_1123_TEXT = _regex_text(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL_1123,
    "my-name",
    "123-abc",
)
_LABEL_1035_TEXT = _regex_text(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_LABEL_VALUE_TEXT = _regex_text(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_QUALIFIED_TEXT = _regex_text(
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_CONFIG_KEY_TEXT = _regex_text(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_ENV_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def _broken(value: str, pattern: str, text: str, limit: int) -> list[str]:
    found = [f"must be no more than {limit} characters"] if len(value) > limit else []
    return found if re.fullmatch(pattern, value) else [*found, text]


def dns_subdomain(value: str) -> list[str]:
    return _broken(value, _SUBDOMAIN_1123, _SUBDOMAIN_TEXT, 253)


def dns_label(value: str) -> list[str]:
    return _broken(value, _LABEL_1123, _LABEL_1123_TEXT, 63)


def dns_1035_label(value: str) -> list[str]:
    return _broken(value, _LABEL_1035, _LABEL_1035_TEXT, 63)


def label_value(value: str) -> list[str]:
    return _broken(value, _LABEL_VALUE, _LABEL_VALUE_TEXT, 63)


def env_name(value: str) -> list[str]:
    return [] if _ENV_NAME.fullmatch(value) else [_ENV_TEXT]


def config_key(value: str) -> list[str]:
    return _broken(value, _CONFIG_KEY, _CONFIG_KEY_TEXT, 253)


def qualified_name(value: str) -> list[str]:
    """A label key or condition type: an optional DNS prefix and a name."""
    prefix, slash, name = value.rpartition("/")
    if value.count("/") > 1:
        return [
            "a qualified name " + _QUALIFIED_TEXT.removeprefix("name part ") + " with an optional DNS subdomain "
            "prefix and '/' (e.g. 'example.com/MyName')"
        ]
    found = []
    if slash:
        found += ["prefix part must be non-empty"] if not prefix else [f"prefix part {t}" for t in dns_subdomain(prefix)]
    if not name:
        found.append("name part must be non-empty")
    if len(name) > 63:
        found.append("name part must be no more than 63 characters")
    return found if re.fullmatch(_QUALIFIED, name) else [*found, _QUALIFIED_TEXT]


def go_value(value: Any) -> str:
    """A value as Go's field errors print it: strings quoted, the rest as JSON."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"))
    return str(value)


def wrong(field: str, value: Any, text: str) -> Cause:
    return Cause(field, f"Invalid value: {go_value(value)}: {text}")


def required(field: str, text: str = "") -> Cause:
    return Cause(field, f"Required value: {text}" if text else "Required value", "FieldValueRequired")


def unsupported(field: str, value: Any, supported: list[str] | tuple[str, ...]) -> Cause:
    listed = ", ".join(f'"{item}"' for item in supported)
    return Cause(field, f"Unsupported value: {go_value(value)}: supported values: {listed}", "FieldValueNotSupported")


def missing(field: str, value: Any) -> Cause:
    return Cause(field, f"Not found: {go_value(value)}", "FieldValueNotFound")


def duplicate(field: str, value: Any) -> Cause:
    return Cause(field, f"Duplicate value: {go_value(value)}", "FieldValueDuplicate")


def banned(field: str, text: str) -> Cause:
    return Cause(field, f"Forbidden: {text}", "FieldValueForbidden")


def each_text(field: str, value: Any, texts: list[str]) -> list[Cause]:
    return [wrong(field, value, text) for text in texts]


def label_causes(labels: Mapping[str, str], field: str) -> list[Cause]:
    """Broken rules of a labels map; the value's error names the map, as the server's does."""
    found = []
    for key, value in labels.items():
        found += each_text(field, key, qualified_name(key))
        found += each_text(field, value, label_value(value))
    return found


def annotation_causes(annotations: Mapping[str, str], field: str) -> list[Cause]:
    found = [cause for key in annotations for cause in each_text(field, key, qualified_name(key.lower()))]
    if sum(len(key) + len(value) for key, value in annotations.items()) > 256 * 1024:
        found.append(Cause(field, "Too long: may not be more than 262144 bytes", "FieldValueTooLong"))
    return found
