"""matrix: the periods of 100 schedules on 400 days in one request, after each day of each has run.

The runs and the rows of their ends are stored in the tables of a local cloud; the rows are written by the step of the
Lambda `lake`. The request goes through the API of the cloud, as `sluice periods -n NS` sends it: its time is the median
of some. Then the API in this process answers it on the same tables, with a client that counts calls and read units.

`before` is the same without rows: pages that read the runs. The budget is part of the measurement: it fails when the
one request takes a second or longer."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from statistics import median
from typing import Any
from unittest.mock import patch

from rich.table import Table

from benchmarks.cloud import own_cloud
from benchmarks.console.metered import Metered
from benchmarks.measurement import Results
from benchmarks.product import APP, NAMESPACE, deploy, ports_of
from benchmarks.progress import Progress
from chalicelib.core.backfills.period_ends import AGAIN, SETTLED
from chalicelib.core.instants import DAY, HOUR, MINUTE, Instant
from chalicelib.core.rows.period_ends import PeriodEnds
from chalicelib.core.rows.run import Run
from chalicelib.core.states import RunState
from chalicelib.core.writes import Delete, Put
from chalicelib.flow.history import period_ends
from chalicelib.ports import Ports
from sluice.client import Client
from tests.support import rows

SCHEDULES = int(os.environ.get("SLUICE_BENCH_SCHEDULES", "100"))
DAYS = int(os.environ.get("SLUICE_BENCH_DAYS", "400"))
TIMES = 7
BUDGET_MS = 1_000
PATH = f"/v1/namespaces/{NAMESPACE}/periods"
FIGURES = ("requests", "calls", "read_units", "ms")


def measure(progress: Progress) -> Results:
    progress("starting a cloud")
    with own_cloud() as cloud:
        deploy(cloud, app(SCHEDULES))
        ports, metered = ports_of(cloud), Metered(cloud)
        logging.disable(logging.INFO)
        now = ports.clock.now()
        # A row is a week old at most, so a view reads the runs of a week.
        old, new = stored(now, 0, now - AGAIN), stored(now, now - AGAIN, now)
        _store(ports, old, progress)
        names = [f"{NAMESPACE}.{APP}.{name}" for name in named(SCHEDULES)]
        progress("reading the runs")
        _without_rows(ports, names)
        before = pages(cloud, metered, 1)
        progress("writing the rows")
        _without_rows(ports, names)
        week_ago = replace(ports, clock=Then(now - AGAIN + SETTLED))
        while period_ends.keep(week_ago, names):
            pass
        _store(ports, new, progress)
        progress("reading")
        return {"matrix": {"schedules": SCHEDULES, "days": DAYS, "runs": SCHEDULES * DAYS, "before": before,
                           "rows": pages(cloud, metered, TIMES)}}  # fmt: skip


class Then:
    """A clock that stands."""

    def __init__(self, instant: Instant) -> None:
        self._instant = instant

    def now(self) -> Instant:
        return self._instant

    def wait_until(self, instant: Instant) -> None:
        raise RuntimeError(f"expected no wait, got one until {instant}")


def app(schedules: int) -> dict[str, Any]:
    """Schedules over the days of one dataset."""
    days = {"bucket": "lake", "prefix": "bench/days/", "keys": ["day"]}
    made = {"workflow": "load", "by": ["day"], "trigger": {"type": "partition", "dataset": "days"}, "enabled": True}
    return {
        "datasets": {"days": days | {"period": {"each": "day", "format": "day=%Y-%m-%d"}}},
        "workflows": {"load": {"target": {"type": "emr_serverless", "entry_point": "s3://lake/code/load.py"}}},
        "schedules": dict.fromkeys(named(schedules), made),
    }


def named(schedules: int) -> list[str]:
    return [f"daily{number:04}" for number in range(schedules)]


def stored(now: Instant, since: Instant, until: Instant) -> Iterator[Run]:
    """The runs of each schedule and day that were claimed in a span: six hours after the day. One in 31 has failed."""
    today = datetime.fromtimestamp(now / 1000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for number in range(1, DAYS + 1):
        day = today - timedelta(days=number)
        for place, name in enumerate(named(SCHEDULES)):
            claimed = int(day.timestamp() * 1000) + DAY + 6 * HOUR + place
            if since <= claimed < until and claimed <= now:
                yield _run(f"{NAMESPACE}.{APP}.{name}", f"{day:%Y-%m-%d}", claimed, (number + place) % 31 == 0)


def _run(schedule: str, day: str, claimed: Instant, failed: bool) -> Run:
    state: RunState = "FAILED" if failed else "SUCCEEDED"
    return rows.run(
        run_id=f"{schedule}.m3k2j9x1.{claimed:020d}",
        schedule=schedule,
        workflow=f"{NAMESPACE}.{APP}.load",
        correlation={"day": day},
        state=state,
        permits=(),
        claimed_at=claimed,
        created_at=claimed,
        ended_at=claimed + 5 * MINUTE,
        wake_at=None,
    )


def _store(ports: Ports, runs: Iterator[Run], progress: Progress) -> None:
    done = 0
    while batch := list(islice(runs, 500)):
        ports.ledger.put_all([Put(run) for run in batch])
        done += len(batch)
        progress("storing runs", done, SCHEDULES * DAYS)


def _without_rows(ports: Ports, names: list[str]) -> None:
    """Delete the rows that the Lambda of the cloud has written meanwhile."""
    for name in names:
        ports.ledger.commit([Delete(PeriodEnds(name, (), "", 0, 0))])


def pages(cloud: Any, metered: Metered, times: int) -> dict[str, Any]:
    """The figures of the whole matrix, page by page."""
    today = datetime.now(UTC).date()
    span = f"from={today - timedelta(days=DAYS - 1)}&to={today}"
    took: list[float] = []
    with patch.dict(os.environ, cloud.endpoints.environment()):
        client = Client.from_environment()
        for _ in range(times + 1):
            begun, paths, cursor, seen = time.monotonic(), [], "", 0
            while True:
                paths.append(f"{PATH}?{span}{cursor}")
                page = client.get(paths[-1])
                seen += sum(len(item["days"]) for item in page["items"])
                if page["next_cursor"] is None:
                    break
                cursor = f"&cursor={page['next_cursor']}"
            took.append((time.monotonic() - begun) * 1000)
            if seen != SCHEDULES * DAYS:
                raise RuntimeError(f"expected {SCHEDULES * DAYS} days, got {seen}")
    read = [metered.ask("GET", path, None) for path in paths]
    return {
        "requests": len(paths),
        "calls": sum(one.calls for one in read),
        "read_units": round(sum(one.units for one in read), 1),
        "ms": round(median(took[1:])),  # the first starts a Lambda
    }


def tables(results: Results) -> list[Table]:
    one = results["matrix"]
    title = f"matrix: {one['schedules']} schedules, {one['days']} days, {one['runs']:,} runs"
    table = Table("", *(name.replace("_", " ") for name in FIGURES), title=title, title_justify="left")
    for what in ("before", "rows"):
        table.add_row(what, *(f"{one[what][name]:,}" for name in FIGURES))
    return [table]


def over_budget(results: Results) -> list[str]:
    """What is too slow, in words."""
    one = results["matrix"]["rows"]
    if one["requests"] == 1 and one["ms"] < BUDGET_MS:
        return []
    return [f"matrix: expected one request within {BUDGET_MS} ms, got {one['requests']} in {one['ms']:,} ms"]
