"""The target of the run of a node with elements (W19). `flow/runs/elements.py` follows such a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.aws.targets.clients import Clients
from chalicelib.aws.targets.no_lifecycle import Untracked
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Started
from chalicelib.settings import Settings


class EachElements(Untracked):
    """Implements `ports.TargetAdapter`. Nothing is called: the elements have runs of their own."""

    def start(self, run: Run, context: Mapping[str, Any]) -> Answer:
        return Started(run.run_id)


def build(clients: Clients, settings: Settings) -> EachElements:
    del clients, settings
    return EachElements()
