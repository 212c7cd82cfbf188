"""Metaflow's extension point for names under `metaflow`."""

from .. import __version__  # noqa: F401
