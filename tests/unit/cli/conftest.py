"""Metaflow resolves its plugins, ours among them, when it is imported: it comes first, as in every process of a flow."""

import metaflow  # noqa: F401
