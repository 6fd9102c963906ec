"""The target of the run that starts a DAG run: the run is complete at once, or runs until the DAG run ends (W4,
W20)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Started
from chalicelib.settings import Settings


class DagStarts(Untracked):
    """Implements `ports.TargetAdapter`. The announcement that the DAG run has begun starts its nodes. How it ends
    follows from its nodes (`flow/runs/dag_ends.py`)."""

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        lasts = bool(run.request.target.get("lasts"))
        return Started("dag", done=not lasts, running=lasts)


def build(clients: Clients, settings: Settings) -> DagStarts:
    del clients, settings
    return DagStarts()
