"""Finds the cluster and the credentials where core Metaflow finds them: KUBECONFIG, else the pod's service account, else
~/.kube/config.

The usual cases are read here. What is rare (several files, legacy auth providers) is left to the `kubernetes` package's own
loader: importing it costs some 0.2 s and 30 MB in every step, so it is only done then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ClusterError
from . import kubeconfig
from .access import Access, environment_proxy

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REREAD_TOKEN_SECONDS = 60.0  # kubelet renews the file long before the token in it expires


def load(environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT) -> Access:
    """The access configured for this process. ClusterError with what to do where there is none, or a broken one."""
    if environ.get("KUBECONFIG"):
        return _from_files(environ["KUBECONFIG"], "KUBECONFIG")
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environ, service_account)
    default = os.path.expanduser("~/.kube/config")
    if not os.path.exists(default):
        raise ClusterError(
            f"No Kubernetes configuration: KUBECONFIG is not set, this is not a pod, and {default} does not exist. "
            "Set KUBECONFIG to a kubeconfig file, or have your provider's tool write one."
        )
    return _from_files(default, "the default")


def _from_files(paths: str, origin: str) -> Access:
    named = [os.path.expanduser(path) for path in paths.split(os.pathsep) if path]
    found = [path for path in named if os.path.exists(path)]
    if not found:
        raise ClusterError(f"{origin} names {', '.join(named)}, which does not exist.")
    if len(found) == 1:
        config = kubeconfig.read(found[0])
        if not config.needs_package:
            return config.access()
    return _by_package(os.pathsep.join(found))


def in_cluster(environ: Mapping[str, str], service_account: Path) -> Access:
    """The service account of the pod we run in."""
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    token_file, ca_file = service_account / "token", service_account / "ca.crt"
    try:
        token = token_file.read_text().strip()
    except OSError as error:
        raise ClusterError(
            f"This pod has no service account token ({error}). Set serviceAccountName and automountServiceAccountToken "
            "of the pod, or KUBECONFIG."
        ) from error
    namespace = service_account / "namespace"
    url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Access(
        host=url,
        source="the service account of this pod",
        namespace=namespace.read_text().strip() if namespace.exists() else "",
        authorization=f"Bearer {token}",
        ca_file=str(ca_file),
        proxy=environment_proxy(url),
        expires_at=time.time() + _REREAD_TOKEN_SECONDS,
    )


def _by_package(paths: str) -> Access:
    from kubernetes import client, config

    settings: Any = client.Configuration()
    try:
        config.load_kube_config(config_file=paths, client_configuration=settings)
    except config.ConfigException as error:
        raise ClusterError(f"{paths} can't be used as Kubernetes configuration: {error}") from error
    host = settings.host.rstrip("/")
    return Access(
        host=host,
        source=paths,
        # The key is "authorization" up to kubernetes 34 or so and "BearerToken" later; there is only one.
        authorization=next(iter(settings.api_key.values()), ""),
        ca_file=settings.ssl_ca_cert,
        cert_file=settings.cert_file,
        key_file=settings.key_file,
        verify=settings.verify_ssl,
        server_name=settings.tls_server_name,
        proxy=settings.proxy or environment_proxy(host),
    )
