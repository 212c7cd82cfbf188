"""Values of attributes and settings that are dictionaries or lists: given as such, or as JSON or YAML text. On the client alone."""

from __future__ import annotations

import json
from typing import Any

from ..errors import InvalidSpec


def structured(value: Any, what: str) -> Any:
    """The value that a text stands for; another value is returned as it is. InvalidSpec where the text is neither JSON nor YAML."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        pass
    import yaml

    try:
        return yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise InvalidSpec(f"{what} is neither JSON nor YAML: {' '.join(str(error).split())}") from None


def mapping(value: Any, what: str) -> dict[str, Any]:
    """None and "" are an empty one."""
    found = structured(value, what)
    if found in (None, ""):
        return {}
    if not isinstance(found, dict):
        raise InvalidSpec(f"{what} is a dictionary, not {found!r}.")
    return found
