"""The proxy does what its schedule says: seen by the product's own client, with a real HTTP server behind."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster.access import Access
from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import PODS
from metaflow_extensions.kubernetes_ext.errors import ClusterError, Conflict, Forbidden, Unavailable
from tests.faults.proxy import Proxy, target_of
from tests.faults.schedule import Fault


class Server(BaseHTTPRequestHandler):
    """Answers lists, creates and endless watches of pods. `asked` is what has reached it."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_any(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append(self.command)
        if "watch=true" in self.path:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for version in range(100):
                event = {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": str(version)}}}
                line = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                time.sleep(0.02)
            return
        body = json.dumps({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_any

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def proxied(*faults: Fault, **options: Any) -> Iterator[tuple[KubernetesClient, Proxy, list[str]]]:
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Server,), {"asked": asked}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    proxy = Proxy(Access(host=f"http://127.0.0.1:{server.server_address[1]}", source="test"), faults)
    proxy.start()
    client = KubernetesClient(
        lambda: Access(host=proxy.url, source="test"), **{"patience": 0.0, "read_seconds": 2.0, **options}
    )
    try:
        yield client, proxy, asked
    finally:
        client.close()
        proxy.stop()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("kind", "error", "reaches_the_server"),
    [
        ("refused", Unavailable, False),
        ("lost request", Unavailable, False),
        ("lost answer", Unavailable, True),
        ("cut answer", Unavailable, True),
        ("a page", Unavailable, False),
        ("401", Forbidden, False),
        ("403", Forbidden, False),
        ("409", Conflict, False),
        ("410", ClusterError, False),
        ("429", Unavailable, False),
        ("500", Unavailable, False),
        ("502", Unavailable, False),
        ("503", Unavailable, False),
        ("504", Unavailable, False),
    ],
)
def test_a_fault_is_what_its_name_says_and_the_next_request_is_well(
    kind: str, error: type[ClusterError], reaches_the_server: bool
) -> None:
    count = 2 if kind == "401" else 1  # the client logs in again once
    with proxied(Fault(kind, "create pods", 1, count=count)) as (client, proxy, asked):
        with pytest.raises(error):
            client.create(PODS, "default", {"metadata": {"name": "a"}})
        assert len(asked) == reaches_the_server
        client.create(PODS, "default", {"metadata": {"name": "a"}})
        assert [one.fault for one in proxy.seen] == [kind] * count + [""]


def test_a_server_that_is_busy_says_when_to_come_back() -> None:
    with proxied(Fault("429", "list pods", 1, retry_after=1)) as (client, _, _), pytest.raises(Unavailable) as caught:
        client.list(PODS, "default")
    assert caught.value.retry_after == 1


def test_an_outage_refuses_everything_for_its_time_and_cuts_what_is_open() -> None:
    with proxied(Fault("outage", "create pods", 1, seconds=0.5)) as (client, _, asked):
        watched = client.watch(PODS, "default")
        assert next(iter(watched)).type == "SYNCED"
        for refused in range(2):
            with pytest.raises(Unavailable):
                client.create(PODS, "default", {"metadata": {"name": "a"}})
            assert "POST" not in asked, f"{refused} got through"
        time.sleep(0.6)
        client.create(PODS, "default", {"metadata": {"name": "a"}})
        watched.close()


def test_a_half_open_watch_is_silent_and_then_ends() -> None:
    with proxied(Fault("half-open", "watch pods", 1, seconds=0.3)) as (client, proxy, _):
        watched = iter(client.watch(PODS, "default"))
        versions = [next(watched) for _ in range(6)]
        assert [one.type for one in versions] == ["SYNCED"] + ["ADDED"] * 5
        assert [one.target for one in proxy.seen].count("watch pods") == 2, "after the first event it has to be opened again"


@pytest.mark.parametrize(
    ("method", "path", "target"),
    [
        ("GET", "/api/v1/namespaces/default/pods?labelSelector=a", "list pods"),
        ("GET", "/api/v1/namespaces/default/pods?watch=true", "watch pods"),
        ("GET", "/api/v1/namespaces/default/pods/a/log?follow=true", "get pods/log"),
        ("GET", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/d/jobsets/g", "get jobsets"),
        ("POST", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/d/jobsets", "create jobsets"),
        ("POST", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/d/jobsets?dryRun=All", "create jobsets (dry run)"),
        ("DELETE", "/apis/batch/v1/namespaces/d/jobs/j", "delete jobs"),
        ("GET", "/apis/batch", "get other"),
    ],
)
def test_requests_are_named_by_verb_and_resource(method: str, path: str, target: str) -> None:
    assert target_of(method, path) == target
