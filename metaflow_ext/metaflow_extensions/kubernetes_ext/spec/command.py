"""Shell commands whose every user value is data: quoted once, here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def quoted(words: Sequence[str]) -> str:
    """The words as one POSIX shell command that runs exactly them."""
    return shlex.join(words)


def bash(script: str) -> tuple[str, ...]:
    """Run `script` in bash."""
    return ("bash", "-c", script)
