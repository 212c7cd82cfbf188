"""Tells Metaflow which files of this extension travel to the task in the code package."""

include_suffixes = [".py"]
