"""Which rows a source deletes when it gives a namespace up, in which order, and what it returns to limits (L14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chalicelib.core import ids
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant
from chalicelib.core.limits.writes import Ended, LeaveQueue, ReleasePermit
from chalicelib.core.rows.backfill import PlanPart
from chalicelib.core.rows.event import PostedEvent
from chalicelib.core.rows.limit import LimitState, Waiter
from chalicelib.core.rows.reprocess import Reprocess
from chalicelib.core.rows.run import Fire, Output, Pointer, Record
from chalicelib.core.rows.schedule import Subscription
from chalicelib.core.writes import Conflict, Create, Delete, Put, RemoveWaiter, Replace, Write
from chalicelib.ports import Ports, Rows
from sluice.operations.archive import give_up as giving
from sluice.operations.ports import Archive, Copies, StoredCopy
from sluice.operations.rules.manifest import MANIFEST, Manifest
from tests.aws.tables.test_unknown_attributes import sample
from tests.operations.archive.test_export_files import Tables, copy, export, job, namespace, run
from tests.support import rows
from tests.support.archives import MemoryArchive
from tests.support.clock import NOON
from tests.support.world import World

NOW: Instant = NOON + 9_000
OWN, OTHER, QUEUE = "pool:demo.p", "pool:lake.p", "policy:lake.calm"
KEY = "event:demo:closed"


class Source(Tables):
    """Pages of which rows are deleted. Keeps the names of each batch."""

    def __init__(self, *pages: Sequence[StoredCopy]) -> None:
        super().__init__(*pages)
        self.deleted: list[list[str]] = []

    def delete(self, copies: Sequence[StoredCopy]) -> None:
        self.deleted.append([copy.item["pk"]["S"] for copy in copies])
        for table in self.pages.values():
            table[:] = [[copy for copy in page if copy not in copies] for page in table]

    @property
    def gone(self) -> list[str]:
        return [name for batch in self.deleted for name in batch]


class Plans:
    """Keeps the transactions and the puts. Refuses all transactions if it is told to."""

    def __init__(self, refuses: bool = False) -> None:
        self.plans: list[list[Write]] = []
        self.puts: list[Put] = []
        self._refuses = refuses

    def commit(self, writes: Sequence[Write]) -> Conflict | None:
        self.plans.append(list(writes))
        return Conflict(tuple(writes)) if self._refuses else None

    def put_all(self, writes: Sequence[Put]) -> None:
        self.puts += writes


class Given:
    """A source that gave a namespace up. ``stored`` are rows that its tables have."""

    def __init__(
        self, source: Source, *namespaces: str, stored: Sequence[Any] = (), refuses: bool = False, jobs: Any = None
    ) -> None:
        self.world = World()
        for row in stored:
            assert self.world.ports.ledger.commit([Create(row)]) is None
        self.source = source
        self.ledger = Plans(refuses)
        self.archive = export(source, *namespaces)
        self.jobs = jobs or self.world.ports.jobs
        self.manifest = self.again()

    def again(self) -> Manifest:
        return given_up(self.source, self.archive, self.ledger, self.world.ports.rows, self.jobs)


def given_up(source: Source, archive: MemoryArchive, ledger: Any, single: Rows, jobs: Any) -> Manifest:
    ports = SimpleNamespace(ledger=ledger, rows=single, jobs=jobs, clock=SimpleNamespace(now=lambda: NOW))
    return giving.give_up(cast(Copies, source), cast(Archive, archive), cast(Ports, ports))


def of_jobs(*copies: StoredCopy) -> Source:
    """Rows of the table of jobs beside two namespaces."""
    return Source([namespace("demo"), namespace("lake")], copies)


def named(pk: str, row: Any, table: str = "jobs") -> StoredCopy:
    return copy(table, row, pk)


# -- the files ---------------------------------------------------------------------------------------------------------


def test_l14_a_source_that_gave_up_says_so_in_the_manifest() -> None:
    given = Given(of_jobs(job("demo")), "demo")
    assert given.manifest.closed
    stored = Manifest.model_validate_json(given.archive.files[MANIFEST])
    assert stored == given.manifest
    assert stored.exported_at == "2026-03-02T12:00:00.000Z"
    assert given.archive.files["giving-up.json"] == '{"exported_at": "2026-03-02T12:00:00.000Z"}'


def test_l14_a_source_gives_up_once() -> None:
    given = Given(of_jobs(job("demo")), "demo")
    given.source.pages["jobs"].append([job("demo", 2)])
    before = len(given.source.deleted)
    assert given.again() == given.manifest
    assert len(given.source.deleted) == before


def test_l14_a_file_that_is_not_whole_deletes_nothing() -> None:
    source = of_jobs(job("demo"))
    archive = export(source, "demo")
    archive.files["jobs-000001.jsonl"] = archive.files["jobs-000001.jsonl"][:-9]
    world = World()
    with pytest.raises(SluiceError, match="the file is truncated"):
        given_up(source, archive, world.ports.ledger, world.ports.rows, world.ports.jobs)
    assert source.deleted == []
    assert "giving-up.json" not in archive.files


def test_l14_rows_that_changed_since_the_export_delete_nothing() -> None:
    source, world = of_jobs(job("demo")), World()
    archive = export(source, "demo")
    source.pages["jobs"].append([job("demo", 2)])
    with pytest.raises(SluiceError) as refused:
        given_up(source, archive, world.ports.ledger, world.ports.rows, world.ports.jobs)
    assert refused.value.to_dict()["error"] == {
        "code": "conflict",
        "message": "expected the rows as they were exported, got others: they have changed since",
        "field": None,
        "hint": "freeze the installation as docs/operations.md describes, and export again into an empty folder",
    }
    assert source.deleted == []


def test_l14_a_command_that_broke_off_does_not_compare_again() -> None:
    """Some of the rows are deleted already."""
    source, world = of_jobs(job("demo"), job("demo", 2)), World()
    archive = export(source, "demo")
    archive.put("giving-up.json", "{}")
    source.pages["jobs"] = [[job("demo", 2)]]
    assert given_up(source, archive, world.ports.ledger, world.ports.rows, world.ports.jobs).closed
    assert archive.files["giving-up.json"] == "{}"


# -- which rows --------------------------------------------------------------------------------------------------------


def of_each_kind() -> list[StoredCopy]:
    """Rows of `demo` and `lake`; those whose name ends with a star stay."""
    plan, step = sample(PlanPart), sample(Reprocess)
    waits = replace(sample(Subscription), event_key=KEY, schedule="lake.core.s")
    open_event = rows.event("e1", kind="event", key=KEY)
    return [
        named("state", rows.schedule_state(), "catalog"),
        named("waits *", waits, "catalog"),
        named("job", rows.job("j1")),
        named("ended *", rows.run("r1", state="SUCCEEDED"), "runs"),
        named("active", rows.run("r2", state="RUNNING", permits=()), "runs"),
        named("record *", replace(sample(Record), schedule=rows.SCHEDULE), "runs"),
        named("fire *", replace(sample(Fire), schedule=rows.SCHEDULE), "runs"),
        named("output *", replace(sample(Output), run_id="demo.flights.s.1"), "runs"),
        named("pointer *", replace(sample(Pointer), run_id="demo.flights.s.1"), "runs"),
        named("letter *", rows.dead_letter(), "runs"),
        named("limit", LimitState(OWN)),
        named("shared limit *", LimitState("workflow:demo.flights.w")),
        named("foreign job *", rows.job("j9", schedule="lake.core.s", held=("workflow:demo.flights.w",))),
        named("waiter", Waiter(OWN, "R", rows.SCHEDULE, 1, "JOB#1", "j1")),
        named("backfill", rows.backfill(plan="own")),
        named("plan", replace(plan, plan="own")),
        named("foreign re-processing *", replace(step, namespace="lake", steps=({"plan": "both"},))),
        named("own re-processing", replace(step, namespace="demo", steps=({"plan": "both"},))),
        named("plan of both *", replace(plan, plan="both")),
        named("event *", PostedEvent(open_event, wake_at=NOON)),
        named("heard event", PostedEvent(replace(open_event, id="e2"))),
        named("other event", PostedEvent(replace(open_event, id="e3", key="event:demo:begun"), wake_at=NOON)),
        named("notice", rows.notice()),
        named("notice of a foreign schedule *", rows.notice(schedule="lake.core.s")),
    ]


def pages(copies: Sequence[StoredCopy]) -> Source:
    return Source(
        [namespace("demo"), namespace("lake")],
        *([each for each in copies if each.table == table] for table in ("catalog", "jobs", "runs")),
    )


def test_l14_history_and_what_others_need_stays() -> None:
    given = Given(pages(of_each_kind()), "demo")
    expected = [each.item["pk"]["S"] for each in of_each_kind() if not each.item["pk"]["S"].endswith("*")]
    assert sorted(given.source.gone) == sorted([*expected, "NAMESPACES"])
    left = {each.item["sk"]["S"] for each in given.source.pages["catalog"][0]}
    assert left == {"lake"}


def test_l14_a_source_given_up_whole_keeps_history_alone() -> None:
    given = Given(pages(of_each_kind()))
    history = {"ended *", "record *", "fire *", "output *", "pointer *", "letter *"}
    found = [each.item["pk"]["S"] for each in of_each_kind()]
    assert sorted(given.source.gone) == sorted([*(name for name in found if name not in history), *["NAMESPACES"] * 2])
    assert (given.ledger.plans, given.ledger.puts) == ([], [])


def test_l14_schedule_states_go_first_and_plans_before_the_rest() -> None:
    """A claim expects the state. A command that broke off finds a plan by the backfill that names it."""
    given = Given(pages(of_each_kind()), "demo")
    assert given.source.deleted[:2] == [["state"], ["plan"]]
    assert given.ledger.puts == [Put(PostedEvent(rows.event("e1", kind="event", key=KEY), wake_at=NOW))]


@pytest.mark.parametrize(("count", "sizes"), [(500, [500, 1]), (499, [500, 0]), (1_000, [500, 500, 1])])
def test_l14_rows_are_deleted_five_hundred_at_a_time(count: int, sizes: list[int]) -> None:
    """Beside the jobs, the row of the namespace is deleted."""
    given = Given(of_jobs(*(job("demo", number) for number in range(count))), "demo")
    assert [len(batch) for batch in given.source.deleted] == [0, 0, *sizes]


# -- limits ------------------------------------------------------------------------------------------------------------


class Queue:
    """Reads of jobs. A waiter is in its queue, or not any more. So many others wait at each limit."""

    def __init__(self, queued: bool = False, waiters: int = 0) -> None:
        self._inner, self._queued, self._waiters = World().ports.jobs, queued, waiters

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def is_queued(self, waiter: Waiter) -> bool:
        return self._queued

    def limit_state(self, name: str) -> LimitState:
        return LimitState(name, active=3, waiters=self._waiters)


@pytest.mark.parametrize(("waiters", "wakes"), [(0, None), (1, NOW)])
def test_l14_a_job_returns_what_it_holds_of_limits_that_stay(waiters: int, wakes: Instant | None) -> None:
    """If others wait there, they are woken."""
    row = rows.job("j1", held=(OTHER, OWN), units=2)
    given = Given(of_jobs(named("job", row)), "demo", jobs=Queue(waiters=waiters))
    assert given.ledger.plans == [[Delete(row), ReleasePermit(OTHER, wakes, units=2)]]


@pytest.mark.parametrize(("waiters", "wakes"), [(0, None), (1, NOW)])
def test_l14_a_run_returns_what_it_holds_of_limits_that_stay(waiters: int, wakes: Instant | None) -> None:
    """Its start is no longer one of the limit. A run that has ended has returned all."""
    row = rows.run("r1", state="RUNNING", permits=(OTHER, OWN, QUEUE), units=2)
    ended = rows.run("r2", state="SUCCEEDED", permits=(OTHER,))
    source = Source([namespace("demo"), namespace("lake")], [named("a", row, "runs"), named("b", ended, "runs")])
    given = Given(source, "demo", jobs=Queue(waiters=waiters))
    left = Ended(ids.holder_of("r1", 1), LimitState(OTHER, active=3, waiters=waiters))
    assert given.ledger.plans == [[Delete(row), ReleasePermit(OTHER, wakes, left, 2)]]


def test_l14_who_holds_nothing_of_others_goes_with_the_rest() -> None:
    own = rows.job("j1", held=(OWN,), queued_in="policy:demo.calm", rank="R")
    given = Given(of_jobs(named("job", own)), "demo")
    assert given.ledger.plans == []
    assert "job" in given.source.gone


@pytest.mark.parametrize("queued", [True, False])
def test_l14_a_job_leaves_the_queue_of_a_limit_that_stays(queued: bool) -> None:
    row = rows.job("j1", queued_in=QUEUE, rank="R")
    waiter = Waiter(QUEUE, "R", row.schedule, row.generation, row.sort_key, "j1")
    given = Given(of_jobs(named("job", row)), "demo", jobs=Queue(queued))
    expected: list[list[Write]] = [[Delete(row), RemoveWaiter(waiter), LeaveQueue(QUEUE)]]
    assert given.ledger.plans == (expected if queued else [])


@pytest.mark.parametrize(
    ("row", "what"),
    [(rows.job("j1", queued_in=QUEUE, rank="R", held=(OTHER,)), "j1"), (rows.job("j1", held=(OTHER,)), "a row")],
    ids=["queued", "not queued"],
)
def test_l14_a_job_that_changes_meanwhile_stops_the_command(row: Any, what: str) -> None:
    """So the source still runs."""
    source = of_jobs(named("job", row))
    with pytest.raises(SluiceError) as refused:
        Given(source, "demo", refuses=True, jobs=Queue(True))
    assert refused.value.to_dict()["error"] == {
        "code": "conflict",
        "message": f"expected {what} as it was exported, got a changed one: the source still runs",
        "field": None,
        "hint": "freeze the installation, then repeat the command",
    }
    assert "job" not in source.gone


def test_l14_rows_of_other_namespaces_return_nothing() -> None:
    foreign = rows.job("j1", schedule="lake.core.s", held=(OWN, OTHER))
    given = Given(of_jobs(named("job", foreign), named("limit", LimitState(OWN))), "demo")
    assert (given.ledger.plans, given.source.gone) == ([], ["NAMESPACES"])


# -- re-processings ----------------------------------------------------------------------------------------------------


def parent(name: str = "lake") -> Reprocess:
    return replace(sample(Reprocess), namespace=name, id="p1", state="RUNNING", steps=(), rev=4)


def step(**fields: Any) -> StoredCopy:
    return named("step", rows.backfill(f"p1{ids.STEP}1", **{"namespace": "lake", **fields}))


def test_l14_the_parent_of_a_step_that_goes_finds_that_out() -> None:
    """It is woken: its step is gone."""
    given = Given(of_jobs(step()), "demo", stored=[parent()])
    [[written]] = given.ledger.plans
    assert isinstance(written, Replace)
    assert (written.row.wake_at, written.row.rev) == (NOW, 5)


@pytest.mark.parametrize(
    ("copied", "stored"),
    [
        (step(ended_at=NOON), [parent()]),
        (step(namespace="demo"), [parent("demo")]),
        (step(namespace=None), [parent()]),
        (step(), []),
        (named("plain", rows.backfill("b1", namespace="lake")), [parent()]),
    ],
    ids=["ended", "moves too", "no namespace", "no parent", "no step"],
)
def test_l14_other_backfills_wake_no_reprocessing(copied: StoredCopy, stored: list[Any]) -> None:
    given = Given(of_jobs(copied), "demo", stored=stored)
    assert given.ledger.plans == []
    assert len(given.source.gone) == 2


def test_l14_runs_of_a_namespace_go_with_its_jobs() -> None:
    source = Source([namespace("demo"), namespace("lake")], [job("demo")], [run("demo"), run("lake")])
    given = Given(source, "demo")
    assert sorted(given.source.gone) == ["NAMESPACES", "demo 1", "demo 1"]
