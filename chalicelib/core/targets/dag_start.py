"""The target of the run that starts a run of a DAG (W4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from chalicelib.core.rows.run import Run
from chalicelib.core.targets.target import Log, NoLog, Target


class DagStart(Target):
    """An internal target, which no user can name. The run that starts a run of a DAG executes nothing: its status
    starts the first nodes (W4). It succeeds at once, or with ``lasts`` it ends as the DAG run does (W20)."""

    inside: ClassVar[bool] = True

    type: Literal["dag"] = "dag"
    # Left out if it is false: older code refuses a field that it does not know.
    lasts: bool = Field(default=False, exclude_if=lambda lasts: not lasts)

    def started_by(self, watches_end: bool) -> Self:
        return self.model_copy(update={"lasts": watches_end})

    @classmethod
    def is_signed(cls, stored: Mapping[str, Any]) -> bool:
        return False

    @classmethod
    def log_of(cls, run: Run) -> Log:
        return NoLog("the start of a DAG run writes no log; the runs of its nodes do")
