"""What a sweep reads, in which order it hints rows, and how it leases them (O3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.instants import MINUTE, SECOND, Instant, Millis
from chalicelib.core.limits.writes import WakeQueue
from chalicelib.core.rows import kinds
from chalicelib.core.rows import ref as refs
from chalicelib.core.rows.backfill import Backfill
from chalicelib.core.rows.dag import DagRun
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.rows.event import CountedObject, Partition, PostedEvent
from chalicelib.core.rows.grants import GrantsRow
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.rows.notice import DeadlineWatch, NoticeWindow, PendingNotice
from chalicelib.core.rows.ref import Ref, ShardPart, run_ref, shard_ref
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState, Timer
from chalicelib.core.runs import launch, metrics
from chalicelib.core.system import sweep as rules
from chalicelib.core.writes import Create, Put, Replace, Write
from chalicelib.flow import shards
from chalicelib.flow.system import sweep
from chalicelib.ports import Page, Ports, Rows
from sluice.testing.memory import MemoryHints
from tests.aws.tables.test_unknown_attributes import sample
from tests.support import rows
from tests.support.ledgers import LedgerBetween
from tests.support.world import World

OVERDUE: Millis = 20 * SECOND


class Index:
    """The wake indexes: the rows of each shard, with a cursor or without. Keeps what was asked."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], list[tuple[Ref, Instant]]] = {}
        self.cursors: dict[tuple[str, int], str] = {}
        self.soon: list[tuple[Ref, Instant]] = []
        self.asked: list[tuple[Any, ...]] = []

    def due(self, table: str, shard: int, until: Instant, limit: int, cursor: str | None) -> Page[tuple[Ref, Instant]]:
        self.asked.append((table, shard, until, limit, cursor))
        return Page(tuple(self.rows.get((table, shard), ())), self.cursors.get((table, shard)))

    def upcoming(self, since: Instant, until: Instant) -> tuple[tuple[Ref, Instant], ...]:
        self.asked.append((since, until))
        return tuple(self.soon)


class Commits(LedgerBetween):
    """Keeps the writes of each transaction, and of each batch of puts."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.plans: list[list[Write]] = []
        self.puts: list[list[Put]] = []

    def before(self, writes: Sequence[Write]) -> None:
        self.plans.append(list(writes))

    def before_puts(self, writes: Sequence[Put]) -> None:
        self.puts.append(list(writes))


class Watched(MemoryHints):
    """Keeps how hints were sent."""

    def __init__(self) -> None:
        super().__init__()
        self.how: list[tuple[Instant, dict[str, Any]]] = []

    def send_all(self, hints: Any, now: Instant, **how: Any) -> None:
        self.how.append((now, how))
        super().send_all(hints, now, **how)


class Swept:
    """A world whose indexes, transactions and hints a test sees."""

    def __init__(self, **tuned: Any) -> None:
        self.world = World(**{"wake_shards": 1, "history_shards": 1, **tuned})
        self.index, self.hints = Index(), Watched()
        self.ledger = Commits(self.world.ports.ledger)
        self.now = self.world.clock.now()

    @property
    def ports(self) -> Ports:
        return self.world.with_ports(wakes=self.index, ledger=self.ledger, hints=self.hints)

    def add(self, row: Any, ref: Ref, table: str = "jobs", shard: int = 0, at: Instant | None = None) -> Ref:
        """Store a row, which the index lists as due at an instant."""
        if self.world.ports.ledger.commit([Create(row)]) is not None:
            raise AssertionError(f"{row} exists")
        self.index.rows.setdefault((table, shard), []).append((ref, at if at is not None else self.now - OVERDUE))
        return ref

    def jobs(self, count: int, **fields: Any) -> list[Ref]:
        """So many overdue jobs."""
        return [self.job(f"j{number:03d}", **fields) for number in range(count)]

    def job(self, job_id: str, shard: int = 0, age: Millis = OVERDUE, **fields: Any) -> Ref:
        row = rows.job(job_id, sort_key=f"JOB#{job_id}", kind="detached", wake_at=self.now - age, **fields)
        return self.add(row, refs.ref_of(row), "jobs", shard, self.now - age)

    def run(self, run_id: str, age: Millis = OVERDUE, **fields: Any) -> Ref:
        row = rows.run(run_id, **{"wake_at": self.now - age, **fields})
        return self.add(row, run_ref(run_id, row.attempt), "runs")

    def stored(self, ref: Ref) -> Job:
        schedule, generation, sort_key = ref.parts
        found = self.world.ports.rows.get(Job, schedule, int(generation, 36), sort_key)
        assert found is not None
        return found

    def sweep(self, began: Instant | None = None, **ports: Any) -> int:
        return sweep.sweep_all(replace(self.ports, **ports), began)

    @property
    def hinted(self) -> list[Ref]:
        return [ref for _, ref in self.hints.sent]


# -- what is read ------------------------------------------------------------------------------------------------------


def test_o3_a_sweep_reads_a_page_of_each_shard_of_each_table() -> None:
    """Runs have no grace in the index: that of each run is looked at in its row."""
    swept = Swept(wake_shards=2)
    assert swept.sweep() == 0
    before, page = swept.now - 5 * SECOND, shards.PAGE
    assert swept.index.asked == [
        ("jobs", 0, before, page, None),
        ("jobs", 1, before, page, None),
        ("runs", 0, swept.now, page, None),
        ("runs", 1, swept.now, page, None),
        ("catalog", 0, before, page, None),
        ("catalog", 1, before, page, None),
    ]
    assert (swept.hints.sent, swept.world.metrics.of(metrics.OVERDUE_AGE)) == ([], [0])


def test_o3_the_oldest_rows_of_a_table_are_hinted_first() -> None:
    swept = Swept(wake_shards=2)
    young, old = swept.job("young", 0, 10 * SECOND), swept.job("old", 1, 30 * SECOND)
    middle, run = swept.job("middle", 0, 20 * SECOND), swept.run("r1", 40 * SECOND)
    assert swept.sweep() == 4
    assert swept.hinted == [old, middle, young, run]
    assert {due for due, _ in swept.hints.sent} == {swept.now}
    assert swept.hints.how == [(swept.now, {"ahead": True, "must": True})], "they precede the leases, and must arrive"
    assert swept.world.metrics.of(metrics.OVERDUE_AGE) == [40 * SECOND]


def test_o3_the_rest_of_a_full_shard_is_handed_on() -> None:
    """Emission hands on the catalog, with its timers."""
    swept = Swept(wake_shards=2)
    for table in ("jobs", "runs", "catalog"):
        swept.index.cursors[table, 1] = f"c-{table}"
    swept.sweep()
    jobs = ShardPart("jobs", 1, swept.now - 5 * SECOND, "c-jobs")
    runs = ShardPart("runs", 1, swept.now, "c-runs")
    assert swept.hints.sent == [(swept.now, shard_ref(jobs)), (swept.now, shard_ref(runs))]


EACH: dict[str, tuple[Any, Ref, str]] = {
    "backfill": (rows.backfill(), kinds.ref(Backfill, rows.SCHEDULE, "b1"), "jobs"),
    "re-processing": (
        replace(sample(Reprocess), namespace="demo", id="r1"), kinds.ref(Reprocess, "demo", "r1"), "jobs"
    ),
    "deployment": (
        replace(sample(Deployment), app="demo.flights", id="u1"), kinds.ref(Deployment, "demo.flights", "u1"), "jobs"
    ),
    "notice": (rows.notice(), kinds.ref(PendingNotice, "demo.flights.w", "failed", "j1"), "jobs"),
    "notice window": (
        replace(sample(NoticeWindow), workflow="demo.flights.w", channel="c"),
        kinds.ref(NoticeWindow, "demo.flights.w", "c"),
        "jobs",
    ),
    "deadline": (replace(sample(DeadlineWatch), id="j1"), kinds.ref(DeadlineWatch, "j1"), "jobs"),
    "dag run": (replace(sample(DagRun), dag_run="demo.flights.d.1"), kinds.ref(DagRun, "demo.flights.d.1"), "runs"),
    "run": (rows.run(), refs.run_ref("r1", 1), "runs"),
    "event": (rows.posted(), kinds.ref(PostedEvent, "p1"), "jobs"),
    "partition": (
        Partition("demo.flights", ("1", "2"), rows.event(), "k"), kinds.ref(Partition, "demo.flights", ("1", "2")),
        "catalog",
    ),
    "object": (rows.sized("k"), kinds.ref(CountedObject, "demo.flights", "k", "etag"), "catalog"),
}  # fmt: skip


@pytest.mark.parametrize("kind", EACH)
@pytest.mark.parametrize(("age", "hinted"), [(rules.GRACE, 1), (rules.GRACE - 1, 0)])
def test_o3_a_row_of_each_kind_is_hinted_and_leased(kind: str, age: Millis, hinted: int) -> None:
    """The next hint comes after half a minute, if nothing has moved the row since."""
    row, ref, table = EACH[kind]
    swept = Swept()
    before = replace(row, wake_at=swept.now - age)
    swept.add(before, ref, table)
    assert swept.sweep() == hinted
    assert swept.hinted == [ref] * hinted
    leased = replace(before, wake_at=swept.now + 30 * SECOND, leases=1)
    if isinstance(before, Partition | CountedObject) or kind == "event":
        assert swept.ledger.puts == [[Put(leased)]] * hinted
        assert swept.ledger.plans == []
    else:
        assert swept.ledger.plans == [[Replace(replace(leased, rev=before.rev + 1))]] * hinted
        assert swept.ledger.puts == []


@pytest.mark.parametrize(("target_id", "hinted"), [("worker-1", 1), (None, 0)])
def test_w5_the_lease_of_a_worker_has_no_grace(target_id: str | None, hinted: int) -> None:
    """Nothing else hints its end. That of a start call has a hint of its own."""
    swept = Swept()
    ref = swept.run("r1", 0, target_id=target_id, lease_until=swept.now)
    assert swept.sweep() == hinted
    assert swept.hinted == [ref] * hinted


def test_o3_limits_states_and_grants_are_hinted_and_not_leased() -> None:
    """The receiver of the hint leases a limit itself, and clears the instant of the others."""
    swept = Swept()
    grants = replace(sample(GrantsRow), namespace="demo", wake_at=swept.now - OVERDUE)
    state = rows.schedule_state(wake_at=swept.now - OVERDUE)
    limit = refs.limit_ref("policy:demo.calm")
    assert swept.world.ports.ledger.commit([WakeQueue("policy:demo.calm", swept.now - OVERDUE, parts=1)]) is None
    swept.index.rows["jobs", 0] = [(limit, swept.now - OVERDUE)]
    found = [
        limit,
        swept.add(grants, kinds.ref(GrantsRow, "demo"), "catalog"),
        swept.add(state, kinds.ref(ScheduleState, rows.SCHEDULE), "catalog"),
    ]
    assert swept.sweep() == 3
    assert swept.hinted == found
    assert (swept.ledger.plans, swept.ledger.puts) == ([], [])


def test_o3_rows_that_have_gone_or_wait_for_nothing_are_left_out() -> None:
    swept = Swept()
    swept.job("idle")
    [(idle, _)] = swept.index.rows["jobs", 0]
    row = swept.stored(idle)
    assert swept.world.ports.ledger.commit([Replace(replace(row, wake_at=None, rev=row.rev + 1))]) is None
    gone = [kinds.ref(Job, "demo.flights.s", 1, "JOB#x"), kinds.ref(Timer, "demo.flights.s"), run_ref("gone", 1)]
    swept.index.rows["jobs", 0] += [(ref, swept.now - OVERDUE) for ref in gone]
    assert (swept.sweep(), swept.hinted) == (0, [])


class Prefetched:
    """Reads of rows together. They may fail."""

    def __init__(self, inner: Any, fails: bool = False) -> None:
        self._inner, self._fails = inner, fails
        self.wanted: list[list[Key]] = []

    def read(self, ports: Ports, wanted: Sequence[Key]) -> Ports:
        self.wanted.append(list(wanted))
        if self._fails:
            raise ConnectionError
        found: Ports = self._inner.read(ports, wanted)
        return found


def test_o3_rows_of_all_kinds_are_read_together() -> None:
    """Except timers, which the emission of fires finds, and refs that name no row."""
    swept = Swept()
    wanted = {
        kinds.ref(Job, "demo.flights.s", 36, "JOB#x"): Key("jobs", "demo.flights.s@10", "JOB#x"),
        run_ref("r1", 2): Key("runs", "RUN#r1", "A#002"),
        kinds.ref(ScheduleState, "demo.flights.s"): Key("catalog", "SCHEDULE#demo.flights.s", "STATE"),
        kinds.ref(GrantsRow, "demo"): Key("catalog", "GRANTS", "demo"),
        kinds.ref(DagRun, "d1"): Key("runs", "RUN#d1", "DAG"),
        kinds.ref(Backfill, "demo.flights.s", "b1"): Key("jobs", "BACKFILL#demo.flights.s", "b1"),
        kinds.ref(PendingNotice, "demo.flights.w", "failed", "j1"): Key("jobs", "NOTICE#demo.flights.w", "failed#j1"),
        kinds.ref(DeadlineWatch, "j1"): Key("jobs", "DEADLINE#j1", "DEADLINE"),
        refs.limit_ref("policy:demo.calm"): Key("jobs", "LIMIT#policy:demo.calm", "STATE"),
    }
    listed = [kinds.ref(Timer, "demo.flights.s"), *wanted, refs.queue_ref("policy:demo.calm")]
    swept.index.rows["jobs", 0] = [(ref, swept.now - OVERDUE) for ref in listed]
    read = Prefetched(swept.world.ports.prefetch)
    swept.sweep(prefetch=read)
    assert read.wanted == [list(wanted.values())]


@pytest.mark.parametrize(("count", "together"), [(1, []), (2, [2]), (30, [25, 5])])
def test_o3_a_slice_of_25_rows_is_read_together(count: int, together: list[int]) -> None:
    swept = Swept()
    found = swept.jobs(count)
    read = Prefetched(swept.world.ports.prefetch)
    assert swept.sweep(prefetch=read) == count
    assert [len(wanted) for wanted in read.wanted] == together
    assert swept.hinted == found


def test_o3_rows_that_cannot_be_read_together_are_read_alone(caplog: pytest.LogCaptureFixture) -> None:
    swept = Swept()
    found = swept.jobs(3)
    assert swept.sweep(prefetch=Prefetched(None, fails=True)) == 3
    assert swept.hinted == found
    [line] = [vars(record) for record in caplog.records if record.message == "rows not read together"]
    assert (line["size"], line["levelname"]) == (3, "ERROR")


class Failing:
    """Reads of single rows, of which one fails."""

    def __init__(self, inner: Rows, fails: Ref) -> None:
        self._inner, self._fails = inner, fails

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def of(self, ref: Ref) -> Any:
        if ref == self._fails:
            raise ValueError("cannot be read")
        return self._inner.of(ref)


def test_o3_a_row_that_cannot_be_read_does_not_stop_the_others() -> None:
    swept = Swept()
    bad, good = swept.run("bad"), swept.job("good")
    with pytest.raises(ExceptionGroup, match="1 of 1 overdue rows failed") as failed:
        swept.sweep(rows=Failing(swept.world.ports.rows, bad), prefetch=Prefetched(None, fails=True))
    assert [str(error) for error in failed.value.exceptions] == ["cannot be read"]
    assert swept.hinted == [good]


# -- time --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("began", "ends", "hinted"),
    [
        (0, None, 60),
        (45 * SECOND - 1, None, 60),
        (45 * SECOND, None, 25),
        (0, 5 * SECOND, 60),
        (0, 5 * SECOND - 1, 25),
        (2 * MINUTE, 0, 25),
    ],
)
def test_o3_a_sweep_begins_no_slice_late_in_its_tick(
    began: Millis, ends: Millis | None, hinted: int, caplog: pytest.LogCaptureFixture
) -> None:
    """``began``: how long the tick has taken before. ``ends``: how long its invocation may still take."""
    swept = Swept()
    swept.jobs(60)
    ends_at = swept.now + ends if ends is not None else None
    assert swept.sweep(swept.now - began, ends_at=ends_at) == hinted
    lines = [vars(record) for record in caplog.records if record.message == "sweep broken off"]
    assert [line["left"] for line in lines] == ([35] if hinted == 25 else [])


def test_o3_a_sweep_without_a_tick_has_45_seconds() -> None:
    swept = Swept()
    swept.jobs(60)
    swept.world.tables.before_call = _passes(swept.world, 45 * SECOND)
    assert swept.sweep() == 25


def _passes(world: World, span: Millis) -> Any:
    left = [span]

    def once() -> None:
        if left:
            world.clock.wait_until(world.clock.now() + left.pop())

    return once


# -- leases ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "sizes"), [(1, [1]), (4, [1] * 4), (5, [5]), (30, [25, 5])])
def test_o3_few_rows_are_leased_alone_and_many_together(count: int, sizes: list[int]) -> None:
    swept = Swept()
    found = swept.jobs(count)
    assert swept.sweep() == count
    assert [len(plan) for plan in swept.ledger.plans] == sizes
    assert {(swept.stored(ref).leases, swept.stored(ref).wake_at) for ref in found} == {(1, swept.now + 30 * SECOND)}


def test_o3_outboxes_among_many_rows_are_leased_alone() -> None:
    swept = Swept()
    swept.jobs(6)
    outbox = rows.posted("p1", wake_at=swept.now - OVERDUE)
    swept.add(outbox, kinds.ref(PostedEvent, "p1"))
    assert swept.sweep() == 7
    assert [len(plan) for plan in swept.ledger.plans] == [6]
    assert swept.ledger.puts == [[Put(replace(outbox, wake_at=swept.now + 30 * SECOND, leases=1))]]


def test_o3_rows_of_many_bytes_need_several_transactions() -> None:
    """DynamoDB takes 4 MB in one."""
    swept = Swept()
    text = "x" * 299_000
    for number in range(12):
        swept.run(f"r{number:02d}", reason=text)
    assert swept.sweep() == 12
    assert [len(plan) for plan in swept.ledger.plans] == [9, 3]


class _Broken(Commits):
    """A ledger that takes no transaction of several writes."""

    def before(self, writes: Sequence[Write]) -> None:
        if len(writes) > 1:
            raise ConnectionError
        super().before(writes)


def test_o3_rows_that_cannot_be_leased_together_are_leased_alone(caplog: pytest.LogCaptureFixture) -> None:
    swept = Swept()
    swept.ledger = _Broken(swept.world.ports.ledger)
    found = swept.jobs(6)
    outbox = rows.posted("p1", wake_at=swept.now - OVERDUE)
    swept.add(outbox, kinds.ref(PostedEvent, "p1"))
    assert swept.sweep() == 7
    assert [swept.stored(ref).leases for ref in found] == [1] * 6
    assert swept.ledger.puts == [[Put(replace(outbox, wake_at=swept.now + 30 * SECOND, leases=1))]]
    [line] = [vars(record) for record in caplog.records if record.message == "rows not leased together"]
    assert (line["size"], line["levelname"]) == (6, "ERROR")


@pytest.mark.parametrize(("leases", "parked"), [(11, False), (12, True)])
@pytest.mark.parametrize("count", [1, 6])
def test_o3_a_row_that_keeps_failing_is_parked_and_logged(
    count: int, leases: int, parked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    swept = Swept()
    found = swept.jobs(count, leases=leases)
    assert swept.sweep() == count
    lines = [vars(record) for record in caplog.records if record.message == "parked"]
    assert [(line["ref"], line["leases"], line["levelname"]) for line in lines] == [
        (ref, 12, "ERROR") for ref in found * parked
    ]
    assert {line["hint"] for line in lines} <= {"this row keeps failing; see its reason"}
    assert swept.world.metrics.of(metrics.ROWS_PARKED) == [1] * count * parked


# -- runs without news -------------------------------------------------------------------------------------------------


def silent(swept: Swept, count: int) -> list[Ref]:
    """Runs of EMR, which the sweep has polled for the last time long ago."""
    fields = {"state": "RUNNING", "target_id": "00app/jr1", "state_at": swept.now - 30 * MINUTE}
    return [swept.run(f"r{number:03d}", 10 * MINUTE, **fields) for number in range(count)]


def test_w7_emr_is_asked_about_fifty_runs_at_a_time() -> None:
    swept = Swept()
    job, found = swept.job("j1"), silent(swept, 120)
    assert swept.sweep() == 121
    due = {ref: instant - swept.now for instant, ref in swept.hints.sent}
    assert due.pop(job) == 0
    assert [due[ref] for ref in found] == [0] * 50 + [5 * SECOND] * 50 + [10 * SECOND] * 20


def test_w7_a_tick_asks_about_500_runs_and_hints_other_rows() -> None:
    swept = Swept()
    found = silent(swept, 530)
    other = swept.run("z1", 9 * MINUTE, state="STARTING", lease_until=None)
    assert swept.sweep() == 501
    assert set(swept.hinted) == {*found[:500], other}
    left = swept.world.ports.rows.get(Run, "r500", 1)
    assert left is not None and left.leases == 0, "the next tick asks about it"


# -- parts -------------------------------------------------------------------------------------------------------------


def test_o3_a_part_goes_on_where_the_one_before_ended() -> None:
    swept = Swept()
    job, run = swept.job("j1"), swept.run("r1")
    swept.index.cursors["runs", 0] = "next"
    until = swept.now - MINUTE
    sweep.handle_part(swept.ports, ShardPart("jobs", 0, until, "here"))
    sweep.handle_part(swept.ports, ShardPart("runs", 0, until, "there"))
    page = shards.PAGE
    assert swept.index.asked == [("jobs", 0, until, page, "here"), ("runs", 0, until, page, "there")]
    assert swept.hinted == [job, shard_ref(ShardPart("runs", 0, until, "next")), run]


@pytest.mark.parametrize(("passed", "hinted"), [(40 * SECOND, 25), (40 * SECOND - 1, 60)])
def test_o3_a_part_is_swept_for_40_seconds(passed: Millis, hinted: int) -> None:
    swept = Swept()
    swept.jobs(60)
    part = ShardPart("jobs", 0, swept.now - MINUTE, "here")
    swept.world.tables.before_call = _passes(swept.world, passed)
    sweep.handle_part(swept.ports, part)
    again = [shard_ref(part)] if hinted == 25 else []
    assert [ref for ref in swept.hinted if ref.kind == "shard"] == again
    assert len(swept.hinted) == hinted + len(again)


def test_o3_a_part_of_the_catalog_is_not_handed_on_again() -> None:
    """Its first rows are leased by then. The next tick finds the rest."""
    swept = Swept()
    for number in range(60):
        row = Partition("demo.flights", (f"{number:02d}",), rows.event(), "k", wake_at=swept.now - OVERDUE)
        swept.add(row, kinds.ref(Partition, "demo.flights", row.values), "catalog")
    swept.world.tables.before_call = _passes(swept.world, 40 * SECOND)
    sweep.handle_part(swept.ports, ShardPart("catalog", 0, swept.now, "here"))
    assert len(swept.hinted) == 25
    assert {ref.kind for ref in swept.hinted} == {"partition"}


def test_o3_the_errors_of_a_part_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing repeats its hint."""
    swept = Swept()
    bad = swept.run("bad")
    ports = replace(swept.ports, rows=Failing(swept.world.ports.rows, bad))
    sweep.handle_part(ports, ShardPart("runs", 0, swept.now, None))
    [line] = [vars(record) for record in caplog.records if record.message == "overdue row failed"]
    assert (line["table"], line["shard"], str(line["exc_info"][1])) == ("runs", 0, "cannot be read")


# -- what is due before the next tick ----------------------------------------------------------------------------------


def test_o3_jobs_due_before_the_next_tick_are_hinted_together() -> None:
    """A hint has the jobs of one instant."""
    swept = Swept()
    a, b, c = (kinds.ref(Job, "demo.flights.s", 1, f"JOB#{name}") for name in "abc")
    swept.index.soon = [(a, swept.now + 20), (b, swept.now + 10), (c, swept.now + 20)]
    assert sweep.hint_soon(swept.ports) == 3
    assert swept.hints.sent == [(swept.now + 10, b), (swept.now + 20, a), (swept.now + 20, c)]
    assert swept.index.asked == [
        (swept.now - 5 * SECOND, swept.now + 75 * SECOND),
        ("runs", 0, swept.now + launch.CALL_LEASE, shards.PAGE, None),
    ]
    assert swept.hints.how == [(swept.now, {})]


def test_o3_nothing_due_before_the_next_tick_sends_no_hint() -> None:
    swept = Swept(wake_shards=2)
    assert sweep.hint_soon(swept.ports) == 0
    assert swept.hints.how == []
    assert [shard for table, shard, *_ in swept.index.asked[1:]] == [0, 1]


def calling(swept: Swept, run_id: str, ends: Millis, **fields: Any) -> Ref:
    """A run whose start call is on record without an answer."""
    at = swept.now + ends
    row: Run = rows.run(run_id, **{"state": "STARTING", "target_id": None, "lease_until": at, "wake_at": at, **fields})
    return swept.add(row, run_ref(run_id, row.attempt), "runs", at=row.wake_at)


def test_w10_a_call_without_an_answer_is_hinted_after_its_lease() -> None:
    swept = Swept()
    first, second = calling(swept, "r1", 30 * SECOND), calling(swept, "r2", 10 * SECOND)
    calling(swept, "answered", 10 * SECOND, target_id="00app/jr1")
    calling(swept, "polled", 10 * SECOND, state="RUNNING", target_id="00app/jr2", lease_until=None)
    calling(swept, "waits", 10 * SECOND, lease_until=None)
    assert sweep.hint_soon(swept.ports) == 2
    assert swept.hints.sent == [(swept.now + 10 * SECOND, second), (swept.now + 30 * SECOND, first)]


@pytest.mark.parametrize(
    ("listed", "ends", "hinted"),
    [
        (-5 * SECOND, 10 * SECOND, 0),
        (-5 * SECOND + 1, 10 * SECOND, 1),
        (10 * SECOND, -5 * SECOND, 0),
        (10 * SECOND, -5 * SECOND + 1, 1),
    ],
)
def test_w10_a_call_whose_lease_has_ended_is_left_to_the_sweep(listed: Millis, ends: Millis, hinted: int) -> None:
    """By the index, or by the row. The index may be behind."""
    swept = Swept()
    ref = calling(swept, "r1", ends)
    swept.index.rows["runs", 0] = [(ref, swept.now + listed)]
    assert sweep.hint_soon(swept.ports) == hinted


def test_w10_an_index_that_is_behind_hints_no_call_that_ended() -> None:
    """The index lists a run whose lease has ended meanwhile, and a job."""
    swept = Swept()
    old = calling(swept, "r1", -MINUTE)
    swept.index.rows["runs", 0] = [(old, swept.now + SECOND), (kinds.ref(DagRun, "d1"), swept.now + SECOND)]
    assert sweep.hint_soon(swept.ports) == 0
