"""A large fire in the tables of an installation, as the engine leaves it: its row, and the runs of its bundles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from chalicelib.core.fires import bundles
from chalicelib.core.fires.bundles import Plan
from chalicelib.core.instants import HOUR, MINUTE, Instant
from chalicelib.core.rows.run import Fire, Run
from chalicelib.core.runs import sends
from chalicelib.core.writes import Put
from chalicelib.ports import Ports
from chalicelib.wiring import ports
from tests.core.builders import run as plain_run

SIZE = 250  # events of a bundle


def put(
    schedule: str = "demo.flights.batch",
    events: int = 2_000,
    failed: Iterable[int] = (),
    late: int = 20,
    workflow: str = "demo.flights.notify",
    into: Ports | None = None,
) -> str:
    """Store a fire that was due an hour ago, whose events were sent ``late`` ms after it, except for those that
    ``failed``: ``into`` the tables of these ports, or of the installation. Returns its id."""
    into = into or ports()
    at = into.clock.now() // MINUTE * MINUTE - HOUR
    fire_id = bundles.fire_id(schedule, 1, at)
    starts = tuple(range(0, events, SIZE))
    row = Fire(fire_id, schedule, 1, at, starts, events)
    plan = tuple(Plan(at, 0, 0, events, events, 0))
    gone = set(failed)
    runs: list[Run] = []
    for first in starts:
        count = min(SIZE, events - first)
        left = tuple(sorted(number for number in gone if first <= number < first + count))
        sent = [(at, at + late)] * (count - len(left))
        like = _run(schedule, workflow, at, late)
        runs.append(
            replace(
                like,
                run_id=bundles.bundle_id(fire_id, first, count),
                spread=(first, events),
                count=count,
                left=left,
                plan=plan,
                sends=sends.of(sent),
            )
        )
        runs += [
            replace(like, run_id=bundles.event_id(fire_id, number), state="FAILED", spread=(number, events))
            for number in left
        ]
    into.ledger.put_all([Put(row), *map(Put, runs)])
    return fire_id


def _run(schedule: str, workflow: str, at: Instant, late: int) -> Run:
    sent = {"claimed_at": at + late, "start_requested_at": at + late, "ended_at": at + late, "state_at": at + late}
    run = plain_run("SUCCEEDED", **sent)
    target = replace(run.request, target={"type": "sqs", "queue_url": "https://sqs.example/target"})
    whose = {"schedule": schedule, "workflow": workflow, "generation": 1, "kind": "fire", "permits": ()}
    return replace(run, **whose, request=target, created_at=at, due_at=at, nominal_at=at, accepted_at=at, calls=1)
