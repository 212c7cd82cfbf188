"""Images: their contents are ignored, but names that can't work fail as they do on a real node.

A name that begins with `devcluster/does-not-exist` stands for an image that no registry has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MISSING = "devcluster/does-not-exist"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?))*(?::[0-9]+)?"
_REFERENCE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[\w][\w.-]{{0,127}})?(?:@[a-z0-9]+:[0-9a-f]{{32,}})?")


@dataclass(frozen=True)
class ImageProblem:
    """Why a container's image can't be used; with `is_pull` the node tries again and again."""

    reason: str
    message: str
    is_pull: bool = False


def image_problem(image: str) -> ImageProblem | None:
    """None for a usable name."""
    if not _REFERENCE.fullmatch(image):
        text = f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": '
        return ImageProblem("InvalidImageName", text + "invalid reference format")
    if image.startswith(MISSING):
        text = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": not found'
        return ImageProblem("ErrImagePull", text, is_pull=True)
    return None


def back_off_message(image: str, problem: ImageProblem) -> str:
    """The message while waiting for the next try."""
    return f'Back-off pulling image "{image}": {problem.reason}: {problem.message}'
