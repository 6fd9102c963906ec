"""Silent runs that are asked about together: EMR's listing answers for many at the price of few (W7)."""

from __future__ import annotations

from collections.abc import Sequence

from chalicelib.core import follow, states
from chalicelib.core.complete import News
from chalicelib.core.rows import Run
from chalicelib.core.sweep import Ref
from chalicelib.flow import complete
from chalicelib.flow.alone import each_alone
from chalicelib.log import logger
from chalicelib.ports import Ports

FEW = 10  # fewer than these are asked about one by one
LISTED = "emr_serverless"


def ask_together(ports: Ports, refs: Sequence[Ref]) -> frozenset[Ref]:
    """Ask about those of these runs that are merely silent, if they are many. Returns those that are seen to; whoever
    owes a status, is to end, or has not started yet is looked at alone."""
    if len(refs) < FEW:
        return frozenset()
    silent = {ref: run for ref in refs if (run := _silent(ports, ref)) is not None}
    if len(silent) < FEW:
        return frozenset()
    seen: set[Ref] = set()

    def take_in(told: tuple[Ref, Run, News | None]) -> None:
        ref, run, news = told
        complete.take_in(ports, run, news)
        seen.add(ref)

    try:
        answers = ports.targets.of(LISTED).ask_many(list(silent.values()))
        each_alone([(ref, run, news) for (ref, run), news in zip(silent.items(), answers, strict=True)], take_in)
    except Exception:  # each by itself then, and whoever caused it fails alone
        logger.exception("silent runs", extra={"size": len(silent)})
    return frozenset(seen)


def _silent(ports: Ports, ref: Ref) -> Run | None:
    run = ports.runs.run(ref.parts[0], int(ref.parts[1]))
    if run is None or run.target_id is None or run.announce or states.is_terminal(run.state):
        return None
    now = ports.clock.now()
    wanted = follow.ends(run) or follow.has_run_out(run, now) or run.request.target["type"] != LISTED
    return None if wanted else run
