"""The result of a check of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chalicelib.core.why import NONE, Why
from chalicelib.core.writes import Write
from chalicelib.ports import Ports

Ended = Literal["gone", "launched", "delivered", "queued", "waiting", "dropped", "aborted", "coalesced", "applied"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check. ``why`` is the sentence in the log.

    ``overdue`` names a limit whose queue the job joined and which should have been served a while ago. ``same`` means
    that the check changed nothing, so the log already holds this ``why``.
    """

    ended: Ended
    why: Why = NONE
    overdue: str | None = None
    same: bool = False


def committed(ports: Ports, plan: list[Write], ended: Ended, why: Why) -> CheckResult | None:
    return CheckResult(ended, why) if ports.ledger.commit(plan) is None else None
