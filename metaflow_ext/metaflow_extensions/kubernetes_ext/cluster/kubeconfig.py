"""Reads one kubeconfig file (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/) into an `Access`."""

from __future__ import annotations

import base64
import binascii
import os
import time
from dataclasses import dataclass
from typing import Any

import yaml
from urllib3.util import make_headers

from ..errors import ClusterError
from . import exec_plugin
from .access import Access, environment_proxy

_REREAD_TOKEN_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class KubeConfig:
    """The current context of a file: its cluster and user sections as written."""

    path: str
    context: str
    namespace: str
    cluster: dict[str, Any]
    user: dict[str, Any]

    @property
    def needs_package(self) -> bool:
        """Legacy auth providers (gcp, oidc, azure) renew their tokens in ways of their own."""
        return bool(self.user.get("auth-provider"))

    @property
    def source(self) -> str:
        return f"context {self.context} of {self.path}"

    def access(self) -> Access:
        """Reads token files and runs the exec plugin, if there are any."""
        host = str(self.cluster.get("server") or "").rstrip("/")
        if not host.startswith(("https://", "http://")):
            raise ClusterError(f"The cluster of {self.source} has no server URL.")
        authorization, expires_at = self._authorization()
        cert_data, key_data = self._data(self.user, "client-certificate"), self._data(self.user, "client-key")
        if not authorization and self.user.get("exec"):
            credential = exec_plugin.run(self.user["exec"], self.cluster, self.path)
            authorization = f"Bearer {credential.token}" if credential.token else ""
            cert_data, key_data = credential.certificate or cert_data, credential.key or key_data
            expires_at = credential.expires_at
        return Access(
            host=host,
            source=self.source,
            namespace=self.namespace,
            authorization=authorization,
            ca_file=self._file(self.cluster, "certificate-authority"),
            ca_data=self._data(self.cluster, "certificate-authority"),
            cert_file=self._file(self.user, "client-certificate"),
            key_file=self._file(self.user, "client-key"),
            cert_data=cert_data,
            key_data=key_data,
            verify=not self.cluster.get("insecure-skip-tls-verify", False),
            server_name=self.cluster.get("tls-server-name") or None,
            proxy=self.cluster.get("proxy-url") or environment_proxy(host),
            expires_at=expires_at,
        )

    def _authorization(self) -> tuple[str, float | None]:
        """(header, when to read again). The order of precedence is kubectl's."""
        token_file = self._file(self.user, "tokenFile")
        if token_file:
            try:
                with open(token_file, encoding="utf-8") as file:
                    return f"Bearer {file.read().strip()}", time.time() + _REREAD_TOKEN_SECONDS
            except OSError as error:
                raise ClusterError(f"The token file of {self.source} can't be read: {error}") from error
        if self.user.get("token"):
            return f"Bearer {self.user['token']}", None
        if self.user.get("username"):
            pair = f"{self.user['username']}:{self.user.get('password', '')}"
            return make_headers(basic_auth=pair)["authorization"], None
        return "", None

    def _file(self, section: dict[str, Any], key: str) -> str | None:
        """A path, relative to the file it is written in; None where the data stand in the file itself."""
        path = section.get(key)
        if not path or section.get(f"{key}-data"):
            return None
        return os.path.join(os.path.dirname(os.path.abspath(self.path)), os.path.expanduser(str(path)))

    def _data(self, section: dict[str, Any], key: str) -> bytes | None:
        data = section.get(f"{key}-data")
        try:
            return base64.b64decode(data) if data else None
        except binascii.Error as error:
            raise ClusterError(f"{key}-data of {self.source} is not base64: {error}") from error


def read(path: str) -> KubeConfig:
    """The file's current context. ClusterError says what is wrong with the file."""
    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ClusterError(f"{path} can't be read as a kubeconfig file: {error}") from error
    if not isinstance(content, dict):
        raise ClusterError(f"{path} is not a kubeconfig file: it holds {type(content).__name__}, not clusters and contexts.")
    name = content.get("current-context") or ""
    contexts = _named(content, "contexts", "context")
    if name not in contexts:
        problem = f"its current context {name!r} is not in it" if name else "it has no current context"
        choice = f"`kubectl config use-context NAME` chooses one of: {', '.join(contexts) or '(none)'}"
        raise ClusterError(f"{path} can't be used: {problem}. {choice}.")
    context = contexts[name]
    cluster = _named(content, "clusters", "cluster").get(context.get("cluster") or "")
    if cluster is None:
        raise ClusterError(f"{path} can't be used: context {name} names the cluster {context.get('cluster')!r}, not in it.")
    user = _named(content, "users", "user").get(context.get("user") or "")
    if user is None and context.get("user"):
        raise ClusterError(f"{path} can't be used: context {name} names the user {context['user']!r}, not in it.")
    return KubeConfig(path=path, context=name, namespace=context.get("namespace") or "", cluster=cluster, user=user or {})


def _named(content: dict[str, Any], section: str, key: str) -> dict[str, dict[str, Any]]:
    """`[{name, <key>: {...}}]` by name."""
    entries = content.get(section) or []
    if not isinstance(entries, list):
        return {}
    return {entry["name"]: entry.get(key) or {} for entry in entries if isinstance(entry, dict) and "name" in entry}
