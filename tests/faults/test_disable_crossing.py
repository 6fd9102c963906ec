"""A disable that crosses a claim and a start (C13): whatever the order, once acknowledged nothing of it starts.

The road of one job is cut before each of its effects in turn, and there the schedule is disabled (or deleted, or
replaced), as on another machine. Only a start call that was already in flight may pass, and its run is on record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.writes import Refused
from tests.support.schedules import at_most, partitions
from tests.support.world import World, day, flights

MakeWorld = Callable[..., World]
SMALL = {"wake_shards": 1, "history_shards": 1}
CLOSINGS: dict[str, Callable[[World], None]] = {
    "disable": lambda world: world.disable("daily"),
    "delete": lambda world: world.delete("daily"),
    "replace": lambda world: world.put("daily", partitions(properties={"new": True}, enabled=False)),
}


class Cut:
    """Counts the calls that a flow makes of the world, and lets something happen before the n-th."""

    def __init__(self, before: int | None, act: Callable[[], None]) -> None:
        self.count, self._before, self._act = 0, before, act

    def crossing(self, call: Callable[[], Any]) -> Any:
        self.count += 1
        if self.count == self._before:
            self._act()
        return call()


class CutPort:
    """Any port, with every call of it a place where the cut may lie."""

    def __init__(self, inner: Any, cut: Cut) -> None:
        self._inner, self._cut = inner, cut

    def commit(self, writes: Any) -> Refused | None:
        refused: Refused | None = self._cut.crossing(lambda: self._inner.commit(writes))
        return refused

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return lambda *args: self._cut.crossing(lambda: method(*args))


class CutTargets:
    def __init__(self, inner: Any, cut: Cut) -> None:
        self._inner, self._cut = inner, cut

    def of(self, kind: str) -> Any:
        return CutPort(self._inner.of(kind), self._cut)

    def run_name(self, application_id: str, job_run_id: str) -> str | None:
        name: str | None = self._inner.run_name(application_id, job_run_id)
        return name


@pytest.mark.parametrize("closing", CLOSINGS)
def test_c13_whatever_a_closing_crosses_nothing_starts_once_it_is_acknowledged(
    closing: str, make_world: MakeWorld
) -> None:
    tried = _cross(make_world(**SMALL), None, closing)
    for before in range(1, tried + 1):
        _cross(make_world(**SMALL), before, closing)
    print(f"{closing}: {tried} places where it may cross the road of a job")
    assert tried >= 15


def _cross(world: World, before: int | None, closing: str) -> int:
    """One order of things. Returns how many calls the road of the job takes."""
    world.deploy(flights({"daily": partitions(**at_most(1))}))
    plain = world.ports
    acknowledged: list[tuple[int, int]] = []

    def close() -> None:
        """Close, and note at the acknowledgement: start calls made, and calls on record that were not made yet."""
        cut_ports, world.ports = world.ports, plain
        CLOSINGS[closing](world)
        made = len(world.targets.emr.calls)
        acknowledged.append((made, sum(run.calls for run in world.runs("daily")) - made))
        world.ports = cut_ports

    cut = Cut(before, close)
    world.ports = replace(
        plain,
        ledger=CutPort(plain.ledger, cut),  # type: ignore[arg-type]
        catalog=CutPort(plain.catalog, cut),  # type: ignore[arg-type]
        jobs=CutPort(plain.jobs, cut),  # type: ignore[arg-type]
        runs=CutPort(plain.runs, cut),  # type: ignore[arg-type]
        targets=CutTargets(plain.targets, cut),
    )
    world.upload(day(1))
    world.settle()
    world.ports = plain
    if before is None:
        close()
    for _ in range(4):
        world.clock.pass_by("11m")
        world.tick()

    [(made, in_flight)] = acknowledged
    assert len(world.targets.emr.calls) - made <= in_flight, "only a call that was on record may pass"
    runs = world.runs("daily")
    assert len(world.targets.emr.runs) == len([run for run in runs if run.target_id]), "what passed is on record"
    live = [run for run in runs if run.state in ("STARTING", "RUNNING")]
    assert world.line("workflow:demo.flights.clean").active == len(live)
    assert world.line("workflow:demo.flights.clean").waiters == 0
    assert [job for job in world.jobs("daily") if job.kind == "gathering" and job.met_at] == []
    return cut.count
