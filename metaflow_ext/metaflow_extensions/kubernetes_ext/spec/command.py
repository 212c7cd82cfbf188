"""The form in which a container runs a script."""

from __future__ import annotations


def bash(script: str) -> tuple[str, ...]:
    """Run `script` in bash."""
    return ("bash", "-c", script)
