"""A web address as a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from chalicelib.core.access.allowed import Named, host_of
from chalicelib.core.documents import Duration, spanning
from chalicelib.core.errors import invalid
from chalicelib.core.instants import Millis, duration
from chalicelib.core.targets import urls
from chalicelib.core.targets.secrets import OnlyReference, Secret, arn_of, name_of
from chalicelib.core.targets.target import Formatted

MAX_CALL: Millis = 30_000
WITHOUT_BODY = ("GET", "DELETE")


BodyField = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]

CallTimeout = Annotated[
    Duration,
    spanning(1, MAX_CALL, "a timeout of at most 30s", "for longer work, answer at once and continue afterwards"),
]


class HttpTarget(Formatted):
    """An HTTP request to a web address. ``secret`` is the name of an SSM parameter, the ARN of a secret in Secrets
    Manager, or a reference. With it, Sluice signs the request (see docs/targets.md). A header may be a reference, too,
    and so may ``url``, with the ``host`` of the address. ``format``: the body is a CloudEvent in structured mode, or
    (``cloudevents-binary``) its attributes are headers and its data is the body (E11).

    ``body_secrets`` are fields of the body, a JSON object, which Sluice reads right before the call.
    """

    type: Literal["http"]
    url: urls.Url
    method: Literal["POST", "PUT", "PATCH", "GET", "DELETE"] = "POST"
    headers: urls.Headers = Field(default_factory=dict)
    timeout: CallTimeout = "10s"
    secret: Secret | None = None
    format: Literal["cloudevents", "cloudevents-binary"] | None = Field(  # type: ignore[assignment]
        default=None, exclude_if=lambda given: given is None
    )

    # Left out unless it is given: older code refuses a field that it does not know.
    body_secrets: Annotated[dict[BodyField, OnlyReference], Field(min_length=1, max_length=5)] | None = Field(
        default=None, exclude_if=lambda given: given is None
    )

    @property
    def posts(self) -> bool:
        return self.method == "POST"

    @model_validator(mode="after")
    def _has_a_body_for_secrets(self) -> Self:
        if self.body_secrets is None:
            return self
        if self.method in WITHOUT_BODY:
            raise invalid("method", "POST, PUT or PATCH with body_secrets", self.method, "it has no body")
        if self.format is not None:
            raise invalid("format", "either a format or body_secrets", "both", "name the secret in a header")
        return self

    @model_validator(mode="after")
    def _carries_cloudevents(self) -> Self:
        if self.format is not None and self.method in WITHOUT_BODY:
            raise invalid("method", f"POST, PUT or PATCH with format: {self.format}", self.method, "it has no body")
        for header in self.headers if self.format is not None else ():
            if header.lower().startswith("ce-"):
                hint = "leave it out; Sluice sets the attributes of the CloudEvent"
                raise invalid(f"headers.{header}", "headers that do not begin with ce-", header, hint)
        return self

    @classmethod
    def named(cls, stored: Mapping[str, Any]) -> Iterable[Named]:
        url = stored["url"]
        if isinstance(url, str):
            yield Named("hosts", host_of(url), "url", url)
        else:
            yield Named("hosts", str(url["host"]), "url.host")
            yield _named(url, "url")
        if stored.get("secret"):
            yield _named(stored["secret"], "secret")
        for header, value in (stored.get("headers") or {}).items():
            if not isinstance(value, str):
                yield _named(value, f"headers.{header}")
        for name, value in (stored.get("body_secrets") or {}).items():
            yield _named(value, f"body_secrets.{name}")

    @classmethod
    def is_signed(cls, stored: Mapping[str, Any]) -> bool:
        """Secrets are read from AWS; the call itself is none of AWS."""
        texts = (stored["url"], *(stored.get("headers") or {}).values())
        named = stored.get("secret") or stored.get("body_secrets")
        return bool(named) or any(isinstance(each, Mapping) for each in texts)

    @classmethod
    def longest_call(cls, stored: Mapping[str, Any]) -> Millis:
        return duration(str(stored["timeout"]))


def _named(stored: str | Mapping[str, Any], field: str) -> Named:
    name = name_of(stored)
    if {".", ".."} & set(name.split("/")):
        raise invalid(field, "a secret whose name has no part . or ..", name, "write the name as it is stored")
    return Named("secrets", arn_of(name), field, name)
