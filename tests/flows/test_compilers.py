"""What core's compilers for Argo Workflows and Step Functions make is the same with and without the extension."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

FLOWS = Path(__file__).parent
RUN_WITHOUT = (
    "import runpy, sys; sys.path.insert(0, sys.argv[1]); sys.argv = sys.argv[2:]; "
    "sys.path.insert(0, sys.argv[0].rpartition('/')[0]); runpy.run_path(sys.argv[0], run_name='__main__')"
)
# Time stamps; the package's address and hash, which the extension's own files change; core's random names and tokens.
VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00|[0-9a-f]{40}|/data/[0-9a-f]{2}/|(?<=set_parameters )\w+|(?<=`pwd`/)\w+|(?<=flow-0-)\w{4}"
)


@pytest.fixture(scope="module")
def packages_without_extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This interpreter's packages but for ours."""
    folder = tmp_path_factory.mktemp("packages")
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        is_ours = "metaflow_kubernetes_ext" in entry.name or entry.name in ("metaflow_extensions", "metaflow_devcluster")
        if not is_ours and not entry.name.startswith("__editable__"):
            (folder / entry.name).symlink_to(entry)
    return folder


def compile_flow(flow: str, command: list[str], s3: dict[str, str], home: Path, packages: Path | None) -> Any:
    environment = {**os.environ, **s3, "HOME": str(home), "METAFLOW_USER": "tester"}
    prefix = [sys.executable] if packages is None else [sys.executable, "-S", "-c", RUN_WITHOUT, str(packages)]
    done = subprocess.run(
        [*prefix, str(FLOWS / flow), "--datastore", "s3", *command],
        env=environment, cwd=home, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(VOLATILE.sub("*", done.stdout))


@pytest.mark.parametrize(
    ("flow", "options"),
    [
        pytest.param("argo_flow.py", [], id="decorated, with a gang"),
        pytest.param("plain_flow.py", [], id="plain"),
        pytest.param("plain_flow.py", ["--with", "kubernetes:memory=300,image=x"], id="--with kubernetes"),
        pytest.param("gang_flow.py", ["--with", "kubernetes"], id="gang --with kubernetes"),
    ],
)
def test_argo_workflows_are_the_same(
    flow: str, options: list[str], s3: dict[str, str], tmp_path: Path, packages_without_extension: Path
) -> None:
    command = [*options, "argo-workflows", "create", "--only-json"]
    ours = compile_flow(flow, command, s3, tmp_path, None)
    assert ours == compile_flow(flow, command, s3, tmp_path, packages_without_extension)


def test_step_functions_are_the_same(s3: dict[str, str], tmp_path: Path, packages_without_extension: Path) -> None:
    make_batch_queue(s3)
    settings = {
        **s3,
        "METAFLOW_SFN_IAM_ROLE": "arn:aws:iam::123456789012:role/r",
        "METAFLOW_ECS_FARGATE_EXECUTION_ROLE": "r",
        "METAFLOW_ECS_S3_ACCESS_IAM_ROLE": "r",
        "METAFLOW_BATCH_JOB_QUEUE": "queue",
        "METAFLOW_SFN_DYNAMO_DB_TABLE": "t",
    }
    command = ["--with", "batch", "step-functions", "create", "--only-json"]
    ours = compile_flow("plain_flow.py", command, settings, tmp_path, None)
    assert ours == compile_flow("plain_flow.py", command, settings, tmp_path, packages_without_extension)


def make_batch_queue(environment: dict[str, str]) -> None:
    """@batch looks its queue up while it compiles."""
    code = """
import boto3
role = boto3.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
ec2, batch = boto3.client("ec2"), boto3.client("batch")
machines = {
    "type": "FARGATE",
    "maxvCpus": 4,
    "subnets": [ec2.describe_subnets()["Subnets"][0]["SubnetId"]],
    "securityGroupIds": [ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]],
}
made = batch.create_compute_environment(
    computeEnvironmentName="compute", type="MANAGED", state="ENABLED", serviceRole=role, computeResources=machines
)
order = [{"order": 1, "computeEnvironment": made["computeEnvironmentArn"]}]
batch.create_job_queue(jobQueueName="queue", state="ENABLED", priority=1, computeEnvironmentOrder=order)
"""
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, check=True, timeout=60)
