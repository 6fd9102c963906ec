"""An HTTP callback as a target and as a probe: signed, bounded, and restricted to public addresses (E5, O6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from chalicelib.aws.targets import envelope, formats, secrets
from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.aws.targets.safe_http import NotReached, Reply, SafeHttp, Unsafe
from chalicelib.core.instants import SECOND, Instant, Millis, duration
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, Started
from chalicelib.core.targets.http import WITHOUT_BODY
from chalicelib.core.targets.secrets import name_of
from chalicelib.settings import Settings

MAX_REASON = 200  # characters of an answer that a reason quotes
SHORTEST = 8  # characters of a part of a secret that is masked in an answer
AGAIN = (408, 425)  # retried, as are 429 and all 5xx


class HttpTarget(Untracked):
    def __init__(self, http: SafeHttp, secrets: secrets.Secrets, now: Callable[[], Instant]) -> None:
        self._http, self._secrets, self._now = http, secrets, now

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        headers, content, content_type = formats.call(run, context)
        reply = self._call(run.request.target, content, content_type, headers)
        return self._judge(reply) if isinstance(reply, Reply) else reply

    def probe(self, target: Mapping[str, Any], question: Mapping[str, Any]) -> bytes | Never | NoAnswer:
        """Send a question to an address and return the answer, or why there is none."""
        headers = {
            "Sluice-Event-Id": str(question.get("job_id", "")),
            "Sluice-Schedule": str(question.get("schedule", "")),
        }
        reply = self._call({"method": "POST", **target}, json.dumps(question).encode(), envelope.JSON, headers)
        if isinstance(reply, Reply) and 200 <= reply.status < 300:
            return reply.body
        answer = self._judge(reply) if isinstance(reply, Reply) else reply
        return answer if isinstance(answer, Never | NoAnswer) else NoAnswer(getattr(answer, "why", "no answer"))

    def _call(
        self, target: Mapping[str, Any], body: bytes, content_type: str, run_headers: Mapping[str, str]
    ) -> Reply | Never | NotNow | NoAnswer:
        method = str(target["method"])
        own = self._read(target["headers"], self._secrets.header)
        if isinstance(own, Never | NotNow):
            return own  # a call is never made without one of its headers
        inside = self._read(target.get("body_secrets") or {}, self._secrets.field)
        if isinstance(inside, Never | NotNow):
            return inside
        sent = None if method in WITHOUT_BODY else _filled(body, inside)
        if isinstance(sent, Never):
            return sent
        url = self._url(target["url"])
        if isinstance(url, Never | NotNow):
            return url
        headers = {**own, "User-Agent": "sluice/1", **run_headers}
        if sent is not None:
            headers["Content-Type"] = content_type
        if target.get("secret"):
            keys = self._secrets.keys(name_of(target["secret"]))
            if isinstance(keys, Never | NotNow):
                return keys  # a callback with a secret is never sent unsigned
            about = secrets.Subject(headers["Sluice-Schedule"], headers["Sluice-Event-Id"], method, url)
            headers["Sluice-Signature"] = secrets.signature(keys, self._now(), about, sent or b"")
        try:
            reply = self._http.send(method, url, headers, sent, duration(target["timeout"]) / SECOND)
        except Unsafe as error:
            return Never(f"the callback was not made: {error}")
        except NotReached as error:
            return NoAnswer(str(error))
        secret = [*_secrets_in(target, own, url), *_in_json(inside.values())]
        return replace(reply, body=_masked(reply.body, secret)) if secret else reply

    def _url(self, stored: str | Mapping[str, Any]) -> str | Never | NotNow:
        """The address of a document, or the one in the secret that it names."""
        if isinstance(stored, str):
            return stored
        return self._secrets.address(name_of(stored), str(stored["host"]))

    def _read(
        self, stored: Mapping[str, Any], read: Callable[[str], str | Never | NotNow]
    ) -> dict[str, str] | Never | NotNow:
        """The headers or body fields of a document, with the values of the secrets that they name."""
        found: dict[str, str] = {}
        for name, value in stored.items():
            text = value if isinstance(value, str) else read(name_of(value))
            if not isinstance(text, str):
                return text
            found[name] = text
        return found

    def _judge(self, reply: Reply) -> Answer:
        """The meaning of a reply. 2xx: delivered. 408, 425, 429 and 5xx: retry, not before ``Retry-After``. Others:
        refused for good."""
        if 200 <= reply.status < 300:
            return Started(f"http-{reply.status}", done=True)
        why = f"the callback answered with HTTP {reply.status}{_quoted(reply.body)}"
        later = retry_after(reply.headers.get("retry-after"), self._now())
        if reply.status == 429:
            return NotNow(why, later)
        if reply.status in AGAIN or reply.status >= 500:
            return NoAnswer(why, later)
        if 300 <= reply.status < 400:
            return Never(f"{why}; redirects are not followed; configure the final address")
        return Never(why)


def _filled(body: bytes, fields: Mapping[str, str]) -> bytes | Never:
    """The body with these fields, whose values come from secrets; or why it has no place for them."""
    if not fields:
        return body
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return Never(f"the data has no place for {', '.join(fields)} of body_secrets; expected a JSON object")
    return json.dumps({**document, **fields}).encode()


def retry_after(text: str | None, now: Instant) -> Millis | None:
    """``Retry-After`` in ms, from seconds or an HTTP date. None for any other text."""
    if text is None or len(text) > 100:
        return None
    if text.strip().isdecimal():
        return int(text) * SECOND
    try:
        return max(0, round(parsedate_to_datetime(text).timestamp() * 1000) - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _secrets_in(target: Mapping[str, Any], headers: Mapping[str, str], url: str) -> list[str]:
    """What a call has carried of the secrets that its document names in headers and address."""
    held = [headers[name] for name, value in target["headers"].items() if not isinstance(value, str)]
    words = _long(word for value in held for word in value.split())
    return [*held, *words, *([] if isinstance(target["url"], str) else [url, *_parts(url)])]


def _parts(url: str) -> list[str]:
    """What an answer may repeat of a secret address: its path with the query and without, each part of the path, and
    each value of the query; decoded, and as JSON may write them."""
    address = urlsplit(url)
    path = address.path.removeprefix("/")
    values = [pair.partition("=")[2] or pair for pair in address.query.split("&")]
    found = [f"{path}?{address.query}", path, *path.split("/"), *values]
    return _long(form for part in found for form in (part, unquote(part), part.replace("/", "\\/")))


def _in_json(values: Iterable[str]) -> list[str]:
    """Secrets as they are, and as JSON may write them."""
    return [form for value in values for form in dict.fromkeys((value, json.dumps(value)[1:-1]))]


def _long(parts: Iterable[str]) -> list[str]:
    """The parts that are long enough to be masked: a shorter one is in any text."""
    return [part for part in parts if len(part) >= SHORTEST]


def _masked(body: bytes, secrets: Sequence[str]) -> bytes:
    """An answer without the secrets that the call carried: a server may repeat a header, and reasons quote answers."""
    for secret in sorted(secrets, key=len, reverse=True):
        body = body.replace(secret.encode(), b"***")
    return body


def _quoted(body: bytes) -> str:
    text = " ".join(body[: 4 * MAX_REASON].decode(errors="replace").split())[:MAX_REASON]
    return f": {text}" if text.isprintable() and text else ""


def build(clients: Clients, settings: Settings) -> HttpTarget:
    keys = secrets.Secrets(lambda: clients.make("ssm"), lambda: clients.make("secretsmanager"), clients.now)
    return HttpTarget(SafeHttp(settings.http_allow_private), keys, clients.now)
