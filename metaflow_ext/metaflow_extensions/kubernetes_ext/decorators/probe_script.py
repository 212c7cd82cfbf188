"""The bash script of a probe: what a task's container does before its step, one thing after the other. Its exit code says
which of them can't be done, the end of its output why."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from .container_script import LOG_DIRECTORY, unescaped

NO_PYTHON, OLD_PYTHON, NO_DIRECTORY, UNREACHABLE, NO_SETUP, NO_PACKAGE, UNWRITABLE = range(91, 98)
DATASTORE, DATASTORE_ROOT, PATH = "MF_DATASTORE", "MF_DATASTORE_ROOT", "MF_PROBE_PATH"


def text(init_commands: Sequence[str]) -> str:
    """`init_commands` are core's (escaped), which get the code package; without its logs, which belong to tasks."""
    return _TEMPLATE.format(
        log_directory=f'"{LOG_DIRECTORY}"',
        old=quote(_OLD),
        reach=quote(_REACH),
        write=quote(_WRITE),
        init=unescaped([command for command in init_commands if command != "flush_mflogs"]) or "true",
        no_python=NO_PYTHON,
        old_python=OLD_PYTHON,
        no_directory=NO_DIRECTORY,
        unreachable=UNREACHABLE,
        no_setup=NO_SETUP,
        no_package=NO_PACKAGE,
        unwritable=UNWRITABLE,
    )


_OLD = 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 8) else "It is Python %d.%d." % v[:2])'

# A name server that does not answer would take minutes: the alarm ends the process.
_REACH = """\
import os, signal, socket, sys
from urllib.parse import urlparse
env = os.environ.get
region = env("AWS_REGION") or env("AWS_DEFAULT_REGION") or ""
s3 = "https://s3.%s.amazonaws.com" % region if region and not region.startswith("cn-") else None
urls = {
    "s3": env("METAFLOW_S3_ENDPOINT_URL") or env("AWS_ENDPOINT_URL_S3") or env("AWS_ENDPOINT_URL") or s3,
    "azure": env("METAFLOW_AZURE_STORAGE_BLOB_SERVICE_ENDPOINT"),
    "gs": "https://storage.googleapis.com",
}
wanted = [("datastore", urls.get(env("MF_DATASTORE")))]
if env("METAFLOW_DEFAULT_METADATA") == "service":
    wanted.append(("metadata service", env("METAFLOW_SERVICE_URL")))
if any(env(name) or env(name.lower()) for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")):
    wanted = []
for what, url in wanted:
    place = urlparse(url or "")
    if not place.hostname:
        continue
    print("No answer about %s, where the %s is." % (place.hostname, what), flush=True)
    signal.alarm(15)
    try:
        socket.create_connection((place.hostname, place.port or (80 if place.scheme == "http" else 443)), 5).close()
    except socket.gaierror as error:
        sys.exit("The name of the %s, %s, can't be resolved in the pod: %s." % (what, place.hostname, error.strerror))
    except OSError as error:
        sys.exit("The %s can't be reached from the pod at %s: %s." % (what, url, error.strerror or error))
    signal.alarm(0)
"""

_WRITE = """\
import io, os
from metaflow.plugins import DATASTORES
storage = [each for each in DATASTORES if each.TYPE == os.environ["MF_DATASTORE"]][0](os.environ["MF_DATASTORE_ROOT"])
storage.save_bytes(iter([(os.environ["MF_PROBE_PATH"], io.BytesIO(b"written by kubernetes check"))]), overwrite=True)
"""

# One stream, since a container runtime reads two of them in any order, and the last line is what is told.
# `sleep` is how core's commands wait before they try the download again: for a probe one try is enough.
_TEMPLATE = """\
exec 2>&1
${{METAFLOW_INIT_SCRIPT:+eval "${{METAFLOW_INIT_SCRIPT}}"}} || exit $?
command -v python > /dev/null || {{ echo "There is no python in $PATH." >&2; exit {no_python}; }}
python -c {old} || exit {old_python}
mkdir -p {log_directory} || exit {no_directory}
python -c {reach} || exit {unreachable}
export MFLOG_STDOUT={log_directory}/mflog_stdout MFLOG_STDERR={log_directory}/mflog_stderr PIP_RETRIES=1
sleep() {{ exit {no_package}; }}
{{ {init}; }} || exit {no_setup}
python -c {write} || exit {unwritable}
"""
