"""No read writes, in any state of the work: why, now, limits, a glance, and the views of single rows (C14).

Scenarios of `test_crash_points.py` are played. Whenever rows have changed and hints are about to arrive, everything is
read with ports that refuse every effect. The ordinary ports give the same answers, and no row changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.limits import names
from chalicelib.core.limits.writes import NewEdition
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.flow import facts, lookup
from chalicelib.flow.backfills import reprocess_view
from chalicelib.flow.backfills import view as backfill_view
from chalicelib.flow.dags import runs as dag_runs
from chalicelib.flow.views import ahead, explain, limits, present, schedule_list
from chalicelib.ports import Ports
from sluice.testing.engine import Act
from tests.docs.story import Story
from tests.docs.test_examples import EXAMPLES, STORIES, Example
from tests.faults.dying import SMALL, play
from tests.faults.invariants import Stock
from tests.faults.test_crash_points import SCENARIOS
from tests.faults.test_limits_named_later import GROUP, in_group, running
from tests.support.crash import Crash, wrap
from tests.support.read_only import Effect, read_only
from tests.support.schedules import partitions
from tests.support.world import World, day

Reads = dict[str, Callable[[Ports], Any]]
# They have a job of each kind in each state and in each queue. `make test-long` plays the other scenarios, too.
SAMPLE = (
    "a backlog of two matches and a half",
    "a backlog of three fires each",
    "a fire that could never be delivered, and is redriven",
    "a rate, and a pace that others keep busy",
    "a backfill whose schedule is deleted",
    "a policy, and a pool behind it",
    "an execution that fails and is attempted again",
    "a disable of who waits for an application",
    "a group of two workflows",
    "an app that goes with its messages",
    "a run of a DAG that goes on from the node that failed",
    "a DAG that is processed again, with what follows a node",
    "a worker that dies, and another that does its work",
)


def reads_of(world: World) -> Reads:
    """Everything that may be asked about the rows of a world."""
    stock, now = Stock(world), world.clock.now()
    living = [state.schedule for state in stock.schedule_states if state.exists]
    reads: Reads = {f"why {name}": lambda ports, name=name: explain.why_schedule(ports, name) for name in living}
    for job in (job for job in stock.jobs if not job.closed):
        reads[f"why {job.job_id}"] = lambda ports, job=job: explain.why_job(ports, job)
    for work in {run.run_id for run in stock.runs} | {record.id for record in stock.records}:
        reads[f"why {work}"] = lambda ports, work=work: explain.why_work(ports, work)
    for name in living:
        full = f"schedule:{name.partition('.')[2]}"
        reads[f"limits of {name}"] = lambda ports, full=full: limits.named(ports, "demo", full)
    for row in stock.backfills:
        reads[f"backfill {row.id}"] = lambda ports, row=row: backfill_view.shown_view(ports, row)
    for plan in stock.reprocesses:
        reads[f"reprocess {plan.id}"] = lambda ports, plan=plan: reprocess_view.shown_view(ports, plan)
    for run in (run for run in stock.runs if run.target_kind == "dag"):
        reads[f"DAG run {run.run_id}"] = lambda ports, run=run: dag_runs.view(ports, run, in_full=True)
    reads["now"] = lambda ports: present.now_of(ports, "demo")
    reads["fires"] = lambda ports: ahead.between(ports, "demo", now, now + 86_400_000)
    reads["glance"] = lambda ports: schedule_list.glance(ports, living[:50])
    return reads


def answer(ports: Ports, read: Callable[[Ports], Any]) -> Any:
    try:
        return read(ports)
    except SluiceError as error:
        return error.to_dict()


class Watched(World):
    """A world in which everything is read before and after hints arrive, if a row has changed since the last time."""

    def __init__(self, **tuned: Any) -> None:
        super().__init__(**tuned)
        self.read, self.jobs_seen = 0, set[tuple[str, str, str]]()

    def settle(self, invoke: Callable[[Act], Any] = lambda act: act()) -> None:
        self._read_all()
        super().settle(invoke)
        self._read_all()

    def _read_all(self) -> None:
        before = self.tables.digest
        if before == self.read:
            return
        for name, read in reads_of(self).items():
            assert answer(read_only(self.ports), read) == answer(self.ports, read), name
        assert self.tables.digest == before
        self.read = before
        self.jobs_seen |= {_state_of(job) for job in Stock(self).jobs if not job.closed}


def _state_of(job: Job) -> tuple[str, str, str]:
    return job.kind, job.state, (job.queued_in or "").partition(":")[0]


def _play(name: str) -> set[tuple[str, str, str]]:
    """Play a scenario. Returns the kinds of jobs that were read, with their states and the kinds of their queues."""
    world = Watched(**{**SMALL, **SCENARIOS[name].tuned})
    play(SCENARIOS[name], world)
    return world.jobs_seen


@pytest.mark.parametrize("name", SAMPLE)
def test_c14_no_read_writes_in_a_scenario(name: str) -> None:
    assert _play(name)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.page}-{example.name}")
def test_c14_no_read_writes_in_an_example_of_a_page(example: Example) -> None:
    """Jobs wait for each trigger and each constraint, of a schedule in each mode, and of a backfill."""
    STORIES[example.page][example.name](Story(Watched(), example.schedules))


@pytest.mark.long
def test_c14_no_read_writes_in_any_scenario() -> None:
    seen = {name: _play(name) for name in SCENARIOS}
    missing = set().union(*seen.values()) - set().union(*(seen[name] for name in SAMPLE))
    assert not missing, "add a scenario with them to the sample"


def test_w3_why_shows_what_a_dead_put_has_left_to_count() -> None:
    """A put names a group and dies before it counts the active runs: the check of the next job counts them, and why
    shows the group as it will be then."""
    world = running(2)
    points = wrap(world)
    points.armed, points.die_after = True, 1
    with pytest.raises(Crash):
        world.put("daily", partitions(by=["day"], on_update="carry", **in_group()))
    points.armed = False
    world.upload(day(10))
    [job] = world.jobs("daily")

    asked = explain.why_job(read_only(world.ports), job)
    assert len(facts.read(world.ports, job).repairs) == 3, "one for each run, and one for the mark"
    assert world.limit_state(GROUP).active == 0, "a question counts nothing"

    world.settle()
    [job] = world.jobs("daily")
    assert facts.read(world.ports, job).repairs == ()
    assert world.limit_state(GROUP).active == 2
    answered = explain.why_job(world.ports, job)
    assert asked["constraints"] == answered["constraints"]
    assert [(each["used"], each["held_by"]) for each in asked["limits"]] == [
        (each["used"], each["held_by"]) for each in answered["limits"]
    ]


def test_a_restored_limit_gets_its_edition_from_a_check_alone() -> None:
    world = running(0)
    limit_name = names.workflow_limit("demo.flights.clean")
    assert world.ports.ledger.commit([NewEdition(limit_name, 7)]) is None
    world.upload(day(1))
    [job] = world.jobs("daily")

    explain.why_job(read_only(world.ports), job)
    assert world.limit_state(limit_name).edition == 7

    world.settle()
    row = world.ports.rows.get(Definition, "workflow", "demo.flights.clean")
    assert row is not None and world.limit_state(limit_name).edition == row.edition
    assert len(world.runs("daily")) == 1


def test_a_write_that_is_planted_in_why_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(ports: Ports, *given: Any) -> None:
        ports.ledger.commit([])

    monkeypatch.setattr(lookup, "existing", careless)
    world = running(1)
    with pytest.raises(Effect):
        explain.why_schedule(read_only(world.ports), "demo.flights.daily")
