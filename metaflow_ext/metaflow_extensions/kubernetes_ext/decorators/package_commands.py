"""Core's commands that put the code package into a container, and the same by copy where files are shared."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Any


def init_commands(environment: Any, package_url: str, package_metadata: str, datastore: str) -> Sequence[str]:
    """Escaped as core escapes them. With datastore "local", which core refuses, the package is copied."""
    if datastore != "local":
        return list(environment.get_package_commands(package_url, datastore, package_metadata))
    from metaflow.metaflow_environment import MetaflowEnvironment

    commands = MetaflowEnvironment.get_package_commands(_SharedFiles(), package_url, datastore, package_metadata)
    # What Metaflow looks for in .metaflow of the working directory (cards, for one) is then the client's own.
    link = f"ln -s {_escaped(quote(local_root()))} .metaflow"
    return [link if command == "mkdir .metaflow" else command for command in commands]


def local_root() -> str:
    """The .metaflow that this process finds from its working directory, absolute."""
    from os.path import dirname

    from metaflow.plugins.cards.card_datastore import CardDatastore

    return dirname(str(CardDatastore.get_storage_root("local")))


def bootstrap_commands(environment: Any, step: str, datastore: str) -> Sequence[str]:
    """What the environment (conda, pypi, ...) does before the step; nothing where files are shared."""
    return [] if datastore == "local" else list(environment.bootstrap_commands(step, datastore))


class _SharedFiles:
    """The two steps of MetaflowEnvironment.get_package_commands that differ when the pod sees the client's files."""

    def _get_download_code_package_cmd(self, url: str, datastore: str) -> str:
        return f"cp {_escaped(quote(url))} job.tar"

    def _get_install_dependencies_cmd(self, datastore: str) -> str:
        return "true"


def _escaped(text: str) -> str:
    """`text` inside `bash -c "..."` before shlex takes it apart."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
