"""Who may call the servers of the local cloud: programs that sign with a key of it, and no web page.

The local cloud runs code: that of Lambdas and of Spark jobs. ministack accepts its root key with any secret, some
requests without a signature, and answers web pages of any origin. So each server has this guard before it. It refuses

- a request with `Origin`, which browsers send with what scripts of web pages request;
- a request for another `Host`: a web page can make its own name resolve to 127.0.0.1 (DNS rebinding);
- a request without a valid signature of a key that the server knows;
- a request that names two credentials, of which ministack could take the other one for the caller.

Only the check whether a server is ready needs no signature. Answers have no `Access-Control-*` headers.
"""

from __future__ import annotations

import io
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs

from ministack.core import sigv4

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

HOSTS = ("127.0.0.1", "localhost", "[::1]")
SecretOf = Callable[[str], str | None]
# Chunks that are signed one by one are part of the body, all other bodies are covered by a hash.
_SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
_READ_ONLY = ("GET", "HEAD")
_FOR_WEB_PAGES = b"access-control-"


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer of the guard itself, with an error code of AWS."""

    status: int
    code: str
    message: str

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(self.body))),
            ("x-amzn-ErrorType", self.code),
            ("Connection", "close"),
        ]

    @property
    def body(self) -> bytes:
        return json.dumps({"__type": self.code, "code": self.code, "message": self.message}).encode()


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it was sent. The names in `headers` are in lower case, and their values as they are signed: a comma
    joins several values of a header. `hosts` has each value of `Host`."""

    method: str
    raw_path: str
    query: str
    headers: Mapping[str, str]
    hosts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Guard:
    """The checks of one server. `secret_of` returns the secret of an access key, or None for an unknown one.

    `open_path` is answered without a signature. `hosts` are the names of the server, without its port.
    """

    port: int
    secret_of: SecretOf
    open_path: str
    hosts: tuple[str, ...] = HOSTS

    def refuse_sender(self, request: Request) -> Refused | None:
        """The refusal of a request that a web page may have sent, or None."""
        hosts = [host.lower() for host in request.hosts]
        own = {f"{host}:{self.port}" for host in self.hosts}
        if len(hosts) != 1 or hosts[0] not in own:
            got = ", ".join(repr(host) for host in hosts) or "none"
            return Refused(421, "WrongHost", f"expected the host {self.hosts[0]}:{self.port}, got {got}")
        if "origin" in request.headers:
            return Refused(403, "ForeignPage", "expected a request of a program, got one of a web page (Origin)")
        return None

    def is_open(self, request: Request) -> bool:
        return request.method in _READ_ONLY and request.raw_path == self.open_path

    def needs_body(self, request: Request) -> bool:
        """Whether the signature is checked against the body itself, not against a hash in the headers."""
        payload = request.headers.get("x-amz-content-sha256", "")
        return not payload or payload.startswith(_SIGNED_CHUNKS)

    def refuse_signature(self, request: Request, signature: sigv4.HeaderSignature, body: bytes) -> Refused | None:
        """The refusal of a request whose signature is wrong or too old, or None."""
        query = parse_qs(request.query, keep_blank_values=True)
        is_presigned = _is_presigned(request)
        failure = _expiry(signature, query) if is_presigned else sigv4.request_time_failure(signature)
        failure = failure or sigv4.header_signature_failure(
            signature,
            self.secret_of(signature.access_key_id) or "",
            request.method,
            request.raw_path,
            query,
            request.headers,
            body,
            presigned=is_presigned,
        )
        return Refused(403, *failure) if failure else None

    def signature_of(self, request: Request) -> sigv4.HeaderSignature | Refused:
        """The signature by a known key, not yet compared, or the refusal of a request without one."""
        if _is_presigned(request):
            parsed = sigv4.parse_query_signature(parse_qs(request.query, keep_blank_values=True))
        elif request.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 "):
            # ministack takes the first credential for the caller, and the signature may be that of the last one.
            if request.headers["authorization"].count("Credential=") != 1:
                return Refused(403, "IncompleteSignature", "expected one Credential in Authorization")
            parsed = sigv4.parse_header_signature(request.headers)
        else:
            return Refused(403, "MissingAuthenticationToken", "expected a signature of a key of this local cloud")
        if isinstance(parsed, tuple):
            return Refused(403, *parsed)
        if parsed.region_set is not None or "host" not in parsed.signed_headers.split(";"):
            return Refused(403, "IncompleteSignature", "expected a signature in one region that signs the host")
        if not parsed.access_key_id or self.secret_of(parsed.access_key_id) is None:
            message = "The security token included in the request is invalid: expected a key of this local cloud"
            return Refused(403, "UnrecognizedClientException", message)
        return parsed


def _is_presigned(request: Request) -> bool:
    return "authorization" not in request.headers and "X-Amz-Signature=" in request.query


def _expiry(signature: sigv4.HeaderSignature, query: Mapping[str, list[str]]) -> tuple[str, str] | None:
    try:
        if not sigv4.presigned_request_is_expired(signature.amz_date, query.get("X-Amz-Expires", ["0"])[0]):
            return None
    except ValueError:
        pass
    return "AccessDenied", "Request has expired"


Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Asgi = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


def before_asgi(app: Asgi, guard: Guard) -> Asgi:
    """The guard before an ASGI app. It refuses WebSockets, which Sluice does not use."""

    async def guarded(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
        elif scope["type"] == "http":
            await _guarded_http(app, guard, scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    return guarded


async def _guarded_http(app: Asgi, guard: Guard, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    request = _asgi_request(scope)
    refused = guard.refuse_sender(request)
    if refused is None and not guard.is_open(request):
        signature = guard.signature_of(request)
        if isinstance(signature, Refused):
            refused = signature
        elif guard.needs_body(request):
            # Before the body is read, the key was checked: nobody else fills the memory.
            messages = await _whole(receive)
            receive = _replayed(messages, receive)
            body = b"".join(message.get("body", b"") for message in messages)
            refused = guard.refuse_signature(request, signature, body)
        else:
            refused = guard.refuse_signature(request, signature, b"")
    if refused is not None:
        headers = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in refused.headers]
        await send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else refused.body})
        return

    async def send_to_programs(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message.get("headers", ()) if not pair[0].lower().startswith(_FOR_WEB_PAGES)]
            message = {**message, "headers": kept}
        await send(message)

    await app(scope, receive, send_to_programs)


def _asgi_request(scope: Mapping[str, Any]) -> Request:
    headers: dict[str, str] = {}
    hosts: list[str] = []
    for raw_name, raw_value in scope.get("headers", ()):
        name, value = raw_name.decode("latin-1").lower(), sigv4.decode_header_value(raw_value)
        headers[name] = f"{headers[name]},{value}" if name in headers else value
        if name == "host":
            hosts.append(value)
    raw_path = scope.get("raw_path") or scope["path"].encode()
    query = scope.get("query_string", b"").decode("latin-1")
    return Request(scope["method"], raw_path.decode("latin-1"), query, headers, hosts)


async def _whole(receive: Receive) -> list[dict[str, Any]]:
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body"):
        messages.append(await receive())
    return messages


def _replayed(messages: Iterable[dict[str, Any]], receive: Receive) -> Receive:
    rest = iter(messages)

    async def replay() -> dict[str, Any]:
        message = next(rest, None)
        return await receive() if message is None else message

    return replay


def before_wsgi(app: WSGIApplication, guard: Guard) -> WSGIApplication:
    """The guard before a WSGI app of werkzeug."""

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = _wsgi_request(environ)
        refused = guard.refuse_sender(request)
        if refused is None and not guard.is_open(request):
            signature = guard.signature_of(request)
            if isinstance(signature, Refused):
                refused = signature
            else:
                body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                environ["wsgi.input"] = io.BytesIO(body)
                refused = guard.refuse_signature(request, signature, body)
        if refused is None:

            def answer(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
                kept = [pair for pair in headers if not pair[0].lower().encode("latin-1").startswith(_FOR_WEB_PAGES)]
                return start_response(status, kept, *more)

            return app(environ, cast("StartResponse", answer))
        start_response(f"{refused.status} Refused", [pair for pair in refused.headers if pair[0] != "Connection"])
        return [refused.body]

    return guarded


def _wsgi_request(environ: Mapping[str, Any]) -> Request:
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_") or (name in ("CONTENT_TYPE", "CONTENT_LENGTH") and value)
    }
    path, _, query = str(environ["REQUEST_URI"]).partition("?")
    hosts = [headers["host"]] if "host" in headers else []
    return Request(environ["REQUEST_METHOD"], path, query, headers, hosts)
