"""The measured paths and their drivers. The load is steady, and every run has ended before the figures are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.cost.plant import CONTROL, LAKE, Plant
from chalicelib.core.instants import MINUTE

EMR = {
    "type": "emr_serverless",
    "entry_point": f"s3://{CONTROL}/code/clean_flights.py",
    "py_files": [f"s3://{CONTROL}/code/sluice_job.py"],
}
SQS = {"type": "sqs", "queue_url": "https://sqs.us-east-1.amazonaws.com/123456789012/sluice-target-notify"}
KEYS = ["year", "month", "day"]
DATASET = {"bucket": "lake", "keys": KEYS, "ready": {"done_flag": "_SUCCESS"}}
OUTPUT = {"output": f"s3://{LAKE}/clean/flights/"}
APP: dict[str, Any] = {
    "datasets": {
        "flights": {**DATASET, "prefix": "raw/flights/"},
        "weather": {**DATASET, "prefix": "raw/weather/"},
    },
    "workflows": {
        "clean_flights": {"target": EMR, "properties": OUTPUT},
        "delays_by_weather": {"target": EMR, "properties": OUTPUT},
        "notify": {"target": SQS},
    },
}
BATCH = 100  # events of one fire: as many as one call reads; more would only repeat it
EVERY_MINUTE = {"type": "time", "expression": "* * * * *"}
CLEAN = {
    "workflow": "clean_flights",
    "enabled": True,
    "trigger": {"type": "partition", "dataset": "flights", "by": KEYS},
}
JOIN = {
    "workflow": "delays_by_weather",
    "enabled": True,
    "by": KEYS,
    "trigger": {
        "type": "all",
        "triggers": [
            {"type": "program_status", "workflow": "clean_flights", "statuses": ["COMPLETED"]},
            {"type": "partition", "dataset": "weather"},
        ],
    },
}
FILES = ("part-00000.csv", "part-00001.csv", "_SUCCESS")


@dataclass(frozen=True, slots=True)
class Path:
    """`repeat` causes one run (or two, with the upstream run) and lets it end; `number` distinguishes repetitions.

    The cost of a path is that of a repetition minus that of the path `beyond`. `each` is the number of runs of one
    repetition; the cost is per run.
    """

    name: str
    about: str
    schedules: dict[str, Any]
    repeat: Callable[[Plant, int], None]
    beyond: str | None = None
    each: int = 1


def _a_minute(plant: Plant, _: int) -> None:
    plant.pass_by(MINUTE)


def _a_day(plant: Plant, number: int) -> None:
    _arrives(plant, "flights", number)
    plant.pass_by(4 * MINUTE)


def _a_day_with_weather(plant: Plant, number: int) -> None:
    _arrives(plant, "weather", number)
    _arrives(plant, "flights", number)
    plant.pass_by(4 * MINUTE)


def _arrives(plant: Plant, dataset: str, number: int) -> None:
    """Upload two files of a day, and its flag."""
    for file in FILES:
        plant.upload(f"raw/{dataset}/year=2013/month={number // 28 + 1}/day={number % 28 + 1}/{file}")
        plant.pass_by(1_000)


PATHS = (
    Path(
        "cron_to_sqs",
        "every minute a message to a queue",
        {"notify": {"workflow": "notify", "enabled": True, "trigger": EVERY_MINUTE}},
        _a_minute,
    ),
    Path(
        "batch_to_sqs",
        f"every minute a fire of {BATCH} events, each a message to a queue",
        {"notify": {"workflow": "notify", "enabled": True, "trigger": EVERY_MINUTE, "spread": {"count": BATCH}}},
        _a_minute,
        each=BATCH,
    ),
    Path(
        "cron_to_emr",
        "every minute an EMR run; no constraint but EMR's start rate",
        {"clean": {"workflow": "clean_flights", "enabled": True, "trigger": EVERY_MINUTE}},
        _a_minute,
    ),
    Path("partition_to_emr", "two files and a flag make a day; an EMR run for each day", {"clean": CLEAN}, _a_day),
    Path(
        "join_to_emr",
        "a clean day and the weather of that day (two files and a flag); beyond partition_to_emr, which cleans the day",
        {"clean": CLEAN, "join": JOIN},
        _a_day_with_weather,
        beyond="partition_to_emr",
    ),
)
