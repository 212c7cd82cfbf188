"""What a manifest is: a plain dictionary, camelCase, of the fields that say something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]


def present(**fields: Any) -> Manifest:
    """The fields that say something: not None, and no empty list or mapping."""
    return {
        name: value
        for name, value in fields.items()
        if value is not None and not (isinstance(value, (list, Mapping)) and not value)
    }
