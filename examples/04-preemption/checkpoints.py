"""Where a rank saves what it needs to go on, and how it hears that it must stop. To be copied into your own flow."""

import os
import pickle
import signal
import sys

from metaflow import S3
from metaflow.metaflow_config import DATASTORE_SYSROOT_LOCAL, DATASTORE_SYSROOT_S3, DEFAULT_DATASTORE


class Checkpoints:
    """One checkpoint, the latest, under a key that is the same in every start and attempt: "flow/run/step/rank".

    In S3 where Metaflow keeps its data there, else in files that all pods share, as on the development cluster.
    """

    def __init__(self, key):
        self.key = f"{key}/checkpoint"

    def save(self, state):
        """All or nothing: whoever loads it meanwhile has the one before."""
        data = pickle.dumps(state)
        if DEFAULT_DATASTORE == "s3":
            with S3(s3root=self._s3_root()) as s3:
                s3.put(self.key, data)
            return
        path = self._path()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(f"{path}.new", "wb") as file:
            file.write(data)
        os.replace(f"{path}.new", path)

    def load(self):
        """What was saved last, or None."""
        if DEFAULT_DATASTORE == "s3":
            with S3(s3root=self._s3_root()) as s3:
                found = s3.get(self.key, return_missing=True)
                return pickle.loads(found.blob) if found.exists else None
        try:
            with open(self._path(), "rb") as file:
                return pickle.load(file)
        except FileNotFoundError:
            return None

    def _s3_root(self):
        return f"{DATASTORE_SYSROOT_S3}/checkpoints"

    def _path(self):
        return os.path.join(DATASTORE_SYSROOT_LOCAL or ".", "checkpoints", self.key)


class StopSignal:
    """Kubernetes sends SIGTERM before it takes a pod away, and waits for @kubernetes(grace_period=...) seconds, 30 by default."""

    def __init__(self):
        self.is_set = False
        signal.signal(signal.SIGTERM, self._hear)

    def _hear(self, number, frame):
        self.is_set = True

    def leave(self):
        """As a process that the signal has ended."""
        sys.exit(128 + signal.SIGTERM)
