"""The target of the run that begins a DAG's run (W4)."""

from __future__ import annotations

from typing import Literal

from chalicelib.core.rows.run import Run
from chalicelib.core.targets.logs import Log, NoLog
from chalicelib.core.targets.target import Target


class DagStart(Target):
    """No target of a user's: the run that begins that of a DAG has nothing to do but to be over, and to say so (W4)."""

    type: Literal["dag"] = "dag"

    @classmethod
    def log_of(cls, run: Run) -> Log:
        del run
        return NoLog("what begins a run of a DAG writes no log: its nodes do")
