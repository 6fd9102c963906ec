"""The waiting time, deadlines, billed usage and cost of a run, as the API shows them (H1)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chalicelib.core.history.lines import waited
from chalicelib.core.instants import iso
from chalicelib.core.rows.run import Run
from chalicelib.core.runs.costs import Prices, Usage, cost_usd


def account(run: Run, prices: Prices) -> dict[str, Any]:
    """The account of a run.

    ``number`` counts the runs of the workflow. ``waited_for`` is the last reason why its job waited, and ``waited_ms``
    the time that it waited. ``start_by`` and ``end_by`` are its deadlines. ``billed`` has hours, and dollars at list
    price; it is None if the target bills nothing, or has not reported the usage yet.
    """
    usage = Usage.of(run.billed)
    billed = {**asdict(usage), "cost_usd": cost_usd(usage, prices)} if usage else None
    return {
        "number": run.number or None,
        "waited_for": run.waited_for.text or None,
        "waited_ms": waited(run),
        "start_by": None if run.start_by is None else iso(run.start_by),
        "end_by": None if run.end_by is None else iso(run.end_by),
        "billed": billed,
    }
