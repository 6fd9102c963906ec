"""Fields that documents of several targets have: parts of ARNs, message groups of FIFO queues and topics, and the
interval at which Sluice polls a target that also sends events about its runs (W6)."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from chalicelib.core.documents import Duration
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, MINUTE, duration

# Parts of the regular expressions with which the documents of targets check ARNs.
REGION = r"[a-z]{2}[a-z-]+-\d"
ARN = r"^arn:aws[a-z-]*:"
Group = Annotated[str, Field(pattern=r"^[!-~]{1,128}$")]


def check_group(group: str | None, name: str, what: str) -> None:
    """Raises ``invalid`` for a message group on a standard queue or topic. ``what`` is ``queue`` or ``topic``."""
    if group is not None and not name.endswith(".fifo"):
        raise invalid("group", f"a group only for a FIFO {what}, whose name ends with .fifo", group, "leave it out")


def _check_poll(text: str) -> str:
    if not MINUTE <= duration(text, "") <= DAY:
        raise invalid("", "an interval from 1m to 1d", text, "leave it out: the target reports how a run ends")
    return text


PollInterval = Annotated[Duration, AfterValidator(_check_poll)]
