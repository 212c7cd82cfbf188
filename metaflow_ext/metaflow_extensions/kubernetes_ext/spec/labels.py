"""Every label and annotation key, ours and those of others that we read."""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "metaflow.org/"

# Labels of Metaflow workloads and their pods; the full values are in annotations of the same keys.
FLOW = f"{PREFIX}flow"
RUN_ID = f"{PREFIX}run-id"
STEP = f"{PREFIX}step"
TASK_ID = f"{PREFIX}task-id"
ATTEMPT = f"{PREFIX}attempt"
USER = f"{PREFIX}user"

# Of pods that have no Job above them (manifests.bare_pods), which would say so.
WORKLOAD = f"{PREFIX}workload"  # its name
GROUP = f"{PREFIX}group"
INDEX = f"{PREFIX}index"  # within the group

# Annotations.
SUBMISSION = f"{PREFIX}submission"  # random per submitting process: tells our own lost create from somebody else's object
WORLD_SIZE = f"{PREFIX}world-size"
RESTART = f"{PREFIX}restart"  # how many workloads of the same attempt the cluster has taken away before this one
CLIENT = f"{PREFIX}client"  # the process that follows the workload: runtime.process.Client as JSON
KILLED_BY = f"{PREFIX}killed-by"  # left by `kubernetes kill` before the deletion, for whoever follows the workload
STALLED = f"{PREFIX}stalled"  # status.stalled.Stalled as JSON, while no rank gets on

APP_NAME = "app.kubernetes.io/name"
APP_INSTANCE = "app.kubernetes.io/instance"
APP_COMPONENT = "app.kubernetes.io/component"
APP_PART_OF = "app.kubernetes.io/part-of"
APP_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "metaflow-kubernetes-ext"

# Kueue's, for the top object only: on Jobs or pods of a JobSet they would be queued a second time.
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
KUEUE_MAX_EXECUTION_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
TOP_OBJECT_ONLY = frozenset({KUEUE_QUEUE, KUEUE_PRIORITY_CLASS, KUEUE_MAX_EXECUTION_SECONDS})


def inherited(given: Mapping[str, str]) -> dict[str, str]:
    """The labels of a workload that what is made for it has too."""
    return {key: value for key, value in given.items() if key not in TOP_OBJECT_ONLY}


# Kueue's, annotations of pods: where they are to run (kueue.x-k8s.io/v1beta1 PodSetTopologyRequest).
KUEUE_REQUIRED_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
KUEUE_PREFERRED_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
KUEUE_PODSET_GROUP = "kueue.x-k8s.io/podset-group-name"

# Others', of pods: Multus' (an annotation), and Istio's (a label now, an annotation once).
NETWORKS = "k8s.v1.cni.cncf.io/networks"
ISTIO_INJECT = "sidecar.istio.io/inject"

# Set by Kueue on its Workload: whose it is.
KUEUE_JOB_UID = "kueue.x-k8s.io/job-uid"

# Of pods: their PodGroup, for the coscheduling plugin.
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"

# Of AppWrappers: before the names of their annotations.
APPWRAPPER = "workload.codeflare.dev.appwrapper/"

# Set by the JobSet controller on Jobs and pods.
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_GROUP = "jobset.sigs.k8s.io/replicatedjob-name"
JOBSET_GROUP_REPLICAS = "jobset.sigs.k8s.io/replicatedjob-replicas"
JOBSET_JOB_INDEX = "jobset.sigs.k8s.io/job-index"
JOBSET_RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
JOBSET_UID = "jobset.sigs.k8s.io/jobset-uid"

# Set by the Job controller on pods.
JOB_NAME = "batch.kubernetes.io/job-name"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
