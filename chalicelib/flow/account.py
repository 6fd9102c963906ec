"""What a run was billed for and has cost, as the API shows it (H1)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chalicelib.core.prices import Prices, Usage, cost_usd
from chalicelib.core.rows import Run


def account(run: Run, prices: Prices) -> dict[str, Any]:
    """``number`` counts the runs of the workflow; ``waited_for`` is what its job waited for last, if it did.

    ``billed``: hours, and dollars at list price; None if the target bills nothing, or has not said.
    """
    usage = Usage.of(run.billed)
    billed = {**asdict(usage), "cost_usd": cost_usd(usage, prices)} if usage else None
    return {"number": run.number or None, "waited_for": run.waited_for or None, "billed": billed}
