"""The client of Sluice's HTTP API. Methods take paths, return documents, and raise errors of the API as exceptions.

Example:

    client = Client.from_environment()
    client.put("/v1/namespaces/demo", {})
    for page in client.pages("/v1/namespaces/demo/runs", {"state": "FAILED"}):
        ...
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from sluice.errors import ApiRefused, NotReachable, Problem, WrongUsage
from sluice.refusals import Conflict, NotFound, refusal
from sluice.signing import Broken, Reply, SignedHttp

__all__ = ["Answer", "ApiRefused", "Client", "Document", "NotReachable"]

Document = dict[str, Any]
Query = Mapping[str, str | int | bool | None]

JSON = "application/json"
# Idempotent methods: they may be repeated when the API answers "later".
IDEMPOTENT = ("GET", "PUT", "DELETE")
LATER = (429, 500, 502, 503, 504)
ATTEMPTS = 4
FIRST_PAUSE = 0.2  # seconds; doubled after each attempt
MAX_PAUSE = 10.0  # seconds; the maximum, even if the server asks for more
PAGE = 100
LARGE_PAGE = 2_000  # of schedules in short
GLANCES = 50

# The schedule of a node of a DAG as people write it, in a path, and in the parameter or field ``schedule``.
_NODE_IN_PATH = re.compile(r"^/v1/namespaces/([^/]+)/apps/([^/]+)/schedules/([\w-]+)%2F([\w-]+)(?=/|$)")
_NODE = re.compile(r"([\w-]+)\.([\w-]+)\.([\w-]+)/([\w-]+)")
_SCHEDULE_IN_PATH = re.compile(r"^/v1/namespaces/[^/]+/apps/[^/]+/schedules/[\w-]+(?=/|$)")
_SCHEDULE = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the API. ``etag`` is the version of a single document, to be sent back as ``if_match``."""

    body: Document
    etag: str | None


class Client:
    """A client of one API. ``url`` ends before ``/v1``. Methods raise `ApiRefused`, `NotReachable` and `WrongUsage`."""

    def __init__(self, url: str, http: SignedHttp | None = None, pause: Callable[[float], None] = time.sleep) -> None:
        self.url = _checked(url)
        self._http = http or SignedHttp(self.url)
        self._pause = pause

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Client:
        """A client of the API in ``SLUICE_API_URL``. Raises `WrongUsage` if the variable is missing."""
        return cls(url_of(os.environ if environment is None else environment))

    def get(self, path: str, query: Query | None = None) -> Document:
        return self.request("GET", path, query=query).body

    def put(self, path: str, body: Document, query: Query | None = None, if_match: str | None = None) -> Document:
        return self.request("PUT", path, body, query, if_match).body

    def post(
        self,
        path: str,
        body: Document | list[Document] | None = None,
        key: str | None = None,
        repeatable: bool = False,
        media_type: str = JSON,
    ) -> Document:
        """Send a POST. ``key`` is the ``Idempotency-Key``: repeats with it count once, where the API honours it.
        ``repeatable`` declares that the request is idempotent without a key."""
        sent = {} if body is None else body
        return self.request("POST", path, sent, key=key, repeatable=repeatable, media_type=media_type).body

    def register_partition(self, dataset: str, partition: Mapping[str, str | int]) -> Document:
        """Register a partition of a dataset (``demo.flights``) as ready. A job calls this after writing a partition
        where no S3 notification reaches Sluice. The partition counts once, however often it is registered or notified.
        """
        namespace, _, name = dataset.partition(".")
        if not namespace or not name or "." in name:
            raise WrongUsage(
                f"expected a dataset as namespace.name, got {dataset!r}", "dataset", "such as demo.flights"
            )
        path = f"/v1/namespaces/{segment(namespace)}/datasets/{segment(name)}/partitions"
        return self.post(path, {"partition": dict(partition)}, repeatable=True)

    def whoami(self) -> Document:
        """Who signs the requests, and which installation answers: ``arn account region stage version``."""
        return self.get("/v1/whoami")

    def now(self, namespace: str, **filters: str | None) -> Document:
        """What waits in a namespace by what holds it, what runs, what is overdue, and what failures have paused.
        ``filters`` are ``app``, ``workflow``, ``target``, ``tag`` (``team=a``), ``q``, and ``late="true"``."""
        return self.get(f"{_space(namespace)}/now", filters)

    def schedules(self, namespace: str, most: int | None = None, **filters: str | None) -> list[Document]:
        """The schedules of a namespace in short, by name. ``filters`` are ``app``, ``tag`` (``team=a``), ``workflow``,
        ``state``, and ``q``, a part of the name."""
        path, found = f"{_space(namespace)}/schedules", []
        for page in self.pages(path, filters, most, LARGE_PAGE):
            found += page["items"]
        return found[:most]

    def glance(self, namespace: str, schedules: Sequence[str]) -> list[Document]:
        """Why each of these schedules (``app.name``) does not run, its next fire, waiting jobs and last ten runs, fifty
        with each request. Those that do not exist are left out."""
        found: list[Document] = []
        for start in range(0, len(schedules), GLANCES):
            part = list(schedules[start : start + GLANCES])
            found += self.post(f"{_space(namespace)}/glance", {"schedules": part}, repeatable=True)["items"]
        return found

    def fires(self, namespace: str, since: str | None = None, until: str | None = None) -> Document:
        """The fires of all schedules between two instants (RFC 3339); by default of the next day."""
        return self.get(f"{_space(namespace)}/fires", {"from": since, "to": until})

    def fire(self, fire_id: str) -> Document:
        """What has become of the events of a large fire, in numbers."""
        return self.get(f"/v1/fires/{segment(fire_id)}")

    def fire_events(self, fire_id: str, state: str | None = None, most: int | None = None) -> list[Document]:
        """The events of a large fire by their numbers, with ``state`` (such as ``FAILED``) only those in it."""
        path, found = f"/v1/fires/{segment(fire_id)}/events", []
        for page in self.pages(path, {"state": state}, most):
            found += page["items"]
        return found[:most]

    def limits(self, namespace: str, name: str | None = None) -> list[Document]:
        """The pools, the policies, and the limits at which jobs wait. With a name, such as
        ``workflow:demo.flights.clean`` or ``schedule:flights.clean``: with holders and waiters."""
        return list(self.listing(f"{_space(namespace)}/limits", {"name": name})["items"])

    def delete(self, path: str, if_match: str | None = None) -> Document:
        return self.request("DELETE", path, if_match=if_match).body

    def pages(
        self, path: str, query: Query | None = None, most: int | None = None, largest: int = PAGE
    ) -> Iterator[Document]:
        """The pages of a list, until they hold ``most`` items or the list ends (None: the whole list)."""
        cursor: str | None = None
        left = most
        while left is None or left > 0:
            size = largest if left is None else min(largest, left)
            page = self.get(path, {**(query or {}), "limit": size, "cursor": cursor})
            yield page
            cursor = page.get("next_cursor")
            if cursor is None:
                return
            left = None if left is None else left - len(page.get("items", ()))

    def listing(self, path: str, query: Query | None = None, most: int | None = None) -> Document:
        """The pages of a list as one: ``{"items": [...], "next_cursor": the start of the rest, or None}``."""
        items: list[Any] = []
        cursor: str | None = None
        for page in self.pages(path, query, most):
            items += page.get("items", ())
            cursor = page.get("next_cursor")
        return {"items": items, "next_cursor": cursor}

    def request(
        self,
        method: str,
        path: str,
        body: Document | list[Document] | None = None,
        query: Query | None = None,
        if_match: str | None = None,
        key: str | None = None,
        repeatable: bool = False,
        media_type: str = JSON,
    ) -> Answer:
        """Send a request and return the answer with its ETag. The request is repeated while the API answers "later",
        unless a repeat could do harm. A POST without a key would act twice, unless it is ``repeatable``. A repeated
        conditional request would fail because of the first one. If a DELETE without an answer is repeated and finds
        nothing, the first one has deleted it: the answer is empty. The node of a DAG may be named as
        ``demo.flights.nightly/load``, in a path with ``%2F``: its schedule is read first, that of the present graph. A
        DAG may be named as a schedule, which is its start, if no schedule has this name."""
        path, query, body = self._in_path(path), self._in_field(query), self._in_field(body)
        try:
            return self._request(method, path, body, query, if_match, key, repeatable, media_type)
        except NotFound as refused:
            start = (_start_in_path(path), _start_in_field(query), _start_in_field(body))
            if method not in ("GET", "POST") or start == (path, query, body):
                raise
            try:
                return self._request(method, start[0], start[2], start[1], if_match, key, repeatable, media_type)
            except NotFound:
                raise refused from None
            except Conflict:  # the start of a DAG is not changed alone; of a DAG that does not exist there is none
                if path != start[0] and not self._is_there(_start_in_path(path)):
                    raise refused from None
                raise

    def _is_there(self, path: str) -> bool:
        """Whether the schedule at the beginning of a path exists."""
        try:
            self._request("GET", path[: path.index("~") + 1], None, None, None, None, repeatable=True, media_type=JSON)
        except NotFound:
            return False
        return True

    def _request(
        self,
        method: str,
        path: str,
        body: Document | list[Document] | None,
        query: Query | None,
        if_match: str | None,
        key: str | None,
        repeatable: bool,
        media_type: str,
    ) -> Answer:
        url = self.url + path + _query(query)
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = media_type
        if if_match is not None:
            headers["If-Match"] = if_match
        if key is not None:
            headers["Idempotency-Key"] = key
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        again = (repeatable or method in IDEMPOTENT or key is not None) and if_match is None
        reply, unanswered = self._send(method, url, headers, content, ATTEMPTS if again else 1)
        try:
            return _answer(reply, method, path)
        except NotFound:
            if unanswered and method == "DELETE":
                return Answer({}, None)
            raise

    def _in_path(self, path: str) -> str:
        """The path, in which a node of a DAG has the name of its schedule."""
        found = _NODE_IN_PATH.match(path)
        return path if found is None else _path_of(self._schedule_of(*found.groups())) + path[found.end() :]

    def _in_field(self, given: Any) -> Any:
        """A query or a body, in whose field ``schedule`` a node of a DAG has the name of its schedule."""
        name = given.get("schedule") if isinstance(given, dict) else None
        found = _NODE.fullmatch(name) if isinstance(name, str) else None
        return given if found is None else {**given, "schedule": self._schedule_of(*found.groups())}

    def _schedule_of(self, namespace: str, app: str, dag: str, node: str) -> str:
        """The full name of the schedule of a node. The workflow that the start of a DAG runs is its present graph."""
        start = self.get(_path_of(f"{namespace}.{app}.{dag}~"))
        return f"{start['workflow']}~{node}"

    def _send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None, attempts: int
    ) -> tuple[Reply, bool]:
        """The reply, and whether an attempt before may have been carried out without an answer."""
        unanswered = False
        for attempt in range(1, attempts + 1):
            last = attempt == attempts
            try:
                reply = self._http.send(method, url, headers, content)
            except Broken:
                if last:
                    raise
                self._pause(_backoff(attempt, None))
                unanswered = True
                continue
            if last or reply.status not in LATER:
                return reply, unanswered
            unanswered = unanswered or reply.status >= 500
            self._pause(_backoff(attempt, reply.headers.get("retry-after")))
        raise AssertionError("unreachable: the last attempt returns or raises")


def url_of(environment: Mapping[str, str]) -> str:
    """The address of the API in ``SLUICE_API_URL``. Raises `WrongUsage` if the variable is missing."""
    url = environment.get("SLUICE_API_URL")
    if not url:
        hint = "source .local/endpoints.env, or set it to the ApiUrl output of the stack"
        raise WrongUsage("expected SLUICE_API_URL in the environment, got nothing", "SLUICE_API_URL", hint)
    return url


def _space(namespace: str) -> str:
    return f"/v1/namespaces/{segment(namespace)}"


def _start_in_path(path: str) -> str:
    """The path, in which what is named as a schedule is the start of a DAG. Only a DAG as a whole has a ``why``."""
    found = _SCHEDULE_IN_PATH.match(path)
    return path if found is None or path.endswith("/why") else f"{found.group()}~{path[found.end() :]}"


def _start_in_field(given: Any) -> Any:
    name = given.get("schedule") if isinstance(given, dict) else None
    is_name = isinstance(name, str) and _SCHEDULE.fullmatch(name)
    return {**given, "schedule": f"{name}~"} if is_name else given


def _path_of(schedule: str) -> str:
    namespace, app, name = schedule.split(".")
    return f"/v1/namespaces/{segment(namespace)}/apps/{segment(app)}/schedules/{segment(name)}"


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        hint = "such as https://a1b2c3.execute-api.us-east-1.amazonaws.com/api"
        raise WrongUsage(
            f"expected an address that begins with http:// or https://, got {url!r}", "SLUICE_API_URL", hint
        )
    return url.rstrip("/").removesuffix("/v1")


def _query(query: Query | None) -> str:
    """``?a=b`` without None values. Spaces become %20: a ``+`` is signed and read differently."""
    given = {key: value for key, value in (query or {}).items() if value is not None}
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in given.items()}
    return f"?{urlencode(texts, quote_via=quote)}" if texts else ""


def _backoff(attempt: int, retry_after: str | None) -> float:
    """Seconds to wait after an attempt: the time that the server asks for, or else a doubling time with jitter. So
    clients do not return at the same time."""
    if retry_after is not None and retry_after.isdigit():
        return min(float(retry_after), MAX_PAUSE)
    return float(FIRST_PAUSE * 2 ** (attempt - 1) * random.uniform(0.75, 1.25))


def _answer(reply: Reply, method: str, path: str) -> Answer:
    body = _parsed(reply)
    if reply.status >= 300:
        raise refusal_of(reply, method, path)
    if not isinstance(body, dict):
        came = reply.headers.get("content-type", "something else")
        hint = "check SLUICE_API_URL: it ends before /v1; the answer is not from a Sluice API"
        raise NotReachable(f"expected a JSON object from {method} {path}, got {came}", hint=hint)
    return Answer(body, reply.headers.get("etag"))


def _parsed(reply: Reply) -> Any:
    """The content as JSON: an empty object if there is none, and None if it is not JSON."""
    try:
        return json.loads(reply.content) if reply.content else {}
    except ValueError:
        return None


def refusal_of(reply: Reply, method: str, path: str) -> ApiRefused:
    """The error of the API. An error of API Gateway or a proxy gets the same form with codes of its own. Only the API
    can say that an object does not exist."""
    body = _parsed(reply)
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        message = str(error.get("message") or f"{method} {path} was refused")
        code = str(error.get("code") or "unknown")
        refused = refusal(reply.status, code, message, error.get("field"), error.get("hint"))
        problems = error.get("problems")
        if isinstance(problems, list) and problems:
            refused.problems = tuple(
                Problem(str(each.get("message")), each.get("field"), each.get("hint"), str(each.get("code")))
                for each in problems
            )
        return refused
    gateway_message = body.get("message") or body.get("Message") if isinstance(body, dict) else None
    message = str(gateway_message or f"{method} {path} was answered with HTTP {reply.status}")
    if reply.status == 403:
        hint = "check the AWS credentials and the region; a path that does not exist is refused in the same way"
        return refusal(403, "forbidden", f"the signature was refused: {message}", None, hint)
    if reply.status == 404:
        return refusal(404, "http_404", message, None, "check SLUICE_API_URL: no Sluice API answers there")
    hint_later = "retry the request; if the error persists, read the logs of the API" if reply.status in LATER else None
    return refusal(reply.status, f"http_{reply.status}", message, None, hint_later)
