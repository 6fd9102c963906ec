"""A deployment of many schedules puts many in one transaction; each schedule stays atomic for itself (L8, E9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.writes import MAX_WRITES, Conflict, PutState, Write
from chalicelib.flow.schedules import actions
from tests.flow.stored import living, note, rows
from tests.support.crash import Crash, lost
from tests.support.ledgers import Before, LedgerBetween, has_kind
from tests.support.schedules import after, at, partitions
from tests.support.world import World, day, flights

DAILY = at("0 5 * * *", "notify")


def many(count: int, **fields: Any) -> dict[str, Any]:
    return flights({f"s{number:03d}": {**DAILY, **fields} for number in range(count)})


class Plans(LedgerBetween):
    """Keeps the schedules of each transaction that puts any, and its size."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.puts: list[list[str]] = []
        self.sizes: list[int] = []

    def after(self, writes: Sequence[Write], conflict: Conflict | None) -> None:
        names = [write.schedule_state.schedule for write in writes if isinstance(write, PutState)]
        if names and conflict is None:
            self.puts.append(names)
            self.sizes.append(len(writes) + len(names))


def plans(world: World) -> Plans:
    watched = Plans(world.ports.ledger)
    world.ports = world.with_ports(ledger=watched)
    return watched


def test_l8_many_schedules_are_put_in_full_transactions(world: World) -> None:
    watched = plans(world)
    world.deploy(many(60))
    assert [len(names) for names in watched.puts] == [19, 19, 19, 3]
    assert max(watched.sizes) <= MAX_WRITES
    assert living(world) == dict.fromkeys(sorted(many(60)["schedules"]), "enabled")


@pytest.mark.parametrize("again", [False, True], ids=["new", "unchanged"])
def test_l8_calls_do_not_grow_with_each_schedule(make_world: Any, again: bool) -> None:
    counts = []
    for size in (20, 80):
        world = make_world()
        if not world.is_in_memory:
            pytest.skip("only the tables of this process count their calls")
        if again:
            world.deploy(many(size))
        calls = counted(world)
        world.deploy(many(size))
        counts.append(sum(calls.values()))
    assert counts[1] - counts[0] <= 6  # three more transactions and some pages of reads


def counted(world: World) -> Counter[str]:
    """The calls to the tables from now on, by their names."""
    calls: Counter[str] = Counter()

    def watch(name: str) -> None:
        real = getattr(world.tables, name)

        def call(**given: Any) -> Any:
            calls[name] += 1
            return real(**given)

        setattr(world.tables, name, call)

    for name in ("get_item", "put_item", "query", "batch_get_item", "transact_write_items"):
        watch(name)
    return calls


def test_l8_a_refused_schedule_is_put_alone(world: World) -> None:
    world.deploy(many(3))
    meanwhile = Before(
        world.ports.ledger,
        lambda: actions.put(inner, "demo.flights.s001", _other(), "someone"),
        has_kind("PutState"),
    )
    inner = world.ports
    watched = Plans(meanwhile)
    world.ports = world.with_ports(ledger=watched)

    world.deploy(many(3, priority=7))

    assert [[name[-4:] for name in names] for names in watched.puts] == [["s000", "s002"], ["s001"]]
    states = [world.ports.rows.get(ScheduleState, f"demo.flights.s{number:03d}") for number in range(3)]
    versions = [world.ports.rows.get(Version, state.schedule, state.version) for state in states if state is not None]
    assert [(row.version, row.definition["priority"], row.by) for row in versions if row is not None] == [
        (2, 7, "tester"),
        (3, 7, "tester"),
        (2, 7, "tester"),
    ]


def _other() -> NewSchedule:
    return NewSchedule.model_validate({**DAILY, "workflow": "demo.flights.notify", "priority": 2})


def test_l8_schedules_of_one_workflow_are_counted_in_all_rates(world: World) -> None:
    rates = [{"type": "rate", "max": 5, "per": f"{number}m"} for number in (1, 2, 1)]
    world.deploy(flights({f"s{number}": {**DAILY, "constraints": [rate]} for number, rate in enumerate(rates)}))
    assert sorted(world.limit_state("workflow:demo.flights.notify").rates) == ["5/120000", "5/60000"]


def test_l8_fires_within_the_horizon_are_prepared_at_once(world: World) -> None:
    soon = at("@every 30s", "notify")
    world.deploy(flights({"soon": soon, "soon-too": soon, "late": DAILY, "off": {**soon, "enabled": False}}))
    found = {name: len(world.jobs(name)) > 0 for name in ("soon", "soon-too", "late", "off")}
    assert found == {"soon": True, "soon-too": True, "late": False, "off": False}


def test_l8_a_replaced_schedule_drops_the_jobs_of_its_generation(world: World) -> None:
    world.deploy(flights({"a": partitions(2), "b": partitions(2, "join")}))
    world.upload(day(1))
    before = {name: [job.job_id for job in world.jobs(name)] for name in "ab"}
    assert [len(jobs) for jobs in before.values()] == [1, 1]
    world.deploy(flights({"a": partitions(3), "b": partitions(2, "join")}))
    assert [record.kind for record in world.records("a")] == ["DROPPED"]
    assert [job.job_id for job in world.jobs("b")] == before["b"]


def test_l8_a_death_between_transactions_is_finished_by_a_repeat(make_world: Any) -> None:
    whole, broken = make_world(), make_world()
    whole.deploy(many(45))
    first = Plans(broken.ports.ledger)
    broken.ports = broken.with_ports(ledger=Before(first, _die, lambda writes: len(first.puts) == 1))

    assert lost(lambda: broken.deploy(many(45)))
    assert len(living(broken)) == 19
    assert note(broken) is None
    broken.deploy(many(45))

    assert [len(names) for names in first.puts] == [19, 19, 7]
    assert rows(broken, "catalog") == rows(whole, "catalog")


def _die() -> None:
    raise Crash


def test_l8_downstreams_of_one_upstream_are_put_together(world: World) -> None:
    watched = plans(world)
    world.deploy(flights({"first": partitions(), **{f"then{n}": after("clean", "join") for n in range(5)}}))
    assert [len(names) for names in watched.puts] == [6]
    world.upload(day(1))
    world.settle()
    world.finish()
    world.settle()
    assert [len(world.runs(f"then{n}")) for n in range(5)] == [1] * 5
