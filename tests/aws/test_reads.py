"""The access patterns of `aws/keys.py`, on both implementations."""

from __future__ import annotations

from dataclasses import replace

from chalicelib.aws.catalog import DynamoCatalog
from chalicelib.aws.jobs import DynamoJobs
from chalicelib.aws.runs import DynamoRuns, DynamoWakes
from chalicelib.aws.table import Dynamo
from chalicelib.core.calendar import DAY
from chalicelib.core.rows import Definition, PrefixRow, Record, Subscription
from chalicelib.core.sweep import Ref
from chalicelib.core.writes import Put
from tests.support import rows
from tests.support.clock import NOON

DATASET = {"bucket": "lake", "prefix": "raw/a/", "keys": ["day"]}


def test_t15_a_page_of_the_reverse_index_never_splits_a_schedule(dynamo: Dynamo) -> None:
    names = [f"demo.flights.s{index}" for index in range(5)]
    subscriptions = [
        Subscription("partition:demo.a", name, NOON, 1, str(leaf), NOON) for name in names for leaf in range(3)
    ]
    dynamo.put_all([Put(row) for row in subscriptions])
    catalog = DynamoCatalog(dynamo)

    seen: list[Subscription] = []
    cursor: str | None = None
    while True:
        page = catalog.subscriptions("partition:demo.a", 7, cursor)
        by_schedule = {name: sum(row.schedule == name for row in page.items) for name in names}
        assert set(by_schedule.values()) <= {0, 3}
        seen += page.items
        if page.cursor is None:
            break
        cursor = page.cursor

    assert seen == subscriptions


def test_an_object_belongs_to_the_dataset_with_the_longest_prefix(dynamo: Dynamo) -> None:
    for name, prefix in (("demo.all", "raw/"), ("demo.a", "raw/a/")):
        document = {**DATASET, "prefix": prefix}
        dynamo.put_all([Put(Definition("dataset", name, document, 1, NOON)), Put(PrefixRow("lake", prefix, name))])
    catalog = DynamoCatalog(dynamo)

    found = {key: catalog.dataset_of("lake", key) for key in ("raw/a/day=1/x", "raw/b/x", "other/x", "top")}

    assert [name and name[0] for name in found.values()] == ["demo.a", "demo.all", None, None]


def test_the_events_of_a_job_are_its_own(dynamo: Dynamo) -> None:
    dynamo.put_all([Put(rows.marker("e1", "j1")), Put(rows.marker("e2", "j1")), Put(rows.marker("e3", "j2"))])

    events = DynamoJobs(dynamo).events_of("j1", rows.SCHEDULE, rows.GENERATION)

    assert {event.id for event in events} == {"e1", "e2"}
    assert rows.event("e1") in events


def test_markers_are_no_jobs(dynamo: Dynamo) -> None:
    dynamo.put_all([Put(rows.marker()), Put(rows.job())])
    assert DynamoJobs(dynamo).jobs(rows.SCHEDULE, rows.GENERATION, 10, None).items == (rows.job(),)


def test_h2_history_comes_newest_first_page_by_page_over_all_shards(dynamo: Dynamo) -> None:
    runs = [rows.run(f"r{index:02d}", claimed_at=NOON + index) for index in range(23)]
    dynamo.put_all([Put(run) for run in runs])
    table = DynamoRuns(dynamo)

    for scope, name in (("workflow", "demo.flights.w"), ("schedule", rows.SCHEDULE), ("day", "demo#2026-03-02")):
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = table.runs(scope, name, 5, cursor)
            assert len(page.items) <= 5
            found += [run.run_id for run in page.items]
            if page.cursor is None:
                break
            cursor = page.cursor
        assert found == [run.run_id for run in reversed(runs)], scope


def test_records_stand_apart_from_runs(dynamo: Dynamo) -> None:
    record = Record("r1", "ABORTED", rows.SCHEDULE, rows.GENERATION, "no slot", NOON)
    dynamo.put_all([Put(rows.run("r2")), Put(record)])
    table = DynamoRuns(dynamo)
    assert table.records("schedule", rows.SCHEDULE, 10, None).items == (record,)
    assert [run.run_id for run in table.runs("schedule", rows.SCHEDULE, 10, None).items] == ["r2"]
    assert table.record("r1") == record


def test_o1_the_wake_index_holds_only_what_wants_attention(dynamo: Dynamo) -> None:
    dynamo.put_all(
        [
            Put(rows.job("late", place="FIRE#2", wake_at=NOON + 5)),
            Put(rows.job("early", place="FIRE#1", wake_at=NOON - 5)),
            Put(rows.job("asleep", place="FIRE#3", wake_at=None)),
            Put(rows.job("tomorrow", place="FIRE#4", wake_at=NOON + DAY)),
        ]
    )
    wakes = DynamoWakes(dynamo)

    due = wakes.overdue("jobs", NOON + 10, 100)

    assert [ref.parts[2] for ref in due] == ["FIRE#1", "FIRE#2"]
    assert all(ref.kind == "job" for ref in due)
    assert wakes.overdue("runs", NOON + 10, 100) == ()


def test_a_settled_row_leaves_the_wake_index(dynamo: Dynamo) -> None:
    run = rows.run()
    dynamo.put_all([Put(run)])
    assert DynamoWakes(dynamo).overdue("runs", NOON, 10) == (Ref("run", ("r1", "001")),)
    dynamo.put_all([Put(replace(run, wake_at=None))])
    assert DynamoWakes(dynamo).overdue("runs", NOON, 10) == ()
