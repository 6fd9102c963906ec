"""Signed requests with the standard library alone, for the usual case: keys in the environment, and no proxy.

The import of botocore takes as long as a whole command, and a command sends one request or two.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
import select
import socket
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

# With one of these, botocore decides what holds.
_OTHER_SOURCES = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CREDENTIAL_EXPIRATION")


@dataclass(frozen=True, slots=True)
class Keys:
    """AWS credentials that do not change."""

    key: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


def keys_of(url: str, environment: Mapping[str, str]) -> Keys | None:
    """The keys in the environment, or None where only botocore knows how to reach the API, and as whom."""
    key, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if not key or not secret or any(environment.get(name) for name in _OTHER_SOURCES):
        return None
    if _has_proxy(url, environment):
        return None
    if urlsplit(url).scheme == "https" and _config_names_certificates(environment):
        return None
    return Keys(key, secret, environment.get("AWS_SESSION_TOKEN") or None)


def _has_proxy(url: str, environment: Mapping[str, str]) -> bool:
    """Whether a proxy stands between. On macOS and Windows, the settings of the system may name one, too."""
    scheme, netloc = urlsplit(url)[:2]
    named = any(environment.get(name) for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper()))
    if not named and sys.platform not in ("darwin", "win32"):
        return False
    from urllib.request import getproxies, proxy_bypass

    return scheme in getproxies() and not proxy_bypass(netloc)


def _config_names_certificates(environment: Mapping[str, str]) -> bool:
    if environment.get("AWS_CA_BUNDLE"):
        return False  # the variable comes first, and it is read here, too
    config = Path(environment.get("AWS_CONFIG_FILE") or "~/.aws/config").expanduser()
    try:
        return "ca_bundle" in config.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def signed(
    keys: Keys, region: str, method: str, url: str, headers: Mapping[str, str], content: bytes | None, now: datetime
) -> dict[str, str]:
    """The headers of a request with its signature, Signature Version 4 for ``execute-api``."""
    parts = urlsplit(url)
    stamp = f"{now:%Y%m%dT%H%M%SZ}"
    scope = f"{stamp[:8]}/{region}/execute-api/aws4_request"
    sent = {**headers, "Host": parts.netloc, "X-Amz-Date": stamp}
    if keys.token:
        sent["X-Amz-Security-Token"] = keys.token
    canonical = sorted((name.lower(), " ".join(value.split())) for name, value in sent.items())
    names = ";".join(name for name, _ in canonical)
    request = "\n".join(
        [
            method,
            quote(parts.path or "/", safe="/~"),  # encoded once more than it is sent
            "&".join(sorted(parts.query.split("&"), key=_name_and_value)),
            *(f"{name}:{value}" for name, value in canonical),
            "",
            names,
            hashlib.sha256(content or b"").hexdigest(),
        ]
    )
    secret = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
    sent["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return sent


def _name_and_value(pair: str) -> tuple[str, str]:
    name, _, value = pair.partition("=")
    return name, value


class NoConnection(Exception):
    """Nothing was sent; the cause says why."""


class NoAnswer(Exception):
    """The request was sent, at least in part; the cause says why there is no answer."""


class PlainHttp:
    """Sends requests to one host. Each thread has a connection of its own, which is kept."""

    def __init__(self, url: str, keys: Keys, region: str, connect_seconds: float, read_seconds: float) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._tls = str(parts.hostname), parts.port, parts.scheme == "https"
        self._keys, self._region = keys, region
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        self._local = threading.local()

    def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[int, dict[str, str], bytes]:
        """The status, the headers in lower case, and the content. Raises `NoConnection` and `NoAnswer`."""
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        ready = signed(self._keys, self._region, method, url, headers, content, datetime.now(UTC))
        connection = self._connection()
        try:
            connection.request(method, target, content, ready)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._forget()
            raise NoAnswer from error
        if answer.will_close:
            self._forget()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body

    def _connection(self) -> http.client.HTTPConnection:
        kept: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if kept is not None and kept.sock is not None and not _is_closed(kept.sock):
            return kept
        made = self._made()
        try:
            made.connect()
        except OSError as error:
            raise NoConnection from error
        made.sock.settimeout(self._read_seconds)
        self._local.connection = made
        return made

    def _made(self) -> http.client.HTTPConnection:
        if not self._tls:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._connect_seconds)
        import ssl

        context = ssl.create_default_context(cafile=_certificates())
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._connect_seconds, context=context)

    def _forget(self) -> None:
        connection, self._local.connection = getattr(self._local, "connection", None), None
        if connection is not None:
            connection.close()


def _is_closed(sock: socket.socket) -> bool:
    """Whether the server has closed a connection that was kept: there is something to read before any request."""
    if hasattr(select, "poll"):
        waiting = select.poll()
        waiting.register(sock, select.POLLIN)
        return bool(waiting.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _certificates() -> str | None:
    """The certificates that botocore trusts, found without its import. None for those of the system."""
    if os.environ.get("AWS_CA_BUNDLE"):
        return os.environ["AWS_CA_BUNDLE"]
    from importlib.util import find_spec

    for package, name in (("certifi", "cacert.pem"), ("botocore", "cacert.pem")):
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            path = os.path.join(os.path.dirname(spec.origin), name)
            if os.path.exists(path):
                return path
    return None
