"""Whether a run can run again: as a rerun (W15), or as the start of a re-processing (L21)."""

from __future__ import annotations

from chalicelib.core import states
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.lookup import existing
from chalicelib.ports import Ports


def check_ended(run: Run) -> None:
    """Raise ``conflict`` (409) if a run has not ended."""
    if not states.is_terminal(run.state) or run.state == "RETRYING":
        work = "jobs" if run.state == "RETRYING" else "runs"
        hint = f"wait for its end, or end it: sluice {work} cancel {run.run_id}"
        raise SluiceError("conflict", f"expected a run that has ended, got one that is {run.state}", None, hint)


def schedule_of(ports: Ports, run: Run) -> tuple[ScheduleState, Schedule]:
    """The state and definition of the schedule of a run that has ended. Raises ``conflict`` (409) if the run has not,
    or if the schedule runs another workflow now, and ``not_found`` (404) if the schedule was deleted."""
    check_ended(run)
    schedule_state, schedule = existing(ports, run.schedule)
    if schedule.workflow != run.workflow:
        why = f"schedule {run.schedule} runs {schedule.workflow} now"
        raise SluiceError("conflict", f"expected a schedule that still runs {run.workflow}, but {why}", None, None)
    return schedule_state, schedule
