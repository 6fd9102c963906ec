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
from chalicelib.core.targets.secrets import Secret, arn_of, name_of
from chalicelib.core.targets.target import Formatted

MAX_CALL: Millis = 30_000
WITHOUT_BODY = ("GET", "DELETE")


CallTimeout = Annotated[
    Duration,
    spanning(1, MAX_CALL, "a timeout of at most 30s", "for longer work, answer at once and continue afterwards"),
]


class HttpTarget(Formatted):
    """An HTTP request to a web address. ``secret`` is the name of an SSM parameter, the ARN of a secret in Secrets
    Manager, or a reference. With it, Sluice signs the request (see docs/targets.md). A header may be a reference, too,
    and so may ``url``, with the ``host`` of the address. ``format``: the body is a CloudEvent in structured mode, or
    (``cloudevents-binary``) its attributes are headers and its data is the body (E11).
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

    @property
    def posts(self) -> bool:
        return self.method == "POST"

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

    @classmethod
    def is_signed(cls, stored: Mapping[str, Any]) -> bool:
        """Secrets are read from AWS; the call itself is none of AWS."""
        texts = (stored["url"], *(stored.get("headers") or {}).values())
        return bool(stored.get("secret")) or any(isinstance(each, Mapping) for each in texts)

    @classmethod
    def longest_call(cls, stored: Mapping[str, Any]) -> Millis:
        return duration(str(stored["timeout"]))


def _named(stored: str | Mapping[str, Any], field: str) -> Named:
    name = name_of(stored)
    if {".", ".."} & set(name.split("/")):
        raise invalid(field, "a secret whose name has no part . or ..", name, "write the name as it is stored")
    return Named("secrets", arn_of(name), field, name)
