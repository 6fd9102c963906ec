"""Helpers for the scenarios: triggers, constraints, and the results that tests read from a world."""

from __future__ import annotations

from typing import Any

from chalicelib.core.instants import MINUTE, SECOND, duration, iso
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState
from tests.support.answers import explain
from tests.support.clock import NOON
from tests.support.world import World, full

Document = dict[str, Any]


# -- data --------------------------------------------------------------------------------------------------------------


def day(number: int, dataset: str = "flights", name: str = "_SUCCESS") -> str:
    """The key of an object of a day, in folders with leading zeros, as many tools write them."""
    return f"raw/{dataset}/year=2013/month=01/day={number}/{name}"


# -- triggers ----------------------------------------------------------------------------------------------------------


def partition(dataset: str = "flights", count: int = 1) -> Document:
    return {"type": "partition", "dataset": dataset, "count": count}


def size(amount: str, dataset: str = "flights") -> Document:
    return {"type": "size", "dataset": dataset, "bytes": amount}


def event(kind: str, count: int = 1, **fields: Any) -> Document:
    return {"type": "event", "event": kind, "count": count} | fields


def alarm(name: str, *states: str, count: int = 1) -> Document:
    return {"type": "cloudwatch_alarm", "alarm": name, "state": list(states) or "ALARM", "count": count}


def status(workflow: str, *statuses: str, count: int = 1) -> Document:
    wanted = list(statuses) or ["COMPLETED"]
    return {"type": "program_status", "workflow": workflow, "statuses": wanted, "count": count}


def time(expression: str, **fields: Any) -> Document:
    return {"type": "time", "expression": expression} | fields


def quiet(of: Document, after: str) -> Document:
    return {"type": "quiet", "of": of, "after": after}


def elapsed(after: str) -> Document:
    return {"type": "elapsed", "after": after}


def absent(of: Document, **limit: Any) -> Document:
    return {"type": "absent", "of": of} | limit


def all_of(*triggers: Document, **fields: Any) -> Document:
    return {"type": "all", "triggers": list(triggers)} | fields


def any_of(*triggers: Document) -> Document:
    return {"type": "any", "triggers": list(triggers)}


def at_least(count: int, *triggers: Document, **fields: Any) -> Document:
    return {"type": "at_least", "count": count, "triggers": list(triggers)} | fields


def on(trigger: Document, workflow: str = "clean", *constraints: Document, **fields: Any) -> Document:
    """A schedule: its trigger, its workflow and its constraints."""
    return {"workflow": workflow, "enabled": True, "trigger": trigger, "constraints": list(constraints)} | fields


def to_queue(trigger: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return on(trigger, "notify", **fields)


# -- constraints -------------------------------------------------------------------------------------------------------


def concurrency(most: int = 1, on_unmet: str = "wait", **fields: Any) -> Document:
    return {"type": "concurrency", "max": most, "on_unmet": on_unmet} | fields


def delay(after: str, since: str = "created") -> Document:
    return {"type": "delay", "after": after, "since": since}


def window(start: str, end: str, **fields: Any) -> Document:
    return {"type": "time_window", "start": start, "end": end} | fields


def calendar(**fields: Any) -> Document:
    return {"type": "calendar"} | fields


def since_last_run(span: str, **fields: Any) -> Document:
    return {"type": "since_last_run", "at_least": span} | fields


def rate(most: int, per: str, **fields: Any) -> Document:
    return {"type": "rate", "max": most, "per": per} | fields


def fresh(workflow: str, within: str, on_unmet: str = "wait") -> Document:
    return {"type": "fresh", "workflows": [workflow], "within": within, "on_unmet": on_unmet}


# -- what happens, and what tests read ---------------------------------------------------------------------------------


def doze(world: World, span: str) -> None:
    """Let a long span pass. Only its last two minutes have ticks and hints at their instants; nothing may be due
    before.
    """
    end = world.clock.now() + duration(span)
    world.clock.wait_until(end - 2 * MINUTE)
    world.tick()
    world.pass_by(f"{end - world.clock.now()}ms")


def doze_until(world: World, instant: int) -> None:
    doze(world, f"{instant - world.clock.now()}ms")


def days(world: World, run: Run) -> list[str]:
    """The days of the partitions that a run got, in order."""
    return sorted((event["partition"]["day"] for event in world.context(run)["events"]), key=int)


def reasons(world: World, name: str) -> list[str]:
    """The results of work that never ran, oldest first: ``KIND: reason``."""
    return [f"{record.kind}: {record.reason.text}" for record in world.records(name)]


def kinds(world: World, name: str) -> list[str]:
    return [record.kind for record in world.records(name)]


def states(world: World, name: str) -> list[str]:
    return [run.state for run in world.runs(name)]


def why(world: World, name: str) -> Document:
    """`why` of the one job of a schedule."""
    [job] = world.jobs(name)
    return explain.why_job(world.ports, job)


def why_schedule(world: World, name: str) -> Document:
    return explain.why_schedule(world.ports, full(name))


def started_at(world: World, name: str) -> list[str]:
    """When the runs of a schedule were claimed, in UTC, oldest first."""
    return [iso(run.claimed_at) for run in world.runs(name)]


def dues(world: World, name: str = "tick") -> list[float]:
    """The seconds after noon at which the fires of a schedule were started."""
    return [((run.start_requested_at or run.claimed_at) - NOON) / SECOND for run in world.runs(name)]


def is_gone(world: World, name: str = "tick") -> bool:
    schedule_state = world.ports.rows.get(ScheduleState, full(name))
    return schedule_state is not None and schedule_state.mode == "deleted"
