"""The bodies that pull workers send (W5)."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field, field_validator

from chalicelib.core.documents import Document
from chalicelib.core.errors import invalid

MOST_METRICS = 1_000  # bytes: they are written with the run's row at every heartbeat
MOST_OUTPUT = 16_000  # characters of the last lines; what is longer loses its beginning

Worker = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$")]
ShortText = Annotated[str, Field(max_length=500)]
Metrics = dict[str, float | int | str | bool]


class _Measured(Document):
    """What carries a small map of metrics."""

    metrics: Metrics = Field(default_factory=dict, max_length=20)

    @field_validator("metrics")
    @classmethod
    def _is_small(cls, metrics: Metrics) -> Metrics:
        if (size := len(json.dumps(metrics).encode())) > MOST_METRICS:
            raise invalid(
                "", f"metrics of at most {MOST_METRICS} bytes", f"{size} bytes", "send fewer, or shorter ones"
            )
        return metrics


class Claim(Document):
    """A worker asks for work: who it is, how many runs it has room for, and for how many seconds it waits if there
    are none. It waits no longer than the answer's ``wait`` says, or a second if it asks for more."""

    worker: Worker
    capacity: int = Field(default=1, ge=1, le=10)
    wait: float = Field(default=20, ge=0, le=20)


class Heartbeat(_Measured):
    """A worker lives and works on. The first one says that it has begun."""

    worker: Worker
    message: ShortText = ""


class Report(_Measured):
    """The end of an attempt. ``output`` are the last lines of what was written."""

    worker: Worker
    state: Literal["succeeded", "failed"]
    exit_code: int | None = Field(default=None, ge=-1_000, le=1_000)
    message: ShortText = ""
    output: str = Field(default="", max_length=100_000)

    @field_validator("output")
    @classmethod
    def _its_end(cls, output: str) -> str:
        return output[-MOST_OUTPUT:]


class Release(Document):
    """A run goes back unstarted."""

    worker: Worker
    message: ShortText = ""
