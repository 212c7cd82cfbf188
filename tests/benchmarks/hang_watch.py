"""What looking after a rank costs it: processor time of a process that sleeps, with and without a HangWatch, as the share of a core.

    python tests/benchmarks/hang_watch.py [--seconds 60]

With its records in S3 (moto, in another process) and in local files; the beat is the one of the default `stall_timeout`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

STARTED = """
import sys, time, types
kind, root, seconds, watched = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4] == "watched"
from metaflow.plugins.datastores.local_storage import LocalStorage
from metaflow.plugins.datastores.s3_storage import S3Storage
from metaflow_extensions.kubernetes_ext.decorators import hang_watch
from metaflow_extensions.kubernetes_ext.decorators.gang_record import Records
storage = (S3Storage if kind == "s3" else LocalStorage)(root)
datastore = types.SimpleNamespace(flow_name="Flow", _storage_impl=storage)
requests = Records(datastore, "1", "train", 0, hang_watch.REQUEST)
answers = Records(datastore, "1", "train", 0, hang_watch.RANK)
requests.read(["1"])  # the client is made by then
watch = hang_watch.HangWatch(
    600, {"pod_uid": "uid"}, lambda record: answers.write("1", record),
    lambda: str(requests.read(["1"]).get("1", {}).get("token", "")), lambda: (0, ""), is_container=True,
)
if watched:
    watch.start()
before = time.process_time()
time.sleep(seconds)
print((time.process_time() - before) / seconds)
"""

SERVER = """
from moto.server import ThreadedMotoServer
import time
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
time.sleep(10000)
"""


def share(kind: str, root: str, seconds: float, watched: str, environment: dict[str, str]) -> float:
    words = [sys.executable, "-c", STARTED, kind, root, str(seconds), watched]
    return float(subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    seconds = parser.parse_args().seconds
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            s3 = {
                "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1",
                "METAFLOW_S3_ENDPOINT_URL": url, "METAFLOW_DATASTORE_SYSROOT_S3": "s3://flows/metaflow",
            }  # fmt: skip
            make = "import boto3, sys; boto3.client('s3', endpoint_url=sys.argv[1]).create_bucket(Bucket='flows')"
            subprocess.run([sys.executable, "-c", make, url], env={**os.environ, **s3}, check=True)
            with tempfile.TemporaryDirectory() as root:
                for kind, where in (("local", root), ("s3", s3["METAFLOW_DATASTORE_SYSROOT_S3"])):
                    alone, watched = (share(kind, where, seconds, how, s3) for how in ("alone", "watched"))
                    print(f"{kind:5}  alone {alone:.3%}   watched {watched:.3%}   of a core")
        finally:
            server.kill()


if __name__ == "__main__":
    main()
