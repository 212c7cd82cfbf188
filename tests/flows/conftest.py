"""A development cluster and an S3 for the whole session, and what a test needs to run a flow and look at it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster.protocol import Resource
from tests.contract import places

SECRETS = Resource("", "v1", "secrets", "Secret")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
FLOWS = Path(__file__).parent
REPOSITORY = FLOWS.parent.parent
GANG_OPTIONS = "cpu=0.1,memory=200,disk=10"


@dataclass
class Done:
    """A command that has ended."""

    code: int
    output: str  # both streams, in order

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.output}"


@dataclass
class Runner:
    """Runs flows in one directory against one cluster."""

    home: Path
    environment: dict[str, str]
    extra: dict[str, str] = field(default_factory=dict)
    kind: str = "devcluster"

    @property
    def namespace(self) -> str:
        return self.environment["METAFLOW_KUBERNETES_NAMESPACE"]

    def command(self, flow: str, *words: str) -> list[str]:
        path = Path(flow) if "/" in flow else FLOWS / flow
        return [sys.executable, "-u", str(path), *words]

    def run(self, flow: str, *words: str, timeout: float = 180, **environment: str) -> Done:
        process = subprocess.Popen(
            self.command(flow, *words),
            cwd=self.home, env={**self.environment, **self.extra, **environment}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            pytest.fail(f"{flow} {' '.join(words)} did not end within {timeout} s:\n{output}")
        return Done(process.returncode, output)

    def gang(self, *words: str, options: str = GANG_OPTIONS, flow: str = "gang_flow.py", **environment: str) -> Done:
        """A flow with its gang, and nothing else, on Kubernetes: what is not looked at is not to cost the time of containers."""
        return self.run(flow, *words, timeout=400, TEST_GANG_ONLY=options, **environment)

    def python(self, code: str, timeout: float = 60) -> str:
        """What `code` prints in a process of its own, as a user of the Client API would run it."""
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=self.home, env={**self.environment, **self.extra},
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kubectl(self, *words: str) -> str:
        done = subprocess.run(
            ["kubectl", "--namespace", self.namespace, *words],
            env={**self.environment, **self.extra},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return done.stdout + done.stderr

    @property
    def admin_config(self) -> Path:
        """Of somebody who may do all, where the user of flows may do less."""
        if self.kind == "real":
            return Path(os.environ[f"{places.CLUSTER}ADMIN_KUBECONFIG"])
        return Path(self.environment["KUBECONFIG"])

    def as_admin(self, *words: str) -> str:
        return self.kubectl(*words, f"--kubeconfig={self.admin_config}")


def hear_signals() -> None:
    """In a process before it starts: a shell may have SIGINT ignored, and nohup SIGHUP."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def running_gang(
    runner: Runner, seconds: str, *further: str, options: str = GANG_OPTIONS
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A run whose gang of 2 runs by now, and what it has printed, which is whole at the end."""
    process = subprocess.Popen(
        runner.command("gang_flow.py", "run", "--size", "2", "--seconds", seconds, *further),
        cwd=runner.home, env={**runner.environment, "TEST_GANG_ONLY": options}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=hear_signals,
    )  # fmt: skip
    lines: list[str] = []
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if "hello from rank 0" in line:
                yield process, lines
                break
        else:
            pytest.fail(f"the gang did not run:\n{''.join(lines)}")
        lines += process.stdout.readlines()


def base_environment(home: Path) -> dict[str, str]:
    """Of a user whose flows are kept in `home`, where Metaflow would else take the first `.metaflow` above it."""
    (home / ".metaflow").mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("METAFLOW_", "KUBE", "MF_", "AWS_"))}
    return {**kept, "HOME": str(home), "METAFLOW_USER": "tester", "PYTHONUNBUFFERED": "1"}


@contextmanager
def own_devcluster(home: Path, *options: str) -> Iterator[dict[str, str]]:
    """A development cluster with its state in `home`, and the environment that `metaflow-devcluster env` gives."""
    environment = {**os.environ, "METAFLOW_DEVCLUSTER_HOME": str(home)}
    tool = [sys.executable, "-m", "metaflow_devcluster"]
    up = subprocess.run([*tool, "up", *options], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert up.returncode == 0, up.stdout + up.stderr
    try:
        lines = subprocess.run([*tool, "env"], env=environment, capture_output=True, text=True, timeout=30, check=True).stdout
        exported = [line.removeprefix("export ") for line in lines.splitlines() if line.startswith("export ")]
        named = {name: value.strip("'\"") for name, _, value in (line.partition("=") for line in exported)}
        yield {**named, "METAFLOW_DEVCLUSTER_HOME": str(home)}
    finally:
        subprocess.run([*tool, "down"], env=environment, capture_output=True, timeout=180, check=False)


_MEMORY, _ROOM = Path("/dev/shm"), 4 << 30  # bytes


@contextmanager
def devcluster_home() -> Iterator[Path]:
    """A folder for the state of a development cluster, removed at the end: in memory where there is room. Every pod unpacks a
    thousand files, and removing those of a hundred pods takes a disk minutes."""
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM
    with tempfile.TemporaryDirectory(prefix="devcluster-", dir=_MEMORY if has_room else None) as home:
        yield Path(home)


@pytest.fixture(scope="session")
def devcluster() -> Iterator[dict[str, str]]:
    with devcluster_home() as home, own_devcluster(home) as environment:
        yield environment


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[places.Server]:
    with places.real_server() as found:
        yield found


# On the real one either with a volume that client and pods share, or with S3, where every task costs twice as much.
_REAL, _REAL_S3 = (pytest.param(name, marks=pytest.mark.real) for name in ("real", "real-s3"))
ON_BOTH = pytest.mark.parametrize("runner", ["devcluster", _REAL], indirect=True)
ON_BOTH_S3 = pytest.mark.parametrize("runner", ["devcluster", _REAL_S3], indirect=True)
ON_REAL_APPWRAPPER = pytest.mark.parametrize("runner", [pytest.param("real-appwrapper", marks=pytest.mark.real)], indirect=True)
ON_REAL_S3 = pytest.mark.parametrize("runner", [_REAL_S3], indirect=True)


@pytest.fixture
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Runner]:
    """Flows in a namespace of their own."""
    kind = getattr(request, "param", "devcluster")
    if kind == "devcluster":
        yield devcluster_runner(tmp_path, request.getfixturevalue("devcluster"))
        return
    server: places.Server = request.getfixturevalue("real_cluster")
    roles = places.RBAC_WITH_APPWRAPPERS if kind == "real-appwrapper" else places.RBAC
    with server.place(roles=roles) as place:
        if kind == "real-s3":
            yield real_runner(tmp_path, place)
        else:
            with real_runner_of_shared_files(tmp_path, place) as made:
                yield made


def devcluster_runner(home: Path, devcluster: dict[str, str]) -> Runner:
    namespace = f"t-{uuid.uuid4().hex[:12]}"
    made = Runner(home, {**base_environment(home), **devcluster, "METAFLOW_KUBERNETES_NAMESPACE": namespace})
    made.kubectl("create", "namespace", namespace)
    return made


def real_runner(home: Path, place: places.Place) -> Runner:
    """With the variables of tests/cluster/run; pods get the keys of S3 from a Secret."""
    given = {name: value for name, value in os.environ.items() if name.startswith(("METAFLOW_", "KUBE", "AWS_"))}
    keys = {name: value for name, value in given.items() if name.startswith("AWS_")}
    place.admin.create(SECRETS, place.namespace, {"metadata": {"name": "s3"}, "stringData": keys})
    ours = {"METAFLOW_KUBERNETES_NAMESPACE": place.namespace, "METAFLOW_KUBERNETES_SECRETS": "s3"}
    return Runner(home, {**base_environment(home), **given, **ours}, kind="real")


@contextmanager
def real_runner_of_shared_files(home: Path, place: places.Place) -> Iterator[Runner]:
    """With a volume that is the client's `home`, at the same path in every pod, as a file server would be."""
    capacity: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    claim = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": place.namespace, **capacity}
    volume = {
        "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(home)}, "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"name": "shared", "namespace": place.namespace}, **capacity,
    }  # fmt: skip
    place.admin.create(VOLUMES, "", {"metadata": {"name": place.namespace}, "spec": volume})
    place.admin.create(CLAIMS, place.namespace, {"metadata": {"name": "shared"}, "spec": claim})
    made = real_runner(home, place)
    made.environment |= {
        "METAFLOW_KUBERNETES_PERSISTENT_VOLUME_CLAIMS": json.dumps({"shared": str(home)}),
        "METAFLOW_KUBERNETES_SHARED_FILES": "1",
        "METAFLOW_DEFAULT_DATASTORE": "local",
        "METAFLOW_KUBERNETES_SECRETS": "",
    }
    try:
        yield made
    finally:
        place.admin.delete(VOLUMES, "", place.namespace)


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """moto's server with one bucket: what makes it Metaflow's S3."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        environment = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",  # of every other service, too: nothing leaves this machine
            "METAFLOW_S3_ENDPOINT_URL": f"http://{host}:{port}",
            "METAFLOW_DATASTORE_SYSROOT_S3": "s3://flows/metaflow",
        }
        make_bucket(environment)
        yield environment
    finally:
        server.stop()


def make_bucket(environment: dict[str, str]) -> None:
    code = "import boto3, os; boto3.client('s3', endpoint_url=os.environ['METAFLOW_S3_ENDPOINT_URL']).create_bucket(Bucket='flows')"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, check=True, timeout=60)


@pytest.fixture
def free_environment() -> Callable[[Path], dict[str, str]]:
    """The environment of a user with no cluster at all."""
    return base_environment
