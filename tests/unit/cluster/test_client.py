"""Requests against a real HTTP server: what is sent, what is retried, and what errors say."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster.access import Access
from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, PODS, Resource
from metaflow_extensions.kubernetes_ext.cluster.retry import retrying
from metaflow_extensions.kubernetes_ext.errors import ClusterError, Conflict, Forbidden, NotFound, Rejected, Unavailable
from tests.unit.cluster.server import Answer, Server, refusal, reset, silence

JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
GANGS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets"
POD = "/api/v1/namespaces/ns/pods/p"
Connect = Callable[..., KubernetesClient]


def pod(name: str = "p") -> dict[str, object]:
    return {"metadata": {"name": name}}


def test_an_object_is_posted_as_it_is(server: Server, client: KubernetesClient) -> None:
    gang = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "g"}, "spec": {"x": "ü\n'\""}}
    server.on("POST", GANGS, Answer(201, {**gang, "status": {}}))
    assert client.create(JOBSETS, "ns", gang) == {**gang, "status": {}}
    assert server.seen[0].body == gang
    assert server.seen[0].query == {}


def test_a_dry_run_says_so_and_is_retried(server: Server, client: KubernetesClient) -> None:
    server.on("POST", GANGS, refusal(503), Answer(201, pod()))
    assert client.create(JOBSETS, "ns", pod(), dry_run=True) == pod()
    assert [one.query for one in server.seen] == [{"dryRun": "All"}] * 2


def test_warnings_of_the_server_are_passed_on(server: Server, connect: Connect) -> None:
    said: list[str] = []
    header = '299 - "would violate PodSecurity \\"restricted\\": a, b", 299 - "old"'
    server.on("POST", GANGS, Answer(201, pod(), {"Warning": header}))
    connect(on_warning=said.append).create(JOBSETS, "ns", pod(), dry_run=True)
    assert said == ['would violate PodSecurity "restricted": a, b', "old"]


@pytest.mark.parametrize("failure", [refusal(500), refusal(504), reset()], ids=["500", "504", "reset"])
def test_a_create_is_sent_once_whatever_happens(server: Server, client: KubernetesClient, failure: Answer) -> None:
    server.on("POST", GANGS, failure)
    with pytest.raises(Unavailable):
        client.create(JOBSETS, "ns", pod("g"))
    assert server.count("POST") == 1


@pytest.mark.parametrize(
    "failure",
    [
        *(pytest.param(refusal(code), id=str(code)) for code in (429, 500, 502, 503, 504)),
        pytest.param(reset(), id="reset before the answer"),
        pytest.param(Answer(200, pod(), cut=5, then="reset"), id="reset within the answer"),
        pytest.param(Answer(200, pod(), cut=5, then="close"), id="closed within the answer"),
        pytest.param(Answer(200, b'{"metadata'), id="cut JSON"),
    ],
)
def test_reading_goes_on_after_what_passes(server: Server, client: KubernetesClient, failure: Answer) -> None:
    server.on("GET", POD, failure, failure, Answer(200, pod()))
    assert client.get(PODS, "ns", "p") == pod()
    assert server.count("GET", POD) == 3


def test_a_silent_server_is_given_up_after_the_read_timeout(server: Server, connect: Connect) -> None:
    server.on("GET", POD, silence(), Answer(200, pod()))
    assert connect(read_seconds=0.2).get(PODS, "ns", "p") == pod()


def test_retry_after_is_honoured(server: Server, client: KubernetesClient) -> None:
    server.on("GET", POD, refusal(429, "TooManyRequests", headers={"Retry-After": "1"}), Answer(200, pod()))
    started = time.monotonic()
    client.get(PODS, "ns", "p")
    assert time.monotonic() - started >= 1


def test_patience_ends_with_the_last_error(server: Server, connect: Connect) -> None:
    heard: list[ClusterError | None] = []
    server.on("GET", POD, refusal(503, "ServiceUnavailable", "starting"))
    with pytest.raises(Unavailable, match="503 starting"):
        connect(patience=0.05, on_trouble=heard.append).get(PODS, "ns", "p")
    assert len(heard) == server.count("GET", POD) > 1


@pytest.mark.parametrize("code", [400, 403, 404, 409, 422])
def test_what_does_not_pass_is_not_repeated(server: Server, client: KubernetesClient, code: int) -> None:
    server.on("GET", POD, refusal(code, "Reason"))
    with pytest.raises(ClusterError):
        client.get(PODS, "ns", "p")
    assert server.count("GET", POD) == 1


def of_its_kind(listed: dict[str, Any]) -> dict[str, Any]:
    """As every object is that we hand on: servers leave the kind out of the items of a list."""
    return {"apiVersion": "v1", "kind": "Pod", **listed}


def test_pages_of_a_list_become_one(server: Server, client: KubernetesClient) -> None:
    server.on(
        "GET",
        "/api/v1/namespaces/ns/pods",
        Answer(200, {"metadata": {"resourceVersion": "7", "continue": "abc"}, "items": [pod("a")]}),
        Answer(200, {"metadata": {"resourceVersion": "7"}, "items": [pod("b")]}),
    )
    listed = client.list(PODS, "ns", label_selector="a=b")
    assert listed == {"metadata": {"resourceVersion": "7"}, "items": [of_its_kind(pod("a")), of_its_kind(pod("b"))]}
    assert [one.query for one in server.seen] == [
        {"labelSelector": "a=b", "limit": "500"},
        {"labelSelector": "a=b", "limit": "500", "continue": "abc"},
    ]


def test_pages_that_expire_are_read_again_at_once(server: Server, client: KubernetesClient) -> None:
    server.on(
        "GET",
        "/api/v1/namespaces/ns/pods",
        Answer(200, {"metadata": {"continue": "abc"}, "items": [pod("a")]}),
        refusal(410, "Expired"),
        Answer(200, {"metadata": {}, "items": [pod("a"), pod("b")]}),
    )
    assert client.list(PODS, "ns")["items"] == [of_its_kind(pod("a")), of_its_kind(pod("b"))]


def test_deleting_names_policy_and_uid(server: Server, client: KubernetesClient) -> None:
    server.on("DELETE", f"{GANGS}/g", Answer(200, {}))
    client.delete(JOBSETS, "ns", "g", uid="u1")
    assert server.seen[0].body["propagationPolicy"] == "Background"
    assert server.seen[0].body["preconditions"] == {"uid": "u1"}


@pytest.mark.parametrize(
    ("refused", "there"),
    [
        pytest.param(refusal(404, "NotFound"), refusal(404, "NotFound"), id="gone"),
        pytest.param(refusal(409, "Conflict"), refusal(404, "NotFound"), id="gone meanwhile"),
        pytest.param(refusal(409, "Conflict"), Answer(200, {"metadata": {"name": "g", "uid": "u2"}}), id="another object"),
    ],
)
def test_deleting_what_is_gone_is_success(server: Server, client: KubernetesClient, refused: Answer, there: Answer) -> None:
    server.on("DELETE", f"{GANGS}/g", refused)
    server.on("GET", f"{GANGS}/g", there)
    client.delete(JOBSETS, "ns", "g", uid="u1")


def test_a_conflict_over_an_object_that_is_still_there_is_worth_another_try(server: Server, client: KubernetesClient) -> None:
    server.on("DELETE", f"{GANGS}/g", refusal(409, "Conflict"), Answer(200, {}))
    server.on("GET", f"{GANGS}/g", Answer(200, {"metadata": {"name": "g", "uid": "u1"}}))
    with pytest.raises(Unavailable):
        client.delete(JOBSETS, "ns", "g", uid="u1")
    retrying(lambda: client.delete(JOBSETS, "ns", "g", uid="u1"), patience=1, sleep=lambda _: None, monotonic=time.monotonic)
    assert server.count("DELETE", f"{GANGS}/g") == 2


def test_a_patch_is_a_merge_patch(server: Server, client: KubernetesClient) -> None:
    server.on("PATCH", POD, Answer(200, pod()))
    client.patch(PODS, "ns", "p", {"metadata": {"labels": {"a": None}}})
    assert server.seen[0].headers["Content-Type"] == "application/merge-patch+json"
    assert server.seen[0].body == {"metadata": {"labels": {"a": None}}}


def test_what_is_served_is_asked_of_discovery(server: Server, client: KubernetesClient) -> None:
    known = {"resources": [{"name": "jobsets", "kind": "JobSet"}, {"name": "jobsets/status", "kind": "JobSet"}]}
    group = {"versions": [{"version": "v1beta1"}, {"version": "v1beta2"}], "preferredVersion": {"version": "v1beta2"}}
    server.on("GET", "/apis/jobset.x-k8s.io/v1alpha2", Answer(200, known))
    server.on("GET", "/apis/workload.codeflare.dev", Answer(200, group))
    assert client.serves(JOBSETS)
    assert not client.serves(replace(JOBSETS, version="v2"))
    assert client.served_versions("workload.codeflare.dev") == ("v1beta2", "v1beta1")
    assert client.served_versions("nowhere.example") == ()


def test_refused_credentials_are_renewed_and_the_request_repeated(server: Server, connect: Connect) -> None:
    tokens = iter(["old", "new"])
    by_token = {"Bearer old": refusal(401, "Unauthorized"), "Bearer new": Answer(201, pod())}
    server.on("POST", GANGS, lambda seen: by_token[seen.headers["Authorization"]])
    client = connect(load=lambda: server.access(authorization=f"Bearer {next(tokens)}"))
    assert client.create(JOBSETS, "ns", pod()) == pod()
    assert client.access.authorization == "Bearer new"


def test_threads_with_one_expired_token_renew_it_once(server: Server, connect: Connect) -> None:
    renewals = []

    def load() -> Access:
        renewals.append(1)
        return server.access(authorization=f"Bearer {len(renewals)}")

    server.on("GET", POD, lambda seen: Answer(200, pod()) if seen.headers["Authorization"] == "Bearer 2" else refusal(401))
    client = connect(load=load)
    threads = [threading.Thread(target=client.get, args=(PODS, "ns", "p")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(renewals) == 2


def test_credentials_that_stay_refused_are_an_error_that_says_what_to_do(server: Server, client: KubernetesClient) -> None:
    server.on("GET", POD, refusal(401, "Unauthorized", "Unauthorized"))
    with pytest.raises(Forbidden, match=r"does not accept the credentials of the test's server.*Log in again") as caught:
        client.get(PODS, "ns", "p")
    assert caught.value.status == 401
    assert server.count("GET") == 2


def test_expired_credentials_are_renewed_before_they_are_refused(server: Server, connect: Connect) -> None:
    expiries = iter([0.0, None])
    server.on("GET", POD, Answer(200, pod()))
    loads = []

    def load() -> Access:
        loads.append(1)
        return server.access(expires_at=next(expiries))

    client = connect(load=load)
    client.get(PODS, "ns", "p")
    client.get(PODS, "ns", "p")
    assert len(loads) == 2
    assert server.count("GET") == 2


def test_credentials_that_can_not_be_renewed_now_are_tried_again(server: Server, connect: Connect) -> None:
    answers = iter([server.access(expires_at=0.0), ClusterError("plugin without network"), server.access()])

    def load() -> Access:
        answer = next(answers)
        if isinstance(answer, ClusterError):
            raise answer
        return answer

    server.on("GET", POD, Answer(200, pod()))
    assert connect(load=load).get(PODS, "ns", "p") == pod()


def test_a_server_that_is_not_there_is_told_with_address_and_context(connect: Connect) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = connect(load=lambda: Access(host=f"http://127.0.0.1:{port}/a-secret", source="context c of /f"), patience=0.01)
    with pytest.raises(Unavailable, match=rf"http://127.0.0.1:{port} \(context c of /f\) can't be reached: Connection refused"):
        client.get(PODS, "ns", "p")


def test_a_name_that_does_not_resolve_may_resolve_later(connect: Connect) -> None:
    client = connect(load=lambda: Access(host="http://nowhere.invalid", source="context c"), patience=0.01)
    with pytest.raises(Unavailable, match="its name can't be resolved"):
        client.get(PODS, "ns", "p")


def test_a_server_that_comes_back_is_found(server: Server, connect: Connect) -> None:
    client = connect()
    port = server.port
    server.stop()
    back: list[Server] = []

    def start() -> None:
        back.append(Server(port=port, is_started=False))
        back[0].on("GET", POD, Answer(200, pod("again")))
        back[0].start()

    timer = threading.Timer(0.3, start)
    timer.start()
    try:
        assert client.get(PODS, "ns", "p") == pod("again")
    finally:
        timer.join()
        back[0].stop()
        server._http.server_close()


def test_close_ends_a_request_without_an_answer(server: Server, connect: Connect) -> None:
    client = connect()
    server.on("GET", POD, silence())
    errors: list[ClusterError] = []

    def get() -> None:
        try:
            client.get(PODS, "ns", "p")
        except ClusterError as error:
            errors.append(error)

    thread = threading.Thread(target=get)
    thread.start()
    while not server.seen:
        time.sleep(0.01)
    client.close()
    thread.join(20)
    assert not thread.is_alive()
    assert errors[0].reason == "Closed"


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        pytest.param(
            Answer(404, b"404 page not found\n"),
            NotFound,
            r"JobSet is not installed on this cluster: the server does not know jobsets.jobset.x-k8s.io/v1alpha2",
            id="no JobSet",
        ),
        pytest.param(
            refusal(404, "NotFound", 'namespaces "ns" not found'), NotFound, "There is no namespace ns", id="no namespace"
        ),
        pytest.param(refusal(409, "AlreadyExists", "exists"), Conflict, "JobSet g in namespace ns: exists", id="exists"),
        pytest.param(
            refusal(403, "Forbidden", 'User "u" cannot create resource "jobsets"'),
            Forbidden,
            'Not allowed to create jobsets.jobset.x-k8s.io in namespace ns: .*needs the verb "create" on "jobsets"',
            id="RBAC",
        ),
        pytest.param(
            refusal(403, "Forbidden", 'admission webhook "v.kb.io" denied the request: name is too long'),
            Rejected,
            "The cluster refuses JobSet g in namespace ns: .*name is too long",
            id="webhook",
        ),
        pytest.param(
            refusal(403, "Forbidden", 'jobsets "g" is forbidden: exceeded quota: q'), Rejected, "exceeded quota", id="quota"
        ),
        pytest.param(
            refusal(403, "Forbidden", "unable to create new content in namespace ns because it is being terminated"),
            Rejected,
            "being terminated",
            id="namespace goes",
        ),
        pytest.param(refusal(422, "Invalid", "spec.x: Required"), Rejected, "spec.x: Required", id="invalid"),
        pytest.param(refusal(400, "", "strict decoding error"), Rejected, "strict decoding", id="400 without reason"),
        pytest.param(refusal(500, "InternalError", "failed calling webhook"), Unavailable, "failed calling", id="webhook down"),
        pytest.param(Answer(502, b"<html>Bad Gateway</html>"), Unavailable, "502 <html>", id="a proxy's page"),
    ],
)
def test_refusals_are_told_apart(
    server: Server, client: KubernetesClient, answer: Answer, kind: type[ClusterError], text: str
) -> None:
    server.on("POST", GANGS, answer)
    with pytest.raises(kind, match=text) as caught:
        client.create(JOBSETS, "ns", pod("g"))
    assert type(caught.value) is kind
    assert caught.value.status == answer.status


@pytest.mark.parametrize("ask", ["create", "list", "logs"])
def test_a_page_in_place_of_an_answer_is_an_outage(server: Server, client: KubernetesClient, ask: str) -> None:
    """A captive portal answers everything with 200: none of it may be taken for an object or a line of a log."""
    page = Answer(200, b"<html>Please log in to this network.</html>", {"Content-Type": "text/html; charset=utf-8"})
    for method, path in (("POST", GANGS), ("GET", GANGS), ("GET", "/api/v1/namespaces/ns/pods/p/log")):
        server.on(method, path, page)
    asked: dict[str, Callable[[], object]] = {
        "create": lambda: client.create(JOBSETS, "ns", pod("g")),
        "list": lambda: client.list(JOBSETS, "ns"),
        "logs": lambda: list(client.logs("ns", "p")),
    }
    with pytest.raises(Unavailable, match="A web page came in place of the API server's answer"):
        asked[ask]()


def test_one_client_serves_many_threads(server: Server, client: KubernetesClient) -> None:
    server.on("GET", "/apis/batch/v1/namespaces/ns/jobs", Answer(200, {"items": []}))
    threads = [threading.Thread(target=client.list, args=(JOBS, "ns")) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.count("GET") == 20
