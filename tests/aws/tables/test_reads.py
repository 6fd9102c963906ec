"""Single rows and lists of the tables, on both implementations."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest

from chalicelib.aws.tables import items
from chalicelib.aws.tables.catalog import ALLOWED_FOR, DynamoCatalog
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.jobs import DynamoJobs
from chalicelib.aws.tables.rows import DynamoRows
from chalicelib.aws.tables.runs import DynamoRuns, DynamoWakes
from chalicelib.core import ids
from chalicelib.core.instants import DAY
from chalicelib.core.limits.writes import TrackRates
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.rows.event import CountedObject, LastArrival, PostedEvent
from chalicelib.core.rows.limit import LimitState
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.run import Record
from chalicelib.core.rows.schedule import Failures, Subscription, Timer
from chalicelib.core.writes import Create, Put
from tests.support import rows
from tests.support.clock import NOON
from tests.support.reasons import says

DATASET = {"bucket": "lake", "prefix": "raw/a/", "keys": ["event-day"]}


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


def test_an_object_belongs_to_the_dataset_with_longest_prefix(dynamo: Dynamo) -> None:
    for name, prefix in (("demo.all", "raw/"), ("demo.a", "raw/a/")):
        document = {**DATASET, "prefix": prefix}
        dynamo.put_all([Put(Definition("dataset", name, document, 1, NOON)), Put(PrefixRow("lake", prefix, name))])
    catalog = DynamoCatalog(dynamo)

    found = {key: catalog.dataset_of("lake", key) for key in ("raw/a/day=1/x", "raw/b/x", "other/x", "top")}

    assert [name and name[0] for name in found.values()] == ["demo.a", "demo.all", None, None]


@pytest.mark.parametrize("beside", [0, 3, 60])
def test_the_longest_prefix_is_found_beside_similar_folders(dynamo: Dynamo, beside: int) -> None:
    prefixes = ["raw/", "raw/a/", "raw/a/b/c/", "raw/a/b!/", "sea/"]
    prefixes += [f"raw/a/b/{number:02}/" for number in range(beside)]
    kept = [Put(PrefixRow("lake", prefix, f"demo.{number}")) for number, prefix in enumerate(prefixes)]
    known = [Definition("dataset", f"demo.{number}", DATASET, 1, NOON) for number in range(len(prefixes))]
    dynamo.put_all([*kept, *map(Put, known)])
    catalog = DynamoCatalog(dynamo)
    for key in ("raw/a/b/c/d/x", "raw/a/b/bb/x", "raw/a/b/x", "raw/a/x", "raw/b/x", "raw/x", "r/x", "sea/z/x", "t/x"):
        longest = max((prefix for prefix in prefixes if key.startswith(prefix)), key=len, default=None)
        found = catalog.dataset_of("lake", key)
        assert (found and found[0]) == (f"demo.{prefixes.index(longest)}" if longest else None), key


@pytest.mark.parametrize("beside", [0, 18, 60])
def test_o14_the_owner_of_a_folder_gets_objects_at_the_same_cost(dynamo: Dynamo, beside: int) -> None:
    """Of a path with datasets of two namespaces and a prefix that was given, with as few reads as without owners."""
    rows = [PrefixRow("lake", "raw/", "a.all"), PrefixRow("lake", "raw/a/", "", owner="b")]
    rows += [PrefixRow("lake", f"raw/a/{number:02}/", "", owner="b") for number in range(beside)]
    known = [Definition("dataset", "a.all", DATASET, 1, NOON), Definition("dataset", "b.all", DATASET, 1, NOON)]
    dynamo.put_all([*map(Put, rows), *map(Put, known)])
    catalog = DynamoCatalog(dynamo)
    for key, expected in (("raw/a/zz/x", None), ("raw/b/x", "a.all"), ("raw/a/x", None)):
        with (
            patch.object(dynamo, "query", wraps=dynamo.query) as queries,
            patch.object(dynamo, "get_many", wraps=dynamo.get_many) as gets,
        ):
            found = catalog.dataset_of("lake", key)
        assert (found and found[0]) == expected, key
        assert queries.call_count == 1 and gets.call_count <= (beside > 0), key
    dynamo.put_all([Put(PrefixRow("lake", "raw/a/", "b.all", owner="b"))])
    found = catalog.dataset_of("lake", "raw/a/zz/x")
    assert found is not None and found[0] == "b.all"


@pytest.mark.parametrize(
    ("namespaces", "is_shared"),
    [
        ((), False),
        (("demo",), False),
        (("demo", "system"), False),
        (("demo", "demo-b"), True),
        (("a", "system", "z"), True),
        (("system", "y", "z"), True),
    ],
)
def test_o14_two_namespaces_besides_its_own_share_it(
    dynamo: Dynamo, namespaces: tuple[str, ...], is_shared: bool
) -> None:
    dynamo.put_all([Put(Definition("namespace", name, {}, 1, NOON)) for name in namespaces])
    catalog = DynamoCatalog(dynamo)
    assert catalog.is_shared() is is_shared
    assert all(catalog.is_shared(joining) is is_shared for joining in (*namespaces, "system"))
    assert catalog.is_shared("later") is (set(namespaces) > {"system"} or is_shared or namespaces == ("demo",))


def test_o14_a_second_namespace_is_noticed_in_seconds(dynamo: Dynamo) -> None:
    dynamo.put_all([Put(Definition("namespace", "demo", {}, 1, NOON))])
    catalog = DynamoCatalog(dynamo)
    assert not catalog.is_shared_lately(NOON)
    dynamo.put_all([Put(Definition("namespace", "demo-b", {}, 1, NOON))])

    assert catalog.is_shared()
    assert [catalog.over(dynamo).is_shared_lately(NOON + late) for late in (ALLOWED_FOR - 1, ALLOWED_FOR)] == [
        False,
        True,
    ]


def test_the_events_of_a_job_exclude_those_of_others(dynamo: Dynamo) -> None:
    dynamo.put_all(
        [Put(rows.applied_event("e1", "j1")), Put(rows.applied_event("e2", "j1")), Put(rows.applied_event("e3", "j2"))]
    )

    events = DynamoJobs(dynamo).events_of("j1", rows.SCHEDULE, rows.GENERATION)

    assert {event.id for event in events} == {"e1", "e2"}
    assert rows.event("e1") in events


def test_markers_are_not_jobs(dynamo: Dynamo) -> None:
    dynamo.put_all([Put(rows.applied_event()), Put(rows.job())])
    assert DynamoJobs(dynamo).jobs(rows.SCHEDULE, rows.GENERATION, 10, None).items == (rows.job(),)


def test_h2_history_is_newest_first_by_page_over_all_shards(dynamo: Dynamo) -> None:
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


def test_w11_a_burst_of_one_schedule_is_spread_over_index_shards(dynamo: Dynamo) -> None:
    made = [items.to_item(rows.run(f"r{index:02d}"), 4, 4) for index in range(60)]
    for key in ("wf_key", "schedule_key", "day_key"):
        assert len({item[key]["S"] for item in made}) == 4, key


def test_records_are_stored_separately_from_runs(dynamo: Dynamo) -> None:
    record = Record("r1", "ABORTED", rows.SCHEDULE, rows.GENERATION, says("no slot"), NOON)
    dynamo.put_all([Put(rows.run("r2")), Put(record)])
    table = DynamoRuns(dynamo)
    assert table.records("schedule", rows.SCHEDULE, 10, None).items == (record,)
    assert [run.run_id for run in table.runs("schedule", rows.SCHEDULE, 10, None).items] == ["r2"]
    assert DynamoRows(dynamo).get(Record, "r1") == record


def test_o1_the_wake_index_has_only_rows_that_need_attention(dynamo: Dynamo) -> None:
    dynamo.put_all(
        [
            Put(rows.job("late", sort_key="FIRE#2", wake_at=NOON + 5)),
            Put(rows.job("early", sort_key="FIRE#1", wake_at=NOON - 5)),
            Put(rows.job("asleep", sort_key="FIRE#3", wake_at=None)),
            Put(rows.job("tomorrow", sort_key="FIRE#4", wake_at=NOON + DAY)),
        ]
    )
    wakes = DynamoWakes(dynamo)

    due = wakes.overdue("jobs", NOON + 10, 100)

    assert [ref.parts[2] for ref in due] == ["FIRE#1", "FIRE#2"]
    assert all(ref.kind == "job" for ref in due)
    assert wakes.overdue("runs", NOON + 10, 100) == ()


def test_a_finished_row_leaves_the_wake_index(dynamo: Dynamo) -> None:
    run = rows.run()
    dynamo.put_all([Put(run)])
    assert DynamoWakes(dynamo).overdue("runs", NOON, 10) == (Ref("run", ("r1", "001")),)
    dynamo.put_all([Put(replace(run, wake_at=None))])
    assert DynamoWakes(dynamo).overdue("runs", NOON, 10) == ()


# -- the rows of custom events, sizes and absences -----------------------------------------------------------------


def test_t9_an_object_is_found_by_its_key_and_by_its_digest(dynamo: Dynamo) -> None:
    longest = "raw/a/day=1/" + "ü" * 500
    row = rows.sized(longest, cursor="c", leases=3)
    dynamo.put_all([Put(row), Put(rows.sized())])
    assert DynamoRows(dynamo).get(CountedObject, "demo.flights", longest, "etag") == row
    ref = kinds.ref_of(kinds.key_of(row))
    assert ref is not None and DynamoRows(dynamo).of(ref) == row
    assert DynamoRows(dynamo).get(CountedObject, "demo.flights", "another", "etag") is None
    assert DynamoRows(dynamo).get(CountedObject, "demo.weather", longest, "etag") is None


def test_t9_where_overwrites_count_each_content_is_an_object(dynamo: Dynamo) -> None:
    """If overwrites do not count, the marker names no content, and the second write of a key finds the first."""
    versions = [rows.sized(etag=etag, cursor=etag or None) for etag in ("", "one", "two")]
    dynamo.put_all([Put(row) for row in versions])
    key = versions[0].object_key
    assert [DynamoRows(dynamo).get(CountedObject, "demo.flights", key, etag) for etag in ("", "one", "two")] == versions
    assert DynamoRows(dynamo).get(CountedObject, "demo.flights", key, "three") is None
    assert dynamo.commit([Create(rows.sized(etag="two"))]) is not None
    assert dynamo.commit([Create(rows.sized(etag="three"))]) is None


def test_t11_a_posted_event_is_read_back_with_its_payload(dynamo: Dynamo) -> None:
    dynamo.put_all([Put(rows.posted())])
    assert DynamoRows(dynamo).get(PostedEvent, "p1") == rows.posted()
    assert DynamoRows(dynamo).get(PostedEvent, "p2") is None


def test_t18_the_last_arrival_is_known_per_leaf_and_generation(dynamo: Dynamo) -> None:
    dynamo.put_all([Put(LastArrival(rows.SCHEDULE, rows.GENERATION, "0", NOON)), Put(rows.job())])
    jobs = DynamoJobs(dynamo)
    found = DynamoRows(dynamo).get(LastArrival, rows.SCHEDULE, rows.GENERATION, "0")
    assert found is not None and found.at == NOON
    assert DynamoRows(dynamo).get(LastArrival, rows.SCHEDULE, rows.GENERATION, "1") is None
    assert DynamoRows(dynamo).get(LastArrival, rows.SCHEDULE, rows.GENERATION + 1, "0") is None
    assert jobs.jobs(rows.SCHEDULE, rows.GENERATION, 10, None).items == (rows.job(),), "it is no job"


def test_l19_failures_in_a_row_are_zero_where_none_were_counted(dynamo: Dynamo) -> None:
    assert DynamoRows(dynamo).get(Failures, rows.SCHEDULE) is None
    dynamo.put_all([Put(Failures(rows.SCHEDULE, 4))])
    assert DynamoRows(dynamo).get(Failures, rows.SCHEDULE) == Failures(rows.SCHEDULE, 4)


def test_c11_a_subscription_says_whether_matches_are_detached(dynamo: Dynamo) -> None:
    apart = Subscription("partition:demo.a", "demo.flights.s", NOON, 1, "0", NOON, detached=True)
    joined = replace(apart, schedule="demo.flights.t", detached=False)
    dynamo.put_all([Put(apart), Put(joined)])
    assert DynamoCatalog(dynamo).subscriptions("partition:demo.a", 10, None).items == (apart, joined)


def test_l10_a_timer_with_used_up_leaves_is_read_back_empty(dynamo: Dynamo) -> None:
    spent = Timer(rows.SCHEDULE, rows.GENERATION, 1, NOON, {}, rev=3)
    dynamo.put_all([Put(spent)])
    assert DynamoRows(dynamo).get(Timer, rows.SCHEDULE) == spent
    assert DynamoWakes(dynamo).overdue("catalog", NOON + DAY, 10) == ()


def test_c5_an_unused_limit_is_empty_and_may_have_rates_only(dynamo: Dynamo) -> None:
    jobs = DynamoJobs(dynamo)
    assert jobs.limit_state("workflow:w") == LimitState("workflow:w")
    assert dynamo.commit([TrackRates("workflow:w", ("9/5000", "2/1000"))]) is None
    assert jobs.limit_state("workflow:w") == LimitState("workflow:w", rates=("2/1000", "9/5000"))


def test_o3_the_wake_index_names_each_kind_of_overdue_row(dynamo: Dynamo) -> None:
    """Each is an outbox until its work is done."""
    dynamo.put_all([Put(rows.schedule_state(wake_at=NOON)), Put(rows.sized()), Put(rows.posted()), Put(rows.job())])
    wakes = DynamoWakes(dynamo)
    digest = ids.digest(rows.sized().object_key, "etag", length=40)
    assert set(wakes.overdue("catalog", NOON, 10)) == {
        Ref("schedule", (rows.SCHEDULE,)),
        Ref("object", ("demo.flights", digest[:2], digest)),
    }
    assert set(wakes.overdue("jobs", NOON, 10)) == {
        Ref("event", ("p1",)),
        Ref("job", (rows.SCHEDULE, ids.base36(rows.GENERATION), "GATHERING")),
    }
    dynamo.put_all([Put(rows.schedule_state()), Put(rows.sized(wake_at=None)), Put(rows.posted(wake_at=None))])
    assert wakes.overdue("catalog", NOON, 10) == ()


def test_c8_jobs_that_wake_soon_are_listed_without_hinted_fires(dynamo: Dynamo) -> None:
    places = {"GATHERING": NOON + 20, "JOB#1": NOON + 10, "RETRY#r#2": NOON + 30, "FIRE#1": NOON + 15}
    for place, at in places.items():
        dynamo.put_all([Put(rows.job(place, sort_key=place, wake_at=at))])
    dynamo.put_all(
        [Put(rows.job("early", sort_key="GATHERING#1", wake_at=NOON - 1)), Put(rows.posted(wake_at=NOON + 12))]
    )
    dynamo.put_all([Put(rows.job("late", sort_key="GATHERING#2", wake_at=NOON + 31))])

    soon = DynamoWakes(dynamo).upcoming(NOON, NOON + 30)

    assert [(ref.kind, ref.parts[2], at) for ref, at in soon] == [
        ("job", "JOB#1", NOON + 10),
        ("job", "GATHERING", NOON + 20),
        ("job", "RETRY#r#2", NOON + 30),
    ]
