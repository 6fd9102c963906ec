"""Hold a schedule whose runs keep failing, so that it starts no more of them (L19)."""

from __future__ import annotations

from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import Failures, ScheduleState
from chalicelib.core.schedules import lifecycle
from chalicelib.core.text import count_of
from chalicelib.flow import wake
from chalicelib.flow.lookup import existing
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, Ports


def hold_failing(ports: Ports, run: Run) -> None:
    """Hold the schedule of a failed run if ``pause_after`` of its runs have failed in a row. A user has to resume it.

    Called before the failure is announced. The announcement is an outbox, so a crash on the way repeats this step too.
    """
    if run.pause_after is None:
        return
    for _ in range(MAX_CONFLICTS):
        failures = ports.rows.get(Failures, run.schedule)
        failed = failures.count if failures is not None else 0
        schedule_state = ports.rows.get(ScheduleState, run.schedule)
        if (
            failed < run.pause_after
            or schedule_state is None
            or schedule_state.mode != "enabled"
            or schedule_state.generation != run.generation
        ):
            return
        _, schedule = existing(ports, run.schedule)
        reason = f"{count_of(failed, 'run')} failed in a row; the last one was {run.run_id}"
        _, plan = lifecycle.pause(schedule_state, schedule, "hold", False, ports.clock.now(), "sluice", reason)
        if ports.ledger.commit(plan) is None:
            wake.all_of(ports, run.schedule)
            logger.warning("schedule held", extra={"schedule": run.schedule, "why": reason})
            return
