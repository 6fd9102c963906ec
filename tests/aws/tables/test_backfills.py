"""Backfills in the tables, on both implementations: the rows read back, and the condition of each write (L12)."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.aws.tables.rows import DynamoRows
from chalicelib.aws.tables.runs import DynamoWakes
from chalicelib.core.rows import kinds
from chalicelib.core.rows.backfill import Backfill, PlanPart
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.writes import Create, ExpectBackfillRunning, Put, Replace, WakeBackfill, Write
from tests.support import rows
from tests.support.clock import NOON


def ok(dynamo: Dynamo, *writes: Write) -> bool:
    return dynamo.commit(writes) is None


def test_l12_a_backfill_is_read_back_unchanged(dynamo: Dynamo) -> None:
    times = rows.backfill(live={"0": NOON, "1": NOON + 1}, next=2, succeeded=0)
    days = rows.backfill("b2", since=None, until=None, dataset="demo.flights", keys=("year", "day"), wake_at=None)
    assert ok(dynamo, Create(times), Create(days), Create(rows.backfill("b3", schedule="demo.flights.other")))
    assert not ok(dynamo, Create(times)), "one request, one backfill"
    jobs = DynamoJobs(dynamo)
    assert DynamoRows(dynamo).get(Backfill, rows.SCHEDULE, "b1") == times
    assert DynamoRows(dynamo).get(Backfill, rows.SCHEDULE, "none") is None
    assert sorted(jobs.backfills(rows.SCHEDULE), key=lambda row: row.id) == [times, days]
    assert jobs.jobs(rows.SCHEDULE, rows.GENERATION, 10, None).items == (), "it is no job"


def test_l12_a_plan_is_read_part_by_part(dynamo: Dynamo) -> None:
    parts = [PlanPart("p1", number, (f"{number}/a", f"{number}/b"), NOON) for number in range(2)]
    for _ in range(2):
        dynamo.put_all([Put(part) for part in parts])
    parts = [DynamoRows(dynamo).get(PlanPart, "p1", number) for number in range(3)]
    assert [part and part.entries for part in parts] == [("0/a", "0/b"), ("1/a", "1/b"), None]


def test_l12_a_wake_makes_an_older_read_of_a_backfill_lose(dynamo: Dynamo) -> None:
    before = rows.backfill(wake_at=None, leases=3)
    assert ok(dynamo, Create(before))
    assert ok(dynamo, WakeBackfill(rows.SCHEDULE, "b1", NOON + 5))
    assert not ok(dynamo, Replace(replace(before, rev=2, next=1))), "what it has under way has changed since"
    woken = replace(before, rev=2, leases=0, wake_at=NOON + 5)
    assert DynamoRows(dynamo).get(Backfill, rows.SCHEDULE, "b1") == woken
    assert DynamoWakes(dynamo).overdue("jobs", NOON + 5, 10) == (Ref("backfill", (rows.SCHEDULE, "b1")),)
    assert ok(dynamo, Replace(replace(woken, rev=3, wake_at=None)))
    assert DynamoWakes(dynamo).overdue("jobs", NOON + 9, 10) == ()


def test_l12_waking_a_missing_backfill_creates_nothing(dynamo: Dynamo) -> None:
    assert not ok(dynamo, WakeBackfill(rows.SCHEDULE, "b1", NOON))
    assert dynamo.get_many([kinds.key(Backfill, rows.SCHEDULE, "b1")]) == {}


def test_l12_a_finished_backfill_begins_nothing(dynamo: Dynamo) -> None:
    goes_on = ExpectBackfillRunning(rows.SCHEDULE, "b1")
    assert not ok(dynamo, goes_on, Create(rows.run("r0"))), "there is none"
    row = rows.backfill()
    assert ok(dynamo, Create(row))
    assert ok(dynamo, goes_on, Create(rows.run("r1")))
    for rev, state in ((2, "CANCELLED"), (3, "ENDED"), (4, "DONE")):
        assert ok(dynamo, Replace(replace(row, rev=rev, state=state)))
        assert not ok(dynamo, goes_on, Create(rows.run("r2")))


def test_l21_a_reprocessing_is_read_back_unchanged(dynamo: Dynamo) -> None:
    steps = ({"schedule": "demo.flights.clean", "keys": ("day",), "after": (0, 1), "total": 3, "state": "waiting"},)
    row = Reprocess(
        "demo", "r1", "RUNNING", "demo.flights", ("day",), "s3://lake/raw/", "1", "3", steps, 2, NOON,
        properties={"rate": 0.5}, wake_at=NOON,
    )  # fmt: skip
    assert ok(dynamo, Create(row), Create(replace(row, id="r2", wake_at=None)))
    assert not ok(dynamo, Create(row)), "one request, one re-processing"
    jobs = DynamoJobs(dynamo)
    assert (DynamoRows(dynamo).get(Reprocess, "demo", "r1"), DynamoRows(dynamo).get(Reprocess, "other", "r1")) == (
        row,
        None,
    )
    assert sorted(each.id for each in jobs.reprocesses("demo")) == ["r1", "r2"]
    assert ok(dynamo, Replace(replace(row, rev=2)))
    assert not ok(dynamo, Replace(replace(row, rev=2))), "an older read loses"
