"""H5: from when a deadline counts, and whether a start or an end was in time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND, iso
from chalicelib.core.notices import deadlines
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.notice import DeadlineWatch
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.why import HIDDEN, Why, mention
from tests.core.builders import NAME, NOON, job, run, schedule, workflow
from tests.support.reasons import says

START, END = NOON + 10 * MINUTE, NOON + HOUR
WATCH = DeadlineWatch("j", NAME, NAME, START, END, wake_at=START)
PULLED = {"type": "worker", "pool": "etl", "heartbeat": "1m"}


def missed(now: int, *attempts: Run, **given: Any) -> list[str]:
    return [what for what, _ in deadlines.judge(WATCH, given.get("job"), attempts, given.get("record"), now).missed]


def pulled(state: str = "STARTING", **fields: Any) -> Run:
    made = run(state, **{"start_requested_at": NOON + SECOND, **fields})
    return replace(made, request=replace(made.request, target=PULLED))


def test_h5_a_waiting_job_has_missed_its_start_with_its_reason() -> None:
    judged = deadlines.judge(WATCH, job(reason="waits for a slot"), (), None, START)
    assert judged.missed == (("missed_start", f"not started by {iso(START)}: waits for a slot"),)
    assert (judged.deadline.start_by, judged.deadline.end_by, judged.deadline.wake_at) == (None, END, END)


def test_h5_a_missed_deadline_names_no_other_namespace() -> None:
    why = Why.of("inherited", "priority 9, inherited from ", mention("schedule", "other.secret.urgent"))
    waiting, offered = (deadlines.judge(WATCH, *given, None, START).missed for given in (
        (job(reason=why), ()), (None, (run("STARTING", reason=why),)),
    ))  # fmt: skip
    assert [text.rpartition(" ")[2] for _, text in (*waiting, *offered)] == [HIDDEN, HIDDEN]


def test_h5_a_start_or_end_in_time_is_not_missed_if_checked_late() -> None:
    asked = run("SUCCEEDED", start_requested_at=START, ended_at=END)
    assert missed(END + HOUR, asked) == []
    assert missed(END + HOUR, replace(asked, start_requested_at=START + 1)) == ["missed_start"]
    assert missed(END + HOUR, replace(asked, ended_at=END + 1)) == ["missed_end"]


@pytest.mark.parametrize("requested", [None, START + SECOND])
def test_h5_the_first_attempt_is_the_start_and_the_last_one_end(requested: int | None) -> None:
    """The second attempt queues for its start, or was requested later. The start was in time all the same."""
    first = run("RETRYING", start_requested_at=NOON + MINUTE, ended_at=NOON + 5 * MINUTE)
    second = run("STARTING", attempt=2, start_requested_at=requested)
    assert missed(START + MINUTE, first, second) == []
    assert missed(END, first, second) == ["missed_end"]


def test_h5_offered_work_is_started_when_a_pull_worker_claims_it() -> None:
    offered = pulled(calls=1, reason="waits for a worker of pool demo.etl")
    [(what, why)] = deadlines.judge(WATCH, None, (offered,), None, START).missed
    assert what == "missed_start"
    assert why.endswith(": the run is STARTING, waits for a worker of pool demo.etl")

    taken = replace(offered, target_id="ann", lease_until=START + MINUTE)
    assert missed(START, taken) == []
    assert missed(START + MINUTE, replace(taken, lease_until=START + MINUTE + 1)) == ["missed_start"]
    begun = replace(taken, state="RUNNING", running_seen_at=START, lease_until=END)
    assert missed(START + MINUTE, begun) == []
    assert missed(START + MINUTE, replace(begun, running_seen_at=START + 1)) == ["missed_start"]


def test_h5_aborted_failed_or_cancelled_run_misses_no_deadline() -> None:
    record = Record("j", "ABORTED", NAME, 7, says("no slot"), NOON)
    assert missed(END, record=record) == []
    for state in ("FAILED", "CANCELLED", "ABORTED"):
        assert missed(END, run(state, start_requested_at=NOON, ended_at=NOON + MINUTE)) == []


def test_h5_catch_up_has_no_deadline_and_a_rerun_has_its_own() -> None:
    late = schedule(deadline={"start_within": "10m"})
    assert deadlines.begun(job("fire", nominal_at=NOON), late, workflow(), NOON) is not None
    for kind in ("retry", "redrive", "backfill"):
        assert deadlines.begun(job(kind, nominal_at=NOON), late, workflow(), NOON) is None
    once = job("run_now", rerun_of="r", event=Event("e", "time", "time", NOON, NOON), created_at=END, accepted_at=END)
    again = deadlines.begun(once, late, workflow(), END)
    assert again is not None
    assert (again.start_by, again.wake_at) == (END + 10 * MINUTE, END + 10 * MINUTE)


def test_h5_a_schedule_deadline_overrides_that_of_its_workflow() -> None:
    of_workflow = workflow(deadline={"start_within": "1m", "end_within": "2m"})
    fire = job("fire", nominal_at=NOON)
    own = deadlines.begun(fire, schedule(deadline={"end_within": "1h"}), of_workflow, NOON)
    theirs = deadlines.begun(fire, schedule(), of_workflow, NOON)
    assert own is not None
    assert theirs is not None
    assert (own.start_by, own.end_by) == (None, END)
    assert (theirs.start_by, theirs.end_by) == (NOON + MINUTE, NOON + 2 * MINUTE)
    assert deadlines.begun(fire, schedule(), workflow(), NOON) is None


def test_h5_judged_deadline_watch_expires_and_is_not_made_again() -> None:
    late, fire = schedule(deadline={"end_within": "1h"}), job("fire", nominal_at=NOON)
    watch = deadlines.begun(fire, late, workflow(), END + deadlines.REMEMBERED)
    assert watch is not None
    assert watch.expires_at is None
    judged = deadlines.judge(watch, None, (), None, END + HOUR).deadline
    assert (judged.wake_at, judged.expires_at) == (None, END + HOUR + deadlines.REMEMBERED + DAY)
    assert deadlines.begun(fire, late, workflow(), END + deadlines.REMEMBERED + 1) is None
