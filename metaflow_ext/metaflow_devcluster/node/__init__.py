"""The node: plays the kubelet and runs every container as a local process.

The image is ignored; a process sees the machine's files. What follows from that, and what is done about it, is
said where it happens: `environment` (names and paths in variables), `volumes`, `addresses`, `shim` (no orphans).
"""
