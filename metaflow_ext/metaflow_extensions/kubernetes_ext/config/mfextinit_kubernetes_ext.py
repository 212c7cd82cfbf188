"""Metaflow's extension point for settings: each is read from METAFLOW_<NAME> or the configuration file (docs/settings.md)."""

from metaflow.metaflow_config_funcs import from_conf

# Which ranks' logs are shown while a gang runs: control, all, none, or a list of ranks such as 0,3.
KUBERNETES_LOGS = from_conf("KUBERNETES_LOGS", "control")

# Seconds between SIGTERM and SIGKILL when a pod is stopped.
KUBERNETES_GRACE_PERIOD_SECONDS = from_conf("KUBERNETES_GRACE_PERIOD_SECONDS", 30)

# Seconds until all ranks must run, without the time in a queue; 0: no limit. Clusters grow by nodes, and people wait for them.
KUBERNETES_LAUNCH_TIMEOUT = from_conf("KUBERNETES_LAUNCH_TIMEOUT", 24 * 60 * 60)

# Seconds for which an image may fail to be pulled; 0: no limit. Registries are away for minutes; a wrong name is wrong for ever.
KUBERNETES_IMAGE_PULL_TIMEOUT = from_conf("KUBERNETES_IMAGE_PULL_TIMEOUT", 20 * 60)

# Seconds after which ranks that stand still are told; 0: nobody looks. A gang that waits that long in silence is worth a look.
KUBERNETES_STALL_TIMEOUT = from_conf("KUBERNETES_STALL_TIMEOUT", 10 * 60)

# How often a workload that the cluster took away (eviction, preemption, a lost node) starts again within its attempt.
KUBERNETES_MAX_RESTARTS = from_conf("KUBERNETES_MAX_RESTARTS", 3)

# Seconds that a finished workload stays. Core's own setting, which Metaflow 2.19.0 doesn't have yet.
KUBERNETES_JOB_TTL_SECONDS_AFTER_FINISHED = from_conf("KUBERNETES_JOB_TTL_SECONDS_AFTER_FINISHED", 7 * 24 * 60 * 60)
