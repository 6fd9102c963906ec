"""Silent runs that are asked about together: EMR's listing answers for many at the price of few (W7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chalicelib.core import states
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Run
from chalicelib.core.runs import follow
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.writes import Replace
from chalicelib.flow.each import run_each
from chalicelib.flow.runs.complete import advance_run, ingest_status
from chalicelib.log import logger, run_fields
from chalicelib.ports import Ports

MIN_BATCH = 10  # fewer than these are asked about one by one


def among(ports: Ports, refs: Sequence[Ref]) -> dict[Ref, Run]:
    """Those of these runs that are merely silent, if they are many; whoever owes a status, is to end, or has not
    started yet is looked at alone."""
    runs = [ref for ref in refs if ref.kind == "run"]
    silent = {ref: run for ref in runs if (run := _silent(ports, ref)) is not None} if len(runs) >= MIN_BATCH else {}
    return silent if len(silent) >= MIN_BATCH else {}


def ask_together(ports: Ports, silent: Mapping[Ref, Run]) -> frozenset[Ref]:
    """Ask about them, at the pace that their target bears. Returns those that are seen to."""
    if not silent:
        return frozenset()
    seen: set[Ref] = set()

    def apply(told: tuple[Ref, Run, RunUpdate | None]) -> None:
        ref, run, update = told
        ingest_status(ports, run, update)
        seen.add(ref)

    for kind in dict.fromkeys(run.target_kind for run in silent.values()):
        asked = {ref: run for ref, run in silent.items() if run.target_kind == kind}
        try:
            answers = ports.targets.of(kind).ask_many(list(asked.values()))
            run_each([(ref, run, update) for (ref, run), update in zip(asked.items(), answers, strict=True)], apply)
        except Exception:  # each by itself then, and whoever caused it fails alone
            logger.exception("silent runs", extra={"size": len(asked)})
    return frozenset(seen)


def _silent(ports: Ports, ref: Ref) -> Run | None:
    run = ports.runs.run(ref.parts[0], int(ref.parts[1]))
    return run if run is not None and follow.is_silent(run, ports.clock.now()) else None


def ask(ports: Ports, run: Run) -> None:
    """Ask the target about a run that has been silent: EMR delivers its events as best it can, no better."""
    ingest_status(ports, run, ports.targets.of(run.target_kind).ask(run))


def time_out(ports: Ports, run: Run) -> None:
    """A run that has run for too long is cancelled (W12), unless it has ended unheard."""
    now = ports.clock.now()
    update = ports.targets.of(run.target_kind).ask(run)
    if update is not None and states.is_terminal(update.state) and advance_run(ports, run.run_id, run.attempt, update):
        return
    late = follow.timed_out(run, now)
    if ports.ledger.commit([Replace(late)]) is None:
        logger.info("run timed out", extra={**run_fields(run), "why": late.reason})
        cancel(ports, late)


def cancel(ports: Ports, run: Run) -> None:
    """Ask the target to end a run whose end is wanted, and then what became of it. Repeated until it has ended."""
    ports.targets.of(run.target_kind).cancel(run)
    ask(ports, run)
