"""The little JSONPath that additionalPrinterColumns use: fields, indexes, and `[?(@.field=="value")]`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_STEP = re.compile(r"""\.([A-Za-z0-9_\-]+)|\['([^']+)'\]|\[(\d+)\]|\[\?\(@\.(\w+)\s*==\s*["']([^"']*)["']\)\]""")


def json_path(text: str) -> Callable[[Any], Any]:
    """A reader of the first value at a path; it answers None where the path leads nowhere."""
    steps = _STEP.findall(text.replace("\\.", "\0"))

    def read(value: Any) -> Any:
        for field, quoted, index, key, wanted in steps:
            name = (field or quoted).replace("\0", ".")
            if name:
                value = value.get(name) if isinstance(value, dict) else None
            elif index:
                value = value[int(index)] if isinstance(value, list) and len(value) > int(index) else None
            else:
                value = next((i for i in value or () if isinstance(i, dict) and i.get(key) == wanted), None)
            if value is None:
                return None
        return value

    return read
