"""Where the configuration comes from, and what is said about a wrong one."""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from metaflow_extensions.kubernetes_ext.cluster import auth
from metaflow_extensions.kubernetes_ext.cluster.access import environment_proxy
from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import PODS
from metaflow_extensions.kubernetes_ext.errors import ClusterError
from tests.unit.cluster.server import Answer, Server

Write = Callable[..., str]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Write:
    """Writes a kubeconfig with these sections of its one cluster and user; returns its path."""

    def write(user: dict[str, Any] | None = None, name: str = "config", **cluster: Any) -> str:
        content = {
            "current-context": "dev",
            "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **cluster}}],
            "users": [{"name": "u", "user": user or {}}],
        }
        path = tmp_path / name
        path.write_text(yaml.safe_dump(content))
        return str(path)

    return write


def load(path: str) -> Any:
    return auth.load({"KUBECONFIG": path})


def plugin(tmp_path: Path, script: str) -> dict[str, Any]:
    """An exec section that runs a Python script."""
    file = tmp_path / "plugin.py"
    file.write_text(script)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(file)]}}


def test_a_token_in_the_file(kubeconfig: Write) -> None:
    path = kubeconfig({"token": "secret"}, **{"certificate-authority": "ca.crt", "tls-server-name": "api"})
    access = load(path)
    assert (access.host, access.namespace, access.authorization) == ("https://10.0.0.1:6443", "team", "Bearer secret")
    assert access.ca_file == str(Path(path).parent / "ca.crt")
    assert access.server_name == "api"
    assert access.source == f"context dev of {path}"
    assert "secret" not in repr(access)


def test_a_token_file_is_read_again_after_a_while(kubeconfig: Write, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    access = load(kubeconfig({"tokenFile": "token"}))
    assert access.authorization == "Bearer secret"
    assert access.expires_at is not None


def test_user_and_password(kubeconfig: Write) -> None:
    expected = "Basic " + base64.b64encode(b"u:p").decode()
    assert load(kubeconfig({"username": "u", "password": "p"})).authorization == expected


def test_certificates_in_the_file(kubeconfig: Write) -> None:
    pem = base64.b64encode(b"PEM").decode()
    access = load(kubeconfig({"client-certificate-data": pem, "client-key-data": pem}, **{"certificate-authority-data": pem}))
    assert access.ca_data == access.cert_data == access.key_data == b"PEM"
    assert access.ca_file is access.cert_file is None


def test_a_plugin_gives_a_token_with_its_expiry(kubeconfig: Write, tmp_path: Path) -> None:
    script = (
        "import json, os\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "print(json.dumps({'status': {'token': info['kind'], 'expirationTimestamp': '2030-01-01T00:00:30Z'}}))\n"
    )
    access = load(kubeconfig(plugin(tmp_path, script)))
    assert access.authorization == "Bearer ExecCredential"
    assert access.expires_at == datetime(2030, 1, 1, tzinfo=timezone.utc).timestamp()


def test_a_plugin_gives_a_certificate(kubeconfig: Write, tmp_path: Path) -> None:
    status = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}
    access = load(kubeconfig(plugin(tmp_path, f"print({json.dumps({'status': status})!r})")))
    assert (access.cert_data, access.key_data, access.authorization) == (b"CERT", b"KEY", "")


@pytest.mark.parametrize(
    ("script", "text"),
    [
        pytest.param("import sys; sys.exit('run `aws sso login`')", r"failed \(exit code 1\): run `aws sso login`", id="fails"),
        pytest.param("print('hello')", "is not an ExecCredential", id="no JSON"),
        pytest.param("print('{\"status\": {}}')", "neither a token nor a certificate", id="nothing"),
    ],
)
def test_a_plugins_own_words_are_told(kubeconfig: Write, tmp_path: Path, script: str, text: str) -> None:
    with pytest.raises(ClusterError, match=text):
        load(kubeconfig(plugin(tmp_path, script)))


def test_a_plugin_that_is_not_installed_gives_its_hint(kubeconfig: Write) -> None:
    section = {"apiVersion": "v1", "command": "no-such-plugin", "installHint": "Get it at example.org."}
    with pytest.raises(ClusterError, match=r"no-such-plugin.*can't be started.*Get it at example\.org\."):
        load(kubeconfig({"exec": section}))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("", "is not a kubeconfig file", id="empty"),
        pytest.param("a: [", "can't be read as a kubeconfig", id="no YAML"),
        pytest.param("current-context: x\ncontexts: []", "current context 'x' is not in it", id="unknown context"),
        pytest.param(
            "contexts: [{name: a, context: {}}, {name: b, context: {}}]", "no current context.* one of: a, b", id="no context"
        ),
        pytest.param(
            "current-context: a\ncontexts: [{name: a, context: {cluster: z}}]", "names the cluster 'z'", id="no cluster"
        ),
        pytest.param(
            "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: z}}]\nclusters: [{name: c, cluster: {}}]",
            "names the user 'z'",
            id="no user",
        ),
        pytest.param(
            "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]",
            "has no server URL",
            id="no server",
        ),
    ],
)
def test_a_wrong_file_is_told_in_plain_words(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ClusterError, match=text) as caught:
        load(str(path))
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ClusterError, match="KUBECONFIG names /no/such/file, which does not exist"):
        load("/no/such/file")


def test_no_configuration_at_all_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ClusterError, match="No Kubernetes configuration: KUBECONFIG is not set, this is not a pod"):
        auth.load({})


def test_the_pods_service_account(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    (tmp_path / "namespace").write_text("team")
    access = auth.load({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, tmp_path)
    assert (access.host, access.namespace, access.authorization) == ("https://[fd00::1]:443", "team", "Bearer secret")
    assert access.expires_at is not None


def test_kubeconfig_goes_before_the_service_account(kubeconfig: Write) -> None:
    environ = {"KUBECONFIG": kubeconfig({"token": "t"}), "KUBERNETES_SERVICE_HOST": "10.0.0.9"}
    assert auth.load(environ).host == "https://10.0.0.1:6443"


def test_a_pod_without_a_token_is_told(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no service account token"):
        auth.load({"KUBERNETES_SERVICE_HOST": "10.0.0.9"}, tmp_path)


def test_several_files_are_left_to_the_kubernetes_package(kubeconfig: Write) -> None:
    pytest.importorskip("kubernetes")
    first, second = kubeconfig({"token": "one"}), kubeconfig({"token": "two"}, name="second")
    access = load(os.pathsep.join([first, second, "/no/such/file"]))
    assert (access.host, access.authorization) == ("https://10.0.0.1:6443", "Bearer one")


def test_the_usual_way_does_not_import_the_kubernetes_package(kubeconfig: Write) -> None:
    program = (
        "import sys\n"
        "from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient\n"
        "KubernetesClient()\n"
        "sys.exit(any(name.split('.')[0] in ('kubernetes', 'requests', 'metaflow') for name in sys.modules))\n"
    )
    root = str(Path(auth.__file__).parents[3])
    environ = {**os.environ, "KUBECONFIG": kubeconfig({"token": "t"}), "PYTHONPATH": root}
    assert subprocess.run([sys.executable, "-S", "-c", "import site; site.main()\n" + program], env=environ).returncode == 0


@pytest.mark.parametrize(
    ("no_proxy", "expected"),
    [("", "http://proxy:3128"), ("10.0.0.0/8", None), ("10.0.0.1", None), (".example.org", "http://proxy:3128"), ("*", None)],
)
def test_the_environments_proxy(monkeypatch: pytest.MonkeyPatch, no_proxy: str, expected: str | None) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    assert environment_proxy("https://10.0.0.1:6443") == expected


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Files of a self-signed certificate of 127.0.0.1 and of its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "api")])
    now = datetime.now(timezone.utc)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    signed = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    folder = tmp_path_factory.mktemp("tls")
    cert_file, key_file = folder / "tls.crt", folder / "tls.key"
    cert_file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption()))
    return str(cert_file), str(key_file)


@pytest.mark.parametrize("how", ["ca file", "ca data", "not verified", "client certificate"])
def test_tls_as_the_configuration_wants_it(certificate: tuple[str, str], how: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    pem, key = Path(certificate[0]).read_bytes(), Path(certificate[1]).read_bytes()
    settings: dict[str, Any] = {
        "ca file": {"ca_file": certificate[0]},
        "ca data": {"ca_data": pem},
        "not verified": {"verify": False},
        "client certificate": {"ca_data": pem, "cert_data": pem, "key_data": key},
    }[how]
    if how == "client certificate":
        context.load_verify_locations(certificate[0])
        context.verify_mode = ssl.CERT_REQUIRED
    server = Server(context)
    server.on("GET", "/api/v1/namespaces/ns/pods/p", Answer(200, {"x": 1}))
    client = KubernetesClient(lambda: server.access(**settings), patience=1.0)
    try:
        assert client.get(PODS, "ns", "p") == {"x": 1}
    finally:
        client.close()
        server.stop()


def test_a_certificate_that_is_not_trusted_is_told_and_not_retried(certificate: tuple[str, str]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server = Server(context)
    client = KubernetesClient(server.access, patience=5.0)
    try:
        with pytest.raises(ClusterError, match="shows a certificate that can't be trusted") as caught:
            client.get(PODS, "ns", "p")
        assert caught.value.reason == "CertificateNotTrusted"
    finally:
        client.close()
        server.stop()


def test_certificates_that_are_none_are_told() -> None:
    client = KubernetesClient(lambda: auth.Access(host="https://127.0.0.1:1", source="context c", ca_data=b"nonsense"))
    with pytest.raises(ClusterError, match="The certificates of context c can't be used"):
        client.get(PODS, "ns", "p")
    client.close()
