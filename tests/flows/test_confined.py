"""Gangs where pods may do little and reach little."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from tests.contract import places
from tests.flows.conftest import GANG_OPTIONS, ON_REAL_S3, Runner
from tests.flows.test_gangs import read_run

pytestmark = ON_REAL_S3

RESTRICTED = {
    "run_as_non_root": True,
    "run_as_user": 1000,
    "allow_privilege_escalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccomp_profile": {"type": "RuntimeDefault"},
}


def test_a_namespace_that_enforces_restricted(runner: Runner) -> None:
    runner.as_admin("label", "namespace", runner.namespace, "pod-security.kubernetes.io/enforce=restricted")
    refused = runner.gang("run", "--size", "2")
    assert refused.code != 0
    assert 'violates PodSecurity "restricted' in refused.output, str(refused)
    done = runner.gang("run", "--size", "2", options=f"{GANG_OPTIONS},security_context={json.dumps(RESTRICTED)}")
    assert done.code == 0, str(done)
    assert eval(read_run(runner, names=("ranks",))["data"]["ranks"]) == [0, 1]


def test_pods_have_no_token_and_look_up_no_name_but_the_datastore_s_and_each_other_s(runner: Runner) -> None:
    """The cluster's pods reach nothing but its DNS and S3. Names are looked up in the pod's namespace first."""
    done = runner.gang("run", "--size", "3", METAFLOW_SKIP_INSTALL_DEPENDENCIES="1")
    assert done.code == 0, str(done)
    log = Path(os.environ[f"{places.CLUSTER}STATE"]) / "log" / "coredns"
    asked = set(re.findall(rf'"[A-Z]+ IN (\S+?)\.{runner.namespace}\.svc\.cluster\.local\.', log.read_text()))
    workload = next(iter(re.findall(r"JobSet (\S+) created", done.output)))
    assert asked == {f"{workload}-control-0-0.{workload}"}
    groups = json.loads(runner.as_admin("get", "jobset", workload, "-o", "json"))["spec"]["replicatedJobs"]
    pods = [group["template"]["spec"]["template"]["spec"] for group in groups]
    assert [pod["automountServiceAccountToken"] for pod in pods] == [False, False]
