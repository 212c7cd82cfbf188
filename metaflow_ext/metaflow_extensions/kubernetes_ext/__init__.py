"""Multi-node Metaflow steps on Kubernetes: one workload, all its ranks, told to its user. Importing this imports nothing."""

__version__ = "0.1.0"
