"""A web address as a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from chalicelib.core.access.allowed import Named, host_of, own_arn
from chalicelib.core.documents import Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Millis, duration
from chalicelib.core.targets import urls
from chalicelib.core.targets.arns import REGION
from chalicelib.core.targets.target import Delivered

MAX_CALL: Millis = 30_000

SecretName = Annotated[
    str,
    Field(
        pattern=(
            r"^(/[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*"
            rf"|arn:aws[a-z-]*:secretsmanager:{REGION}:\d{{12}}:secret:[A-Za-z0-9/_+=.@-]+)$"
        ),
        max_length=1011,
    ),
]


def _check_span(text: str) -> str:
    if not 1 <= duration(text, "") <= MAX_CALL:
        raise invalid("", "a timeout of at most 30s", text, "for longer work, answer at once and continue afterwards")
    return text


def secret_arn(name: str) -> str:
    """The ARN of a secret that is named as in `SecretName`."""
    return name if name.startswith("arn:") else own_arn("ssm", f"parameter{name}")


CallTimeout = Annotated[Duration, AfterValidator(_check_span)]


class HttpTarget(Delivered):
    """An HTTP request to a web address. ``secret`` is the name of an SSM parameter or the ARN of a secret in Secrets
    Manager; with it, Sluice signs the request (see docs/targets.md)."""

    type: Literal["http"]
    url: urls.Url
    method: Literal["POST", "PUT", "PATCH", "GET", "DELETE"] = "POST"
    headers: urls.Headers = Field(default_factory=dict)
    timeout: CallTimeout = "10s"
    secret: SecretName | None = None

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        yield Named("hosts", host_of(str(stored["url"])), "url", str(stored["url"]))
        if stored.get("secret"):
            secret = str(stored["secret"])
            yield Named("secrets", secret_arn(secret), "secret", secret)

    @classmethod
    def longest_call(cls, stored: Mapping[str, Any]) -> Millis:
        return duration(str(stored["timeout"]))
