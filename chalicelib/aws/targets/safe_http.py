"""HTTP calls to addresses that users configure, which cannot reach into the private network (O6).

The name is resolved once and every address is checked. The connection uses a checked address, so a name that resolves
differently a moment later (DNS rebinding) has no effect. TLS and the Host header carry the name. Redirects are not
followed. The call has one deadline and the answer a maximum size, so a slow server cannot block the caller.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from chalicelib.core.errors import SluiceError
from chalicelib.core.targets import urls

MAX_BODY = 65_536  # bytes of an answer that are read
_SIXTOFOUR, _NAT64 = IPv6Network("2002::/16"), IPv6Network("64:ff9b::/96")

Resolve = Callable[[str, int], list[str]]


class Unsafe(Exception):
    """The call is not allowed and was not made. The message says why."""


class NotReached(Exception):
    """The result of the call is unknown, or the server was not reached."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of the server: header names in lower case, at most `MAX_BODY` bytes of the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, in the order in which they are tried."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


def is_public(address: str) -> bool:
    """Whether an address is public. Private, loopback, link-local (the instance metadata service), carrier-grade NAT,
    multicast and reserved ones are not. Nor is an IPv6 address that embeds such an address."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        inner = _inside(found)
        if inner is not None:
            return is_public(str(inner))
        if found.is_site_local or found in _SIXTOFOUR:
            return False
    return found.is_global and not found.is_multicast and not found.is_reserved and not found.is_unspecified


def _inside(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address embeds, if any."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


class SafeHttp:
    """``allow_private`` is for local development only: it allows plain http and private addresses."""

    def __init__(
        self, allow_private: bool = False, resolve: Resolve = resolve, trust: ssl.SSLContext | None = None
    ) -> None:
        self._allow_private = allow_private
        self._resolve = resolve
        self._trust = trust

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, seconds: float) -> Reply:
        """Make the call once. Raises `Unsafe` and `NotReached`."""
        deadline = time.monotonic() + seconds
        parts = self._checked(url)
        host, port = str(parts.hostname), urls.port_of(parts)
        last: Exception | None = None
        for address in self._addresses(host, port, seconds):
            tls = self._context() if parts.scheme == "https" else None
            connection = _Connection(host, port, address, tls, deadline)
            try:
                connection.connect()
            except OSError as error:
                last = error  # try the next address; nothing was sent yet
                continue
            try:
                return _exchange(connection, method, _path(parts), headers, body, deadline)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise NotReached(_message(error, deadline, seconds)) from None
            finally:
                connection.close()
        raise NotReached(f"{host} could not be reached: {_message(last, deadline, seconds)}")

    def _checked(self, url: str) -> SplitResult:
        """The parsed address. It was checked when it was stored, but rows may be older than a rule."""
        try:
            urls.check_url(url)
        except SluiceError as error:
            raise Unsafe(error.message) from None
        parts = urlsplit(url)
        if parts.scheme != "https" and not self._allow_private:
            raise Unsafe("expected an https URL, got http: http is not encrypted")
        return parts

    def _addresses(self, host: str, port: int, seconds: float) -> list[str]:
        found = _within(seconds, lambda: self._resolve(host, port), host)
        if not found:
            raise NotReached(f"{host} has no address")
        inside = [address for address in found if not is_public(address)]
        if inside and not self._allow_private:
            raise Unsafe(f"{host} resolves to {inside[0]}, which is not a public address")
        return found

    def _context(self) -> ssl.SSLContext:
        if self._trust is None:
            self._trust = ssl.create_default_context()
        return self._trust


class _Connection(http.client.HTTPConnection):
    """A connection to one address, with the name of the host for TLS and headers."""

    def __init__(self, host: str, port: int, address: str, tls: ssl.SSLContext | None, deadline: float) -> None:
        super().__init__(host, port, timeout=_left(deadline))
        self.default_port = 80 if tls is None else 443  # left out of the Host header
        self._address, self._tls = address, tls

    def connect(self) -> None:
        plain = socket.create_connection((self._address, self.port), self.timeout)
        try:
            self.sock = plain if self._tls is None else self._tls.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


def _exchange(
    connection: _Connection,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes | None,
    deadline: float,
) -> Reply:
    """The answer to the request. A socket timeout covers one read; the timer limits the whole exchange."""
    cut = threading.Event()
    timer = threading.Timer(_left(deadline), _hang_up, (connection.sock, cut))
    timer.daemon = True
    timer.start()
    try:
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        content = response.read(MAX_BODY)
        if cut.is_set():
            raise TimeoutError  # a closed connection looks like the end of an answer
        return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, content)
    finally:
        timer.cancel()


def _hang_up(sock: socket.socket, cut: threading.Event) -> None:
    cut.set()
    with suppress(OSError):  # the connection has ended already
        sock.shutdown(socket.SHUT_RDWR)


def _within(seconds: float, lookup: Callable[[], list[str]], host: str) -> list[str]:
    """The result of a name lookup. A lookup has no timeout, and a thread cannot be stopped: a hanging one is abandoned.
    Raises `NotReached` without a result in time."""
    found: list[list[str]] = []
    failed: list[Exception] = []

    def look_up() -> None:
        try:
            found.append(lookup())
        except (OSError, UnicodeError) as error:
            failed.append(error)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(seconds)
    if not found:
        raise NotReached(f"{host} could not be resolved: {failed[0] if failed else f'no answer within {seconds:g} s'}")
    return found[0]


def _path(parts: SplitResult) -> str:
    return f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)


def _message(error: Exception | None, deadline: float, seconds: float) -> str:
    if time.monotonic() >= deadline or isinstance(error, TimeoutError):
        return f"no complete answer within {seconds:g} s"
    return f"{type(error).__name__}: {error}"
