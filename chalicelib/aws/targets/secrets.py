"""The keys that sign callbacks, from SSM Parameter Store or Secrets Manager, and the signature itself."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets.aws_errors import code_of, message_of, refusal
from chalicelib.core.access.allowed import host_of
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE, Instant, Millis
from chalicelib.core.targets import denials
from chalicelib.core.targets.answers import Never, NotNow
from chalicelib.core.targets.secrets import MANAGED
from chalicelib.core.targets.urls import check_url

# A rotated secret is in use everywhere after this time; until then the previous key signs as well.
KEPT: Millis = 5 * MINUTE
MAX_KEYS = 2
_KEYS = "JSON with one or two keys of an id and a secret"


@dataclass(frozen=True, slots=True)
class Key:
    id: str
    secret: bytes


class Secrets:
    """Reads a secret at most once in five minutes. The value is a text, which is one key with the id ``1``, or JSON
    with the current key first: ``{"keys": [{"id": "2026-11", "secret": "..."}, {"id": "2026-10", "secret":
    "..."}]}``."""

    def __init__(self, ssm: Callable[[], Any], manager: Callable[[], Any], now: Callable[[], Instant]) -> None:
        self._ssm, self._manager, self._now = ssm, manager, now
        self._known: dict[str, tuple[Instant, str]] = {}

    def keys(self, name: str) -> tuple[Key, ...] | Never | NotNow:
        """The current key and, if there is one, the previous key; or why they cannot be read."""
        text = self.text(name)
        if not isinstance(text, str):
            return text
        keys = parse(text)
        if keys is None:
            self._known.pop(name, None)  # a corrected value counts at once
            return Never(f"secret {name} holds neither a text nor {_KEYS}")
        return keys

    def header(self, name: str) -> str | Never | NotNow:
        """The value for a header; or why it cannot be read."""
        text = self.text(name)
        if isinstance(text, str) and not (text.strip() and text.strip().isascii() and text.strip().isprintable()):
            return Never(f"secret {name} holds no text of printable ASCII characters, which a header can have")
        return text.strip() if isinstance(text, str) else text

    def field(self, name: str) -> str | Never | NotNow:
        """The value for a field of a body; or why it cannot be read."""
        text = self.text(name)
        if isinstance(text, str) and not text.strip():
            self._known.pop(name, None)  # a corrected value counts at once
            return Never(f"secret {name} is empty; expected a text")
        return text.strip() if isinstance(text, str) else text

    def address(self, name: str, host: str) -> str | Never | NotNow:
        """The web address that a secret holds, if it is one of this host; or why it cannot be called."""
        text = self.text(name)
        if not isinstance(text, str):
            return text
        try:
            url = check_url(text.strip())
        except SluiceError:
            url = ""  # the error would repeat the address
        if host_of(url) == host:
            return url
        self._known.pop(name, None)  # a corrected value counts at once
        return Never(
            f"secret {name} holds {'an address of another host' if url else 'no web address'}; expected {host}"
        )

    def text(self, name: str) -> str | Never | NotNow:
        """The value of a secret by its name (`core/targets/secrets.py`); or why it cannot be read."""
        now = self._now()
        if name in self._known and self._known[name][0] > now - KEPT:
            return self._known[name][1]
        try:
            text = self._read(name)
        except ClientError as error:
            answer = refusal("the store of secrets", error)
            code = code_of(error)
            why = f"secret {name} cannot be read: {code}{denials.what_to_do(code, message_of(error))}"
            return Never(why) if isinstance(answer, Never) or "NotFound" in code else NotNow(why)
        except BotoCoreError as error:
            return NotNow(f"secret {name} cannot be read: {error}")
        except KeyError:
            return Never(f"secret {name} holds bytes; expected a text")
        self._known[name] = now, text
        return text

    def _read(self, name: str) -> str:
        if name.startswith(("arn:", MANAGED)):
            secret_id = name.removeprefix(MANAGED)
            return str(self._manager().get_secret_value(SecretId=secret_id)["SecretString"])
        return str(self._ssm().get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"])


def parse(text: str) -> tuple[Key, ...] | None:
    """The keys in the value of a secret; None if the value has no valid keys."""
    if not text.lstrip().startswith("{"):
        return (Key("1", text.encode()),) if text else None
    try:
        listed = json.loads(text)["keys"]
        keys = tuple(Key(str(entry["id"]), str(entry["secret"]).encode()) for entry in listed)
    except (ValueError, TypeError, KeyError):
        return None
    usable = all(key.secret and key.id.isascii() and key.id.replace("-", "").replace(".", "").isalnum() for key in keys)
    return keys if 1 <= len(keys) <= MAX_KEYS and usable else None


@dataclass(frozen=True, slots=True)
class Subject:
    """What a call is about: the schedule and the event, and the address that is called."""

    schedule: str
    event_id: str
    method: str
    url: str


def signature(keys: tuple[Key, ...], now: Instant, subject: Subject, body: bytes) -> str:
    """``t=<unix seconds>,kid=<id>,v2=<hex>``: HMAC-SHA256 over `signed_text`; a second kid and v2 for the previous
    key."""
    at = str(now // 1000)
    text = signed_text(at, subject, body)
    signed = [(key.id, hmac.new(key.secret, text, hashlib.sha256).hexdigest()) for key in keys]
    return ",".join([f"t={at}", *(f"kid={kid},v2={digest}" for kid, digest in signed)])


def signed_text(at: str, subject: Subject, body: bytes) -> bytes:
    """The lines that a signature covers: the time in seconds, the namespace, and the schedule's full name. Then come
    the id of the event, the method, the URL, and the SHA-256 of the body. So a call cannot be passed on to another
    address, or under another id. None of the lines can contain a line break."""
    namespace = subject.schedule.partition(".")[0]
    digest = hashlib.sha256(body).hexdigest()
    lines = (at, namespace, subject.schedule, subject.event_id, subject.method, subject.url, digest)
    return "\n".join(lines).encode()
