"""How to reach one API server and as whom: the result of reading a configuration, without any I/O of its own."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ..errors import ClusterError, Unavailable


@dataclass(frozen=True, kw_only=True)
class Access:
    """`authorization` is the header's value or "". Certificates are files or PEM bytes. `expires_at` is Unix time, and says
    when credentials must be read again; None means: when the server answers 401. `source` is for messages."""

    host: str  # scheme, host, port and path, no slash at the end
    source: str
    namespace: str = ""
    authorization: str = field(default="", repr=False)
    ca_file: str | None = None
    ca_data: bytes | None = field(default=None, repr=False)
    cert_file: str | None = None
    key_file: str | None = None
    cert_data: bytes | None = field(default=None, repr=False)
    key_data: bytes | None = field(default=None, repr=False)
    verify: bool = True
    server_name: str | None = None
    proxy: str | None = None
    expires_at: float | None = None

    @property
    def transport(self) -> tuple[object, ...]:
        """What connections depend on: while it stays the same, new credentials need no new connections."""
        certificates = (self.ca_file, self.ca_data, self.cert_file, self.key_file, self.cert_data, self.key_data)
        return (self.host, self.verify, self.server_name, self.proxy, *certificates)

    def is_expired(self, now: float) -> bool:
        return self.expires_at is not None and now >= self.expires_at


class Login:
    """The current `Access`, read again when it expires or the server refuses it. For any number of threads.

    The first reading happens at once, so that a wrong configuration is an error before anything else is done. A later one
    that fails (a plugin without network, a file being written) is `Unavailable`: the work goes on when it can be read again.
    """

    def __init__(self, load: Callable[[], Access], now: Callable[[], float] = time.time) -> None:
        self._load = load
        self._now = now
        self._lock = threading.Lock()
        self._access = load()

    @property
    def access(self) -> Access:
        return self._access

    def current(self) -> Access:
        access = self._access
        return self.renew(access) if access.is_expired(self._now()) else access

    def renew(self, stale: Access) -> Access:
        """Read again, unless another thread has done so since `stale` was current."""
        with self._lock:
            if self._access is stale:
                try:
                    self._access = self._load()
                except ClusterError as error:
                    raise Unavailable(f"The credentials can't be renewed: {error}") from error
            return self._access


def environment_proxy(host: str) -> str | None:
    """The proxy for `host` from HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY (names, suffixes, addresses, networks)."""
    parts = urlsplit(host)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    name = parts.hostname or ""
    if not proxy or proxy_bypass(name) or _in_networks(name, proxies.get("no", "")):
        return None
    return proxy


def _in_networks(name: str, networks: str) -> bool:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    for network in networks.split(","):
        try:
            if address in ipaddress.ip_network(network.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False
