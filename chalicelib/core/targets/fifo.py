"""Message groups of FIFO queues and topics."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chalicelib.core.errors import invalid

Group = Annotated[str, Field(pattern=r"^[!-~]{1,128}$")]


def check_group(group: str | None, name: str, what: str) -> None:
    """Raises ``invalid`` for a message group on a standard queue or topic. ``what`` is ``queue`` or ``topic``."""
    if group is not None and not name.endswith(".fifo"):
        raise invalid("group", f"a group only for a FIFO {what}, whose name ends with .fifo", group, "leave it out")
