"""Notices and deadlines, for `test_crash_points.py` (W9, H5): each failure is announced once."""

from __future__ import annotations

import json
from typing import Any

from tests.core.notices.test_pagerduty import RULE
from tests.faults.dying import Scenario, finish, passes, upload
from tests.support.fakes import EmrRun
from tests.support.schedules import partitions
from tests.support.world import World, flights

TEAM = {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:team"}
ALL = [{"on": ["failed", "aborted", "missed_start", "missed_end"], "to": TEAM}]
ONE = {"constraints": [{"type": "concurrency", "max": 1, "on_unmet": "abort"}]}
LATE = {"constraints": [{"type": "time_window", "start": "12:20", "end": "12:30"}]}
OF_DATA = [{"on": ["data_late", "data_fresh"], "to": TEAM}]
FRESH = {**flights({})["datasets"]["flights"], "fresh": "15m"}
QUIET = {"from": "12:05", "to": "13:00"}
DEADLINE = {"start_within": "5m", "end_within": "10m"}


def _fails(run: EmrRun) -> str:
    return "FAILED"


def _several_fail(world: World) -> None:
    """Two failures are announced, the second after the first one's window. The notice of the second also names an
    abort.
    """
    upload(world, 1)
    finish(world, _fails)
    passes(world, "2s", "1m")
    upload(world, 2)
    upload(world, 3)
    finish(world, _fails)
    passes(world, "4m", "2s", "1m", "6m")


def _late(world: World) -> None:
    upload(world, 1)
    passes(world, "6m", "2s", "5m", "5m", "2s")


def _lapses_twice(world: World) -> None:
    """A dataset is late before its first partition, is fresh with it, and late again."""
    passes(world, "3m30s", "31s", "16m", "31s", "1m")
    upload(world, 1)
    passes(world, "6m", "31s", "15m", "31s", "6m")
    finish(world)


def _first_fails(run: EmrRun) -> str:
    return "FAILED" if run.id.endswith("1") else "SUCCESS"


def _recovers(world: World) -> None:
    """A run fails, which opens an incident. The incident comes to rest, and the next run succeeds."""
    for number in (1, 2):
        upload(world, number)
        finish(world, _first_fails)
        passes(world, "2s", "1m", "6m")


def _recovers_at_night(world: World) -> None:
    """One of three failures comes before the quiet hours. Sluice sends the notices of the others when the hours end."""
    upload(world, 1)
    finish(world, _fails)
    passes(world, "2s", "1m", "3m")
    for number in (2, 3):
        upload(world, number)
        finish(world, _fails)
        passes(world, "2s", "6m")
    passes(world, "50m", "1m")


def is_settled(world: World) -> bool:
    """The incident is open if and only if no run has succeeded that began after each failure; then nothing is left."""
    sent: dict[str, Any] = {}
    for (run_id, _), data in zip(world.targets.queue.messages, world.targets.queue.data, strict=True):
        sent.setdefault(run_id, json.loads(str((data or {})["text"])))
    actions = [event["event_action"] for event in sent.values()]
    told = [
        each["id"]
        for event in sent.values()
        if "payload" in event
        for each in event["payload"]["custom_details"]["events"]
    ]
    runs = world.runs("daily")
    failed, good = ([run for run in runs if run.state == state] for state in ("FAILED", "SUCCEEDED"))
    is_open = any(all(run.claimed_at < (bad.ended_at or 0) for run in good) for bad in failed)
    rows = [item["pk"]["S"] for _, item in world.tables.rows()] if world.is_in_memory else []
    left = [pk for pk in rows if pk.startswith(("WINDOW#", "NOTICE#"))]
    return (
        sorted(told) == sorted(run.run_id for run in failed)
        and actions.count("resolve") == (0 if is_open else 1)
        and actions[-1] == ("trigger" if is_open else "resolve")
        and len(left) == (1 if is_open and rows else 0)
    )


def reported(world: World) -> list[str]:
    """The announced events. A notice that was sent twice under one id counts once."""
    sent: dict[str, Any] = {}
    for (run_id, _), data in zip(world.targets.queue.messages, world.targets.queue.data, strict=True):
        sent[run_id] = json.loads(str((data or {})["text"]))
    return sorted(event["what"] for notice in sent.values() for event in notice["events"])


NOTICES = {
    "a notice of failures and an abort": Scenario(
        {"daily": partitions(1, "clean", notify=ALL, **ONE)},
        _several_fail,
        # After a kill the first run may still be active when the second data comes. Then that job is aborted, too, or
        # both are. If the tables were busy, one job may count the second and the third data.
        [({"daily": ["FAILED"] * runs}, runs) for runs in (2, 1, 3)],
        messages=None,
        outcome=_fails,
        holds=lambda world: (
            reported(world) == sorted(["aborted"] * len(world.records("daily")) + ["failed"] * len(world.runs("daily")))
        ),
    ),
    "an incident that the next success ends": Scenario(
        {"daily": partitions(1, "clean", notify=[RULE])},
        _recovers,
        [({"daily": ["FAILED", "SUCCEEDED"]}, 2)],
        messages=None,
        outcome=_first_fails,
        holds=is_settled,
    ),
    "failures in quiet hours": Scenario(
        {"daily": partitions(1, "clean", notify=[{**ALL[0], "group": "2m", "quiet": QUIET}])},
        _recovers_at_night,
        [({"daily": ["FAILED"] * 3}, 3)],
        messages=None,
        outcome=_fails,
        holds=lambda world: reported(world) == ["failed"] * 3,
    ),
    "a dataset that is late, fresh, and late again": Scenario(
        {"daily": partitions(1, "clean", notify=OF_DATA)},
        _lapses_twice,
        [({"daily": ["SUCCEEDED"]}, 1)],
        messages=None,
        datasets={"flights": FRESH},
        holds=lambda world: reported(world) == ["data_fresh", "data_late", "data_late"],
    ),
    "a start and an end that are not in time": Scenario(
        {"daily": partitions(1, "clean", notify=ALL, deadline=DEADLINE, **LATE)},
        _late,
        [({"daily": ["SUCCEEDED"]}, 1)],
        messages=None,
        holds=lambda world: reported(world) == ["missed_end", "missed_start"],
    ),
}
