"""The results that an hour must have, counted outside of the system: nothing is lost, and nothing happens twice."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from chalicelib.core.instants import MINUTE
from tests.faults import invariants
from tests.upgrade.rolling_world import RollingWorld

EVERY = 7  # minutes between two fires of the schedule `clock`


def nothing_is_lost_or_doubled(world: RollingWorld) -> None:
    stock = invariants.Stock(world.account.books)
    orders = [answer["payload"]["n"] for run in _runs(stock, "orders") for answer in _context(world, run)["events"]]
    assert sorted(orders) == list(range(1, len(world.orders) + 1)), "each order has one run"
    days = Counter(int(run.correlation["day"]) for run in _runs(stock, "days"))
    assert days == Counter(world.partitions), "each partition has one run"
    fires = sorted((run.nominal_at - world.began) // MINUTE for run in _runs(stock, "clock"))
    dropped = [record for record in stock.records if record.schedule.endswith(".clock")]
    made = list(range(EVERY, (len(fires) + len(dropped)) * EVERY + 1, EVERY))
    assert fires and fires == made[: len(fires)], f"each fire has one run, in turn: {dropped}"
    assert made[-1] > world.minute - 2 * EVERY - 1, "the clock went on to the end"
    started = Counter(run.name for run in world.account.emr.runs)
    assert set(started.values()) == {1}, "no attempt of a run starts two job runs"
    _pings_arrive(world, stock)


def _pings_arrive(world: RollingWorld, stock: invariants.Stock) -> None:
    """A message may come twice if a Lambda was killed after sending it. The id of its run is then the same."""
    answer = [json.loads(each["MessageBody"]) for each in world.account.sqs.delivered]
    found = {message["run_id"]: message["events"][0]["payload"]["n"] for message in answer
             if message["schedule"].endswith(".pings")}  # fmt: skip
    assert sorted(found.values()) == list(range(1, len(world.pings) + 1)), "each ping is delivered by one run"
    assert found.keys() == {run.run_id for run in _runs(stock, "pings")}
    if not world.deaths:
        assert len(answer) == len({message["run_id"] for message in answer})


def _runs(stock: invariants.Stock, name: str) -> list[Any]:
    """The first attempts of a schedule's own runs: no run-now, and no backfill."""
    own = [
        run for run in stock.runs if run.schedule.endswith(f".{name}") and run.kind in ("fire", "gathering", "detached")
    ]
    return [run for run in own if run.attempt == 1 and run.backfill is None]


def _context(world: RollingWorld, run: Any) -> Any:
    return json.loads(world.account.s3.objects["control", f"context/{run.run_id}.json"])
