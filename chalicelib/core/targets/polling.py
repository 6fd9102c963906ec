"""The interval at which Sluice polls a target that also sends events about its runs (W6)."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from chalicelib.core.documents import Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, MINUTE, duration


def _check_poll(text: str) -> str:
    if not MINUTE <= duration(text, "") <= DAY:
        raise invalid("", "an interval from 1m to 1d", text, "leave it out: the target reports how a run ends")
    return text


PollInterval = Annotated[Duration, AfterValidator(_check_poll)]
