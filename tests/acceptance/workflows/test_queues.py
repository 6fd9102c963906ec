"""How queues are read (W2): the cost of a job that joins a queue, and the order while a queue is served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chalicelib.core.rows.schedule import Version
from chalicelib.flow import priority
from chalicelib.flow.jobs.check import check_job
from tests.acceptance.words import day
from tests.support.schedules import after, at_most, partitions
from tests.support.world import EMR, World, flights


class Counting:
    """Rows, with a record of whose versions were read."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def get(self, row: type[Any], *values: Any) -> Any:
        if row is Version:
            self.read.add(values[0])
        return self._rows.get(row, *values)


def test_w2_a_job_that_queues_reads_at_most_a_hundred_waiters() -> None:
    world = World(start_burst=100)
    many = {f"n{number:03d}": after("clean", "join") for number in range(priority.MAX_DOWNSTREAM + 20)}
    world.deploy(flights({"a": partitions(by=["day"], **at_most(1)), **many}))
    world.upload(day(1))
    world.settle()
    counting = Counting(world.ports.rows)
    world.ports = world.with_ports(rows=counting)
    world.upload(day(2))
    world.settle()
    assert [job.state for job in world.jobs("a")] == ["PENDING_LAUNCH"]
    assert 90 < len(counting.read - {"demo.flights.a"}) <= priority.MAX_DOWNSTREAM


class Meanwhile:
    """Targets that call a function during the first start."""

    def __init__(self, targets: Any, *happens: Callable[[], None]) -> None:
        self._targets, self._happens = targets, list(happens)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._targets, name)

    def of(self, kind: str, role: Any = None) -> Any:
        of_kind = Meanwhile(self._targets.of(kind, role))
        of_kind._happens = self._happens  # the same list: it happens once, at the first start of any kind
        return of_kind

    def start(self, run: Any, context: Any) -> Any:
        if self._happens:
            self._happens.pop()()
        return self._targets.start(run, context)


def test_w2_a_job_arriving_during_a_serve_can_still_go_first() -> None:
    """A server has many permits to give, and each start takes time. It must not use only its first read."""
    world = World(start_burst=100)
    pooled = {"target": EMR, "pool": "p"}
    names = {"first": {"slots": 6}, "low": {"priority": 1}, "urgent": {"priority": 9}}
    made = {name: {"workflow": name, "enabled": True, "trigger": {"type": "event", "event": name}, **fields}
            for name, fields in names.items()}  # fmt: skip
    world.deploy({**flights(made, first=pooled, low=pooled, urgent=pooled), "pools": {"p": {"size": 6}}})
    world.run_now("first")
    world.settle()
    for number in range(4):
        world.run_now("low", f"r{number}")
    world.settle()
    ports = world.ports

    def comes() -> None:
        world.ports = ports
        job_id = world.run_now("urgent")
        check_job(ports, ("demo.flights.urgent", *_place(world, job_id)))

    world.finish()
    world.ports = world.with_ports(targets=Meanwhile(world.targets, comes))
    world.settle()
    started = [run.name.split(".")[2] for run in world.targets.emr.runs.values()]
    assert started == ["first", "low", "urgent", "low", "low", "low"]


def _place(world: World, job_id: str) -> tuple[int, str]:
    [job] = [each for each in world.jobs("urgent") if each.job_id == job_id]
    return job.generation, job.sort_key
