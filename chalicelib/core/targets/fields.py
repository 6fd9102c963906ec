"""What the documents of several targets have: parts of ARNs, message groups, and the interval of polls."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.core.documents import Duration, spanning
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, MINUTE

# Parts of the regular expressions that check ARNs.
REGION = r"[a-z]{2}[a-z-]+-\d"
ARN = r"^arn:aws[a-z-]*:"

Group = Annotated[str, Field(pattern=r"^[!-~]{1,128}$")]  # of messages of a FIFO queue or topic

# Sluice polls a target this often that also sends events about its runs (W6).
PollInterval = Annotated[
    Duration, spanning(MINUTE, DAY, "an interval from 1m to 1d", "leave it out: the target reports how a run ends")
]


def check_group(group: str | None, name: str, what: str) -> None:
    """Raises ``invalid`` for a message group on a standard queue or topic. ``what`` is ``queue`` or ``topic``."""
    if group is not None and not name.endswith(".fifo"):
        raise invalid("group", f"a group only for a FIFO {what}, whose name ends with .fifo", group, "leave it out")
