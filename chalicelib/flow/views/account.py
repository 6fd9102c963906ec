"""What a run was billed for and has cost, as the API shows it (H1)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chalicelib.core.history.lines import waited
from chalicelib.core.instants import iso
from chalicelib.core.rows.run import Run
from chalicelib.core.runs.costs import Prices, Usage, cost_usd


def account(run: Run, prices: Prices) -> dict[str, Any]:
    """``number`` counts the runs of the workflow; ``waited_for`` is what its job waited for last, if it did, and
    ``waited_ms`` how long it waited. ``start_by`` and ``end_by`` are its deadline.

    ``billed``: hours, and dollars at list price; None if the target bills nothing, or has not said.
    """
    usage = Usage.of(run.billed)
    billed = {**asdict(usage), "cost_usd": cost_usd(usage, prices)} if usage else None
    return {
        "number": run.number or None,
        "waited_for": run.waited_for or None,
        "waited_ms": waited(run),
        "start_by": None if run.start_by is None else iso(run.start_by),
        "end_by": None if run.end_by is None else iso(run.end_by),
        "billed": billed,
    }
