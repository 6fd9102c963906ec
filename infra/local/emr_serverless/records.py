"""The records of the emulator: applications and job runs, as frozen values. Instants are epoch seconds in UTC."""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

DEFAULT_TIMEOUT_MINUTES = 720
_ID_ALPHABET = string.digits + string.ascii_lowercase


@dataclass(frozen=True)
class Application:
    """An application; `request` holds the parameters of CreateApplication and later updates, as sent."""

    id: str
    arn: str
    name: str
    release_label: str
    type: str
    state: str
    client_token: str
    fingerprint: str
    request: Mapping[str, Any]
    created_at: float
    updated_at: float

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Application:
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Attempt:
    """One finished attempt of a run with a retry policy."""

    number: int
    state: str
    state_details: str
    created_at: float
    updated_at: float


@dataclass(frozen=True)
class Usage:
    """Resource hours: vCPU-hours, GB-hours of memory, and GB-hours of storage."""

    vcpu_hours: float
    memory_gb_hours: float
    storage_gb_hours: float


@dataclass(frozen=True)
class JobRun:
    """A job run; `request` holds the parameters of StartJobRun as sent, without the client token.

    `fingerprint` is the canonical form of the request: the same token with another fingerprint is a conflict.
    """

    id: str
    application_id: str
    arn: str
    name: str | None
    release_label: str
    execution_role: str
    created_by: str
    client_token: str
    fingerprint: str
    request: Mapping[str, Any]
    state: str
    state_details: str
    created_at: float
    updated_at: float
    attempt: int = 1
    attempt_created_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    used: Usage | None = None
    billed: Usage | None = None
    past_attempts: tuple[Attempt, ...] = ()

    @property
    def spark_submit(self) -> Mapping[str, Any]:
        """The `jobDriver.sparkSubmit` of the request."""
        driver: Mapping[str, Any] = self.request["jobDriver"]["sparkSubmit"]
        return driver

    @property
    def timeout_minutes(self) -> int:
        """The maximum minutes in RUNNING; 0 means no limit. AWS's default is 720."""
        given = self.request.get("executionTimeoutMinutes")
        return DEFAULT_TIMEOUT_MINUTES if given is None else int(given)

    @property
    def max_attempts(self) -> int:
        return int((self.request.get("retryPolicy") or {}).get("maxAttempts") or 1)

    def as_of(self, attempt: int) -> JobRun | None:
        """The run at the end of an earlier attempt, or in its latest; None if there is no such attempt."""
        if attempt == self.attempt:
            return self
        for past in self.past_attempts:
            if past.number == attempt:
                return replace(
                    self,
                    state=past.state,
                    state_details=past.state_details,
                    attempt=past.number,
                    attempt_created_at=past.created_at,
                    updated_at=past.updated_at,
                    ended_at=None,
                    used=None,
                    billed=None,
                )
        return None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> JobRun:
        document = json.loads(text)
        document["past_attempts"] = tuple(Attempt(**past) for past in document["past_attempts"])
        for field in ("used", "billed"):
            document[field] = Usage(**document[field]) if document[field] else None
        return cls(**document)


def new_id() -> str:
    """An id in AWS's format: 16 digits and lower-case letters."""
    return "00" + "".join(secrets.choice(_ID_ALPHABET) for _ in range(14))


def plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as plain JSON without the client token, as they are stored and compared with a repeat."""
    request: dict[str, Any] = json.loads(json.dumps(parameters))
    request.pop("clientToken", None)
    return request


def fingerprint(request: Mapping[str, Any]) -> str:
    """A text that is equal for requests with equal parameters. The order of keys does not matter."""
    return json.dumps(request, sort_keys=True, separators=(",", ":"))
