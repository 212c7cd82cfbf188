"""Runs a kubeconfig's credential plugin (`aws eks get-token`, `gke-gcloud-auth-plugin`, ...).

Protocol: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..errors import ClusterError

_QUIET_SECONDS = 60.0
_INTERACTIVE_SECONDS = 300.0  # somebody logs in with a browser meanwhile
_EARLY_SECONDS = 30.0  # renew this long before the token expires


@dataclass(frozen=True, kw_only=True)
class Credential:
    """`expires_at` is Unix time, somewhat before the credential really expires; None if the plugin doesn't say."""

    token: str = ""
    certificate: bytes | None = None
    key: bytes | None = None
    expires_at: float | None = None


def run(plugin: dict[str, Any], cluster: dict[str, Any], path: str) -> Credential:
    """The credential that the `exec` section of kubeconfig `path` gives. ClusterError with what the plugin says."""
    command = str(plugin.get("command") or "")
    api_version = str(plugin.get("apiVersion") or "")
    if not command or not api_version:
        raise ClusterError(f"The exec section in {path} needs a command and an apiVersion.")
    if os.path.dirname(command):  # relative to the file, as kubectl does; a bare name is searched in PATH
        command = os.path.join(os.path.dirname(os.path.abspath(path)), command)
    interactive = plugin.get("interactiveMode") != "Never" and sys.stdin.isatty() and sys.stderr.isatty()
    environment = {**os.environ, **{item["name"]: item["value"] for item in plugin.get("env") or ()}}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(_exec_info(plugin, cluster, api_version, interactive))
    try:
        done = subprocess.run(
            [command, *map(str, plugin.get("args") or ())],
            env=environment,
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if interactive else subprocess.PIPE,
            timeout=_INTERACTIVE_SECONDS if interactive else _QUIET_SECONDS,
            check=False,
        )
    except OSError as error:
        hint = str(plugin.get("installHint") or "").strip()
        raise ClusterError(f"The credential plugin {command} of {path} can't be started: {error}. {hint}".rstrip()) from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"The credential plugin {command} of {path} did not answer in {error.timeout:.0f} s.") from error
    if done.returncode != 0:
        said = (done.stderr or b"").decode(errors="replace").strip()
        raise ClusterError(f"The credential plugin {command} of {path} failed (exit code {done.returncode}): {said}")
    return _credential(done.stdout, command, path)


def _exec_info(plugin: dict[str, Any], cluster: dict[str, Any], api_version: str, interactive: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = {
            "server": cluster.get("server"),
            "certificate-authority-data": cluster.get("certificate-authority-data"),
            "tls-server-name": cluster.get("tls-server-name"),
            "insecure-skip-tls-verify": cluster.get("insecure-skip-tls-verify", False),
            "config": next(
                (
                    extension.get("extension")
                    for extension in cluster.get("extensions") or ()
                    if extension.get("name") == "client.authentication.k8s.io/exec"
                ),
                None,
            ),
        }
    return {"apiVersion": api_version, "kind": "ExecCredential", "spec": spec}


def _credential(answer: bytes, command: str, path: str) -> Credential:
    try:
        status = json.loads(answer)["status"]
        token, certificate, key = (status.get(k) or "" for k in ("token", "clientCertificateData", "clientKeyData"))
        expires = status.get("expirationTimestamp")
        expires_at = datetime.fromisoformat(expires.replace("Z", "+00:00")).timestamp() - _EARLY_SECONDS if expires else None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClusterError(f"The answer of the credential plugin {command} of {path} is not an ExecCredential.") from error
    if not token and not (certificate and key):
        raise ClusterError(f"The credential plugin {command} of {path} gave neither a token nor a certificate with its key.")
    return Credential(token=token, certificate=certificate.encode() or None, key=key.encode() or None, expires_at=expires_at)
