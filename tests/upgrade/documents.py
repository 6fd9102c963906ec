"""The app whose installation is upgraded: every kind of trigger and limit, and more work than its limits admit."""

from __future__ import annotations

from typing import Any

from tests.upgrade.account import URL

EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
RETRIES = {"attempts": 2, "delay": "30s"}
KEYS = ["year", "month", "day"]
FLIGHTS = {"type": "partition", "dataset": "flights"}
WEATHER = {"type": "partition", "dataset": "weather"}
ONE_AT_A_TIME = {"type": "concurrency", "max": 1, "on_unmet": "wait"}

# These are counted in the end: no simulated user changes their number.
COUNTED: dict[str, dict[str, Any]] = {
    "clock": {"workflow": "clean", "trigger": {"type": "time", "expression": "@every 7m"}, "coalesce": False,
              "constraints": [ONE_AT_A_TIME]},
    "orders": {"workflow": "join", "trigger": {"type": "event", "event": "order"}, "coalesce": False, "pool": "p"},
    "days": {"workflow": "clean", "trigger": FLIGHTS, "by": KEYS,
             "constraints": [{"type": "rate", "max": 3, "per": "9m"},
                             {"type": "concurrency", "max": 2, "group": "cluster", "on_unmet": "wait"}]},
    "pings": {"workflow": "notify", "trigger": {"type": "event", "event": "ping"}, "coalesce": False, "policy": "calm"},
}  # fmt: skip
# These are run by hand, updated, paused and cancelled.
OTHERS: dict[str, dict[str, Any]] = {
    "both": {"workflow": "join", "trigger": {"type": "all", "triggers": [FLIGHTS, WEATHER], "within": "20m"}},
    "many": {"workflow": "clean", "trigger": {"type": "at_least", "count": 2, "triggers": [
        {**FLIGHTS, "count": 9}, {"type": "size", "dataset": "weather", "bytes": 1500},
        {"type": "elapsed", "after": "50m"}]}},
    "calm": {"workflow": "join", "trigger": {"type": "quiet", "of": FLIGHTS, "after": "3m"},
             "constraints": [{"type": "since_last_run", "at_least": "5m", "on_unmet": "wait"}]},
    "missing": {"workflow": "notify", "trigger": {"type": "absent", "of": WEATHER, "within": "8m"}},
    "after": {"workflow": "join", "pool": "p", "slots": 2, "pause_after_failures": 3,
              "trigger": {"type": "program_status", "workflow": "clean", "statuses": ["COMPLETED", "FAILED"]},
              "constraints": [{"type": "delay", "after": "2m", "since": "met"}]},
    "pulled": {"workflow": "pull", "trigger": {"type": "event", "event": "order", "count": 3}},
}  # fmt: skip
DISTURBED = tuple(OTHERS)
NAMES = (*COUNTED, *OTHERS)
DAILY: dict[str, Any] = {
    "trigger": {"type": "event", "event": "order", "count": 5},
    "nodes": {"a": {"workflow": "clean"}, "b": {"workflow": "join"}, "c": {"workflow": "join"}},
    "edges": [{"from": "a", "to": "b"}, {"from": "a", "to": "c", "on": ["FAILED", "COMPLETED"]}],
    "enabled": True,
}


def app() -> dict[str, Any]:
    return {
        "datasets": {
            "flights": {"bucket": "lake", "prefix": "raw/flights/", "keys": KEYS, "ready": {"done_flag": "_SUCCESS"}},
            "weather": {"bucket": "lake", "prefix": "raw/weather/", "keys": KEYS},
        },
        "workflows": {
            "clean": {"target": EMR, "retries": RETRIES},
            "join": {"target": EMR},
            "notify": {"target": {"type": "sqs", "queue_url": URL + "theirs"}},
            "pull": {"target": {"type": "worker", "pool": "w", "arguments": ["--fast"]}},
        },
        "schedules": {name: {**document, "enabled": True} for name, document in {**COUNTED, **OTHERS}.items()},
        "policies": {"calm": {"max_events": 3, "interval": "1m"}},
        "pools": {"p": {"size": 3, "shares": {"flights.join": {"reserved": 1}}}},
        "dags": {"daily": DAILY},
    }
