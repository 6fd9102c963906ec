"""The HTTP server of the console, on 127.0.0.1 only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from sluice.client import refusal_of
from sluice.console.access import Access, Refused
from sluice.console.files import Page
from sluice.console.forwarding import TO_PAGE, forward
from sluice.errors import ApiRefused, Failure
from sluice.signing import Reply, SignedHttp

ADDRESS = "127.0.0.1"
MAX_BODY = 10_000_000  # bytes; more than the API takes
IDLE_SECONDS = 120.0
ABOUT = "/console.json"

# No script, style or connection from elsewhere, no frame around the page, and no text that becomes HTML.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
ALWAYS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the proxy serves: the API at ``url``, without ``/v1``, and the namespace that the page first shows."""

    url: str
    namespace: str | None
    read_only: bool


class Console(ThreadingHTTPServer):
    """The proxy. ``serve_forever`` answers until ``shutdown``. Raises OSError if the port is taken."""

    daemon_threads = True
    # Two consoles on one port would share the browser's storage.
    allow_reuse_port = False

    def __init__(self, port: int, token: str, settings: Settings, page: Page, http: SignedHttp | None = None) -> None:
        super().__init__((ADDRESS, port), Handler)
        self.access = Access(self.server_address[1], token)
        self.settings, self.page = settings, page
        self.http = http or SignedHttp(settings.url)

    @property
    def address(self) -> str:
        return f"http://{ADDRESS}:{self.access.port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser closes connections in the middle of an answer; that is no error of the console."""

    def about(self) -> dict[str, Any]:
        """What the page shows about the installation. Parts are None where the API does not answer."""
        who: dict[str, Any] = {}
        try:
            reply = self.http.send("GET", f"{self.settings.url}/v1/whoami", {"Accept": "application/json"}, None)
            if reply.status == HTTPStatus.OK:
                who = json.loads(reply.content)
        except (Failure, ValueError):
            pass
        known = {name: who.get(name) for name in ("arn", "account", "region", "stage", "version")}
        settings = self.settings
        return {"api": settings.url, "namespace": settings.namespace, **known, "read_only": settings.read_only}


class Handler(BaseHTTPRequestHandler):
    """One connection of the browser."""

    server: Console
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    # Without it, each answer on a kept connection waits 40 ms for the acknowledgement of its headers.
    disable_nagle_algorithm = True
    wbufsize = -1
    METHODS: ClassVar[tuple[str, ...]] = ("GET", "HEAD", "POST", "PUT", "DELETE")

    def version_string(self) -> str:
        return "sluice"

    def log_message(self, format: str, *args: Any) -> None:
        """The console prints no log: paths hold names of others' data."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def do_OPTIONS(self) -> None:
        """A preflight of another page: no header that would allow it."""
        self._refuse(
            Refused(405, "method_not_allowed", f"expected one of {', '.join(self.METHODS)}", "use one of them")
        )

    def _answer(self) -> None:
        refused = self.server.access.refused_host(self.headers.get_all("Host") or [])
        if refused is not None:
            self._refuse(refused)
        elif self.path == ABOUT or self.path.startswith("/v1/"):
            self._call()
        elif self.command in ("GET", "HEAD") and self.path.startswith("/"):
            self._file()
        else:
            message = f"expected GET or a path below /v1, got {self.command} {self.path[:200]!r}"
            self._refuse(Refused(405, "method_not_allowed", message, "use only paths of docs/api.md below /v1"))

    def _file(self) -> None:
        if content := self._content():  # left unread, it would be taken for the next request
            message = "expected a request for a file without a body, got one with a body"
            self._refuse(content if isinstance(content, Refused) else Refused(400, "bad_request", message, "send none"))
            return
        found = self.server.page.find(self.path)
        if found is None:
            message = "expected a file of this build, got one of another"
            self._refuse(Refused(404, "not_found", message, "load the page again"))
            return
        compressed = "gzip" in self.headers.get("Accept-Encoding", "")
        headers = {
            "Content-Type": found.content_type,
            "Cache-Control": "public, max-age=31536000, immutable" if found.immutable else "no-store",
            "Vary": "Accept-Encoding",
        }
        if compressed:
            headers["Content-Encoding"] = "gzip"
        self._send(200, headers, found.compressed if compressed else found.content)

    def _call(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        refused = self.server.access.refused_call(headers)
        if refused is not None:
            self._refuse(refused)
            return
        content = self._content()
        if isinstance(content, Refused):
            self._refuse(content)
            return
        if self.path == ABOUT:
            self._json(200, self.server.about())
            return
        method = "GET" if self.command == "HEAD" else self.command
        request = forward(method, self.path, headers, content, self.server.settings.read_only)
        if isinstance(request, Refused):
            self._refuse(request)
            return
        try:
            url = self.server.settings.url + request.target
            reply = self.server.http.send(request.method, url, request.headers, request.content)
        except Failure as failure:
            self._refuse(Refused(502, failure.code, failure.message, failure.hint or "try again"))
            return
        self._reply(reply, request.method, request.target)

    def _content(self) -> bytes | Refused | None:
        """The body of the request: None without one."""
        if self.headers.get("Transfer-Encoding") is not None:
            return Refused(411, "bad_request", "expected Content-Length, got Transfer-Encoding", "send the length")
        lengths = self.headers.get_all("Content-Length") or []
        if not lengths:
            return None
        if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            return Refused(400, "bad_request", "expected one Content-Length", "send the length once")
        length = int(lengths[0])
        if length > MAX_BODY:
            message = f"expected at most {MAX_BODY} bytes, got {length}"
            return Refused(413, "too_large", message, "deploy large documents with sluice apply")
        return self.rfile.read(length) if length else None

    def _reply(self, reply: Reply, method: str, target: str) -> None:
        """Pass the answer on. An error of API Gateway or of a proxy gets the API's own form."""
        headers = {name.title(): reply.headers[name] for name in TO_PAGE if name in reply.headers}
        if reply.status >= HTTPStatus.MULTIPLE_CHOICES and not _is_of_api(reply.content):
            refused = refusal_of(reply, method, target)
            self._json(502 if reply.status < HTTPStatus.BAD_REQUEST else reply.status, _as_api(refused), headers)
            return
        self._send(reply.status, {**headers, "Cache-Control": "no-store"}, reply.content)

    def _refuse(self, refused: Refused) -> None:
        # The body of a refused request may be unread, and must not be taken for the next request.
        self.close_connection = True
        self._json(refused.status, refused.as_api())

    def _json(self, status: int, document: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        later = {"Retry-After": headers["Retry-After"]} if headers and "Retry-After" in headers else {}
        fixed = {"Content-Type": "application/json", "Cache-Control": "no-store", **later}
        self._send(status, fixed, json.dumps(document).encode())

    def _send(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {**ALWAYS, **headers}.items():
            self.send_header(name, value)
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD" and status != HTTPStatus.NO_CONTENT:
            self.wfile.write(content)


def _is_of_api(content: bytes) -> bool:
    try:
        body = json.loads(content)
    except ValueError:
        return False
    return isinstance(body, dict) and isinstance(body.get("error"), dict)


def _as_api(refused: ApiRefused) -> dict[str, Any]:
    error = {"code": refused.code, "message": refused.message, "field": refused.field, "hint": refused.hint}
    return {"error": error}
