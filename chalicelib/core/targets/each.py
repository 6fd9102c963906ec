"""The target of the run of a node that runs once for each element of a list (W19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from chalicelib.core.rows.run import Run
from chalicelib.core.targets.target import Log, NoLog, Target


class EachElement(Target):
    """An internal target, which no user can name. A run of it executes nothing itself: it is RUNNING while there are
    elements, each with a run of its own, and ends after the last of them."""

    of_elements: ClassVar[bool] = True

    type: Literal["each"] = "each"

    @classmethod
    def is_signed(cls, stored: Mapping[str, Any]) -> bool:
        return False

    @classmethod
    def log_of(cls, run: Run) -> Log:
        return NoLog("the run of a node with each writes no log; the runs of its elements do")
