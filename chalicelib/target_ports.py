"""The seam between flows and what they start: targets of every type, and what is measured or asked outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from chalicelib.core.complete import News
from chalicelib.core.launch import Answer, Never, NoAnswer
from chalicelib.core.rows import Run


class Target(Protocol):
    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        """Ask for a start, repeatably: the same attempt again is the same start. Never raises for a refusal."""

    def start_many(self, calls: Sequence[tuple[Run, Mapping[str, Any]]]) -> list[Answer]:
        """The same for many, in the target's own batches: an answer to each, in the order given."""

    def ask(self, run: Run) -> News | None:
        """The state of a run as the target tells it: None while it has not begun, FAILED if it knows it no more."""

    def ask_many(self, runs: Sequence[Run]) -> list[News | None]:
        """The same of many, at a lower cost where the target has one: an answer to each, in the order given."""

    def find(self, run: Run) -> str | None:
        """The target's id of a run with this run's name, if there is one."""

    def cancel(self, run: Run) -> None: ...


class Targets(Protocol):
    def of(self, kind: str) -> Target: ...

    def probe(self, target: Mapping[str, Any], question: Mapping[str, Any]) -> bytes | Never | NoAnswer:
        """Ask a function or a web address and wait: what it says, or why it says nothing (C15)."""

    def measure(self, source: Mapping[str, Any]) -> float | Never | NoAnswer:
        """The value of what a load constraint measures outside, or why there is none (C6)."""

    def run_name(self, application_id: str, job_run_id: str) -> str | None:
        """The name of an EMR job run: our run id and attempt, if it is one of ours."""
