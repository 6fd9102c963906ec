"""The target of the run that starts a run of a DAG (W4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from chalicelib.core.rows.run import Run
from chalicelib.core.targets.target import Log, NoLog, Target


class DagStart(Target):
    """An internal target, which no user can name. The run that starts a run of a DAG executes nothing: it succeeds at
    once, and its status starts the first nodes (W4)."""

    type: Literal["dag"] = "dag"

    @classmethod
    def is_signed(cls, stored: Mapping[str, Any]) -> bool:
        return False

    @classmethod
    def log_of(cls, run: Run) -> Log:
        return NoLog("the start of a DAG run writes no log; the runs of its nodes do")
