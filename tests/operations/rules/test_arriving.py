"""What each kind of row becomes in the installation into which it is imported (L14)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import zones
from chalicelib.core.access.grants import MISSING
from chalicelib.core.instants import Instant
from chalicelib.core.rows.backfill import PlanPart
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.event import PostedEvent
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.schedule import Timer, Version
from chalicelib.core.why import Why
from sluice.operations.rules.arriving import Arrival, arriving, lacking
from sluice.operations.rules.limits import Moving, Use
from tests.aws.tables.test_unknown_attributes import sample
from tests.support import rows
from tests.support.clock import NOON

LATER: Instant = NOON + 5_000
OWN, OTHER = "pool:demo.p", "pool:lake.p"
CALM, FOREIGN = "policy:demo.calm", "policy:lake.calm"
WORKFLOW = "workflow:demo.flights.w"


def arrival(*namespaces: str, buckets: dict[str, str] | None = None, use: Use | None = None, by: str = "") -> Arrival:
    return Arrival(buckets or {}, LATER, Moving(frozenset(namespaces)), use or Use(), by)


def of_demo(row: Any, **fields: Any) -> Any:
    """The row of the namespace demo as it arrives."""
    [found] = arriving(row, arrival("demo", **fields))
    return found


def whole(row: Any, **fields: Any) -> Any:
    """The row as it arrives with a whole installation."""
    [found] = arriving(row, arrival(**fields))
    return found


# -- buckets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bucket", "expected"), [("old", "new"), ("third", "third")])
def test_l14_a_prefix_and_its_dataset_get_the_bucket_there(bucket: str, expected: str) -> None:
    prefix = replace(sample(PrefixRow), bucket=bucket)
    dataset = Definition("dataset", "demo.flights", {"bucket": bucket, "keys": ["day"]}, 1, NOON, "tester")
    buckets = {"old": "new"}
    assert whole(prefix, buckets=buckets) == replace(prefix, bucket=expected)
    assert whole(dataset, buckets=buckets) == replace(dataset, document={"bucket": expected, "keys": ["day"]})


def test_l14_a_workflow_keeps_a_document_that_names_a_bucket() -> None:
    row = Definition("workflow", "demo.flights.w", {"bucket": "old"}, 1, NOON, "tester")
    assert whole(row, buckets={"old": "new"}) == row


# -- authors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["workflow", "dag"])
def test_l22_who_imports_a_document_is_an_author_of_it(kind: Any) -> None:
    row = Definition(kind, "demo.flights.w", {"target": {"type": "sqs"}}, 1, NOON, "ann")
    assert whole(row) == row
    assert whole(row, by="eve") == replace(row, authors={"ann": ("target",), "eve": ("target",)})


@pytest.mark.parametrize("kind", ["namespace", "app", "policy", "pool", "calendar"])
def test_l22_documents_that_start_nothing_get_no_author(kind: Any) -> None:
    row = Definition(kind, "demo.x", {"size": 3}, 1, NOON, "ann")
    assert whole(row, by="eve") == row


def test_l22_who_imports_a_schedule_is_an_author_of_it() -> None:
    row = Version("demo.flights.s", 1, {"workflow": "w"}, NOON, "ann")
    assert whole(row) == row
    assert whole(row, by="eve") == replace(row, authors={"ann": ("workflow",), "eve": ("workflow",)})


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        (rows.job(approvals={"ann": NOON}), False),
        (rows.run(approvals={"ann": NOON}, state="RUNNING"), False),
        (rows.run(approvals={"ann": NOON}, state="SUCCEEDED"), True),
    ],
    ids=["job", "active run", "ended run"],
)
def test_c5_an_import_of_a_person_brings_no_approval(row: Any, kept: bool) -> None:
    """Those of a run that has ended are history."""
    assert whole(row) == row
    assert whole(row, by="eve") == (row if kept else replace(row, approvals={}))


# -- time zones --------------------------------------------------------------------------------------------------------


def timer(**fields: Any) -> Timer:
    plain = Timer("demo.flights.s", NOON, 1, NOON, {"0": NOON}, rules="2001a", walls={"0": (1, 2, 3, 4)}, wake_at=NOON)
    return replace(plain, **fields)


def test_t2_a_timer_by_other_rules_of_time_zones_is_due_at_once() -> None:
    assert whole(timer()) == timer(wake_at=LATER)
    assert of_demo(timer()) == timer(wake_at=LATER)


def test_t2_a_timer_by_the_rules_that_are_there_stays() -> None:
    present = timer(rules=zones.version())
    assert whole(present) == present
    assert whole(timer(walls={})) == timer(walls={}), "no leaf depends on a zone"


# -- rows of other namespaces ------------------------------------------------------------------------------------------


def test_l14_rows_of_other_namespaces_are_left_out() -> None:
    elsewhere = rows.job(schedule="lake.core.own")
    assert arriving(elsewhere, arrival("demo")) == ()
    assert whole(elsewhere) == elsewhere
    assert arriving(LimitState("emr:starts"), arrival("demo")) == ()


def test_l14_a_part_of_a_plan_arrives_with_what_names_it() -> None:
    row = sample(PlanPart)
    assert of_demo(row) == row


def test_l14_an_open_event_from_outside_arrives_as_a_posted_one() -> None:
    row = rows.posted("p1", event=rows.event("p1", kind="event", key="event:lake:closed"))
    assert of_demo(row) == PostedEvent(row.event, wake_at=LATER)
    assert arriving(replace(row, wake_at=None), arrival("demo")) == ()


def test_l14_a_notice_about_a_foreign_workflow_arrives_as_it_is() -> None:
    row = rows.notice(workflow="lake.core.count")
    assert of_demo(row) == row


# -- jobs, runs and queues ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "kept", "units"),
    [((OWN, WORKFLOW), (OWN, WORKFLOW), 3), ((OTHER, WORKFLOW), (WORKFLOW,), 0), ((WORKFLOW, OTHER), (WORKFLOW,), 0),
     ((), (), 0)],
)  # fmt: skip
def test_l14_a_job_keeps_the_permits_of_limits_that_move(
    held: tuple[str, ...], kept: tuple[str, ...], units: int
) -> None:
    row = rows.job(held=held, units=3)
    assert of_demo(row) == replace(row, held=kept, units=units)
    assert whole(row) == row


@pytest.mark.parametrize("row", [rows.job(rev=4), rows.run(permits=(), rev=4)], ids=["job", "run"])
def test_l14_who_queues_at_a_limit_that_stays_asks_again(row: Any) -> None:
    """It is due at once, in no queue, and the revision shows the change."""
    queued = replace(row, queued_in=FOREIGN, rank="R1")
    assert of_demo(queued) == replace(row, queued_in=None, rank=None, wake_at=LATER, rev=5)
    own = replace(row, queued_in=CALM, rank="R1")
    assert of_demo(own) == own
    assert of_demo(row) == row


def test_l22_a_job_that_waits_for_a_grant_is_due_at_once() -> None:
    """The grants may be there already."""
    row = rows.job(reason=Why.of(MISSING, "waits for a grant of lake: pools p"))
    assert of_demo(row) == replace(row, wake_at=LATER)
    other = replace(row, reason=Why.of("limit", "waits for a permit"))
    assert of_demo(other) == other


def test_l14_an_active_run_lacks_the_permits_of_limits_that_stay() -> None:
    """The permit of a pace is spent: it is in no count, so the run keeps its name."""
    permits = (OWN, OTHER, FOREIGN, "emr:starts", "rate:lake.core.count:2/3600000", WORKFLOW, "application:00app")
    row = rows.run(permits=permits, state="RUNNING")
    moving = Moving(frozenset({"demo"}))
    assert lacking(row, moving) == (OTHER, "application:00app")
    kept = (OWN, FOREIGN, "emr:starts", "rate:lake.core.count:2/3600000", WORKFLOW)
    assert of_demo(row) == replace(row, permits=kept)


def test_l14_an_ended_run_arrives_as_history() -> None:
    row = rows.run(permits=(OWN, OTHER), state="SUCCEEDED", queued_in=FOREIGN)
    assert lacking(row, Moving(frozenset({"demo"}))) == ()
    assert of_demo(row) == row


def test_l14_a_waiter_arrives_with_its_queue() -> None:
    row = Waiter(CALM, "R1", "demo.flights.s", 1, "JOB#1", "j1")
    assert of_demo(row) == row
    assert arriving(replace(row, limit_name=FOREIGN), arrival("demo")) == ()


def test_l14_a_limit_counts_what_arrives_with_it() -> None:
    use = Use(Counter({OWN: 2}), Counter({OWN: 1}))
    own, other = "demo.flights.s.mm94mtc0.8c8331a2d2f628b75cd5#1", "lake.core.s.mm94mtc0.8c8331a2d2f628b75cd5#1"
    row = LimitState(OWN, active=7, waiters=9, starts={own: NOON, other: NOON})
    assert of_demo(row, use=use) == replace(row, active=2, waiters=1, starts={own: NOON})
    assert whole(row, use=use) == row


def test_l14_a_limit_that_others_use_there_arrives_as_it_was() -> None:
    """Its count is changed by the import itself."""
    row = LimitState(OWN, active=7, waiters=9)
    shared = Arrival({}, LATER, Moving(frozenset({"demo"}), frozenset({OWN})), Use())
    assert arriving(row, shared) == (row,)


# -- outboxes ----------------------------------------------------------------------------------------------------------


def test_l14_an_open_reprocessing_is_checked_at_once() -> None:
    """The backfill of its step may be elsewhere."""
    row = replace(sample(Reprocess), namespace="demo", rev=4, expires_at=None)
    assert of_demo(row) == replace(row, wake_at=LATER, rev=5)
    assert whole(row) == row
    ended = replace(row, expires_at=LATER)
    assert of_demo(ended) == ended


def test_l22_grants_that_arrive_are_applied_at_once() -> None:
    row = replace(sample(GrantsRow), namespace="demo", rev=4)
    assert of_demo(row) == replace(row, wake_at=LATER, rev=5)
    assert whole(row) == row
