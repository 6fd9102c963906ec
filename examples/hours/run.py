"""`make example NAME=hours.run`: days that are complete when all their hours are there, on real hourly weather.

Hours of four days arrive shuffled, one of them twice, and one after a later day is complete. Each day is summarized
by Spark once, when it has the hours that its clocks show, of three airports. The last line of the output is JSON.
"""

from __future__ import annotations

import csv
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.flights import watch
from examples.hours.data import Hour, hours_of, missing, readings, without_a_reading
from examples.hours.expected import Expected, expected
from examples.progress import counting
from examples.stage import ENDED, Document, Stage, check, exit_code_of
from infra.local import cloud

HERE = Path(__file__).parent
SHORT, USUAL, LONG = date(2013, 3, 10), date(2013, 3, 12), date(2013, 11, 3)  # 23, 24 and 25 hours
WAITING = date(2013, 2, 17)  # the source has no reading of one hour at one airport
DAYS = (SHORT, USUAL, LONG, WAITING)
TWICE = Hour("LGA", datetime(2013, 3, 12, 12, tzinfo=UTC))  # of the usual day
LATE = Hour("JFK", datetime(2013, 3, 10, 17, tzinfo=UTC))  # of the short day
SEED = 2013
SCHEDULE = "/apps/hours/schedules/daily"
JOBS = ("daily_weather.py",)
PATIENCE = 300.0  # seconds


def arrivals() -> Iterator[tuple[str, bytes]]:
    """The keys, below the prefix of the dataset, and contents of the hours of all days: in random order, without the
    late one, and the one that comes twice in two files."""
    bodies = {hour: body for day in DAYS for hour, body in readings(day).items() if hour != LATE}
    order = [*bodies, TWICE]
    random.Random(SEED).shuffle(order)
    seen = Counter[Hour]()
    for hour in order:
        yield f"{hour.folder}/part-{seen[hour]}.csv", bodies[hour]
        seen[hour] += 1


def late() -> tuple[str, bytes]:
    """The key and content of the hour that comes after the usual day is complete."""
    return f"{LATE.folder}/part-0.csv", readings(SHORT)[LATE]


def without_readings() -> list[tuple[str, bytes]]:
    """The keys and contents of the hours of the long day that have no reading: each file has the header alone."""
    return [(f"{hour.folder}/part-0.csv", without_a_reading(LONG)) for hour in missing(LONG)]


def upload(stage: Stage, files: Sequence[tuple[str, bytes]]) -> None:
    with counting(stage.console, "hours uploaded", len(files)) as counter:
        for number, (key, body) in enumerate(files, 1):
            stage.s3.put_object(Bucket=stage.lake, Key=f"{stage.prefix}raw/weather/{key}", Body=body)
            counter.at(number, key.rpartition("/")[0])


def deploy(stage: Stage) -> None:
    report = stage.deploy("hours", HERE / "app.yaml", {"lake": stage.lake, "code": stage.upload_jobs(*JOBS)})
    stage.say("deployed", ", ".join(report["created"]))


def runs_by_day(stage: Stage) -> dict[str, Document]:
    """The runs by the label of their day. Raises `Failed` if a day has two."""
    found = stage.runs(f"{SCHEDULE}/runs")
    counts = Counter(day_of(run) for run in found)
    check(set(counts.values()) <= {1}, "one run for each day", counts)
    return {day_of(run): run for run in found}


def day_of(document: Document) -> str:
    """The day of a run or a job."""
    return str(document["correlation"]["day"])


def summarized(stage: Stage, *days: date) -> None:
    """Wait until these days are summarized. Raises `Failed` if any other day is, or if a run fails."""
    labels = {str(day) for day in days}

    def has_ended() -> bool:
        runs = runs_by_day(stage)
        check(runs.keys() <= labels, f"runs of {sorted(labels)} alone", sorted(runs))
        return runs.keys() == labels and all(run["state"] in ENDED for run in runs.values())

    stage.until(has_ended, f"a run of {', '.join(sorted(labels))}", PATIENCE)
    states = {day: run["state"] for day, run in runs_by_day(stage).items()}
    check(set(states.values()) == {"SUCCEEDED"}, "the runs to succeed", states)


def waits_for(stage: Stage, wanted: dict[date, list[Hour]]) -> None:
    """Wait until `why` names exactly the missing hours of each waiting day, and print what it says."""
    expected_ones = {str(day): {hour.folder for hour in hours} for day, hours in wanted.items()}
    jobs: list[Document] = []

    def names_them() -> bool:
        jobs[:] = stage.client.get(f"{stage.base}{SCHEDULE}/why")["jobs"]
        return missing_of(jobs) == expected_ones

    stage.until(names_them, f"the missing hours {expected_ones}", 60)
    for job in sorted(jobs, key=day_of):
        stage.say(f"why {day_of(job)}", job["why"])


def missing_of(jobs: Iterable[Document]) -> dict[str, set[str]]:
    """The folders for which each day waits, by `why`: the first hundred of them."""
    return {day_of(job): {folder_of(values) for values in job["tree"]["lacks"]} for job in jobs}


def folder_of(values: dict[str, str]) -> str:
    return "/".join(f"{key}={value}" for key, value in values.items())


def table_of(stage: Stage, day: date) -> list[dict[str, str]]:
    [key] = [key for key in stage.keys(f"{stage.prefix}daily/day={day}/") if key.endswith(".csv")]
    return list(csv.DictReader(stage.text(stage.lake, key).splitlines()))


def verify(stage: Stage, days: Sequence[date]) -> dict[tuple[str, str], dict[str, str]]:
    """Compare the rows of the days with the raw lines. Returns the rows by day and airport."""
    wanted = expected(days)
    rows = {(str(day), row["origin"]): row for day in days for row in table_of(stage, day)}
    check(rows.keys() == wanted.keys(), f"{len(wanted)} rows of days and airports", sorted(rows))
    for key, row in rows.items():
        check(agree(row, wanted[key]), f"{wanted[key]} of {key}", row)
    return rows


def agree(row: dict[str, str], want: Expected) -> bool:
    """Whether a row of the result has the expected counts, and the expected figures up to their rounding."""
    counts = int(row["hours"]) == want.hours and int(row["readings"]) == want.readings
    figures = ("mean_temp", "min_temp", "max_temp", "precip")
    return counts and all(abs(float(row[name]) - getattr(want, name)) < 0.001 for name in figures)


def days_table(runs: dict[str, Document], rows: dict[tuple[str, str], dict[str, str]]) -> Table:
    title = "The days (degrees Fahrenheit, inches, seconds)"
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for name in ("day", "airport"):
        table.add_column(name)
    for name in ("hours", "readings", "mean", "lowest", "highest", "rain", "took"):
        table.add_column(name, justify="right")
    for (day, origin), row in sorted(rows.items()):
        figures = (f"{float(row[name]):.1f}" for name in ("mean_temp", "min_temp", "max_temp"))
        took = watch.span(runs[day]["started_at"], runs[day]["ended_at"])
        table.add_row(day, origin, row["hours"], row["readings"], *figures, f"{float(row['precip']):.2f}", took)
    return table


def main() -> int:
    began = time.monotonic()
    console = Console()
    console.rule("Sluice: complete days from hourly data")
    with console.status("starting the local cloud, or using the one that is up"):
        endpoints = cloud.ensure_up()
    stage = Stage(endpoints, "hours", console)
    deploy(stage)
    upload(stage, list(arrivals()))
    summarized(stage, USUAL)
    waits_for(stage, {SHORT: [LATE], LONG: missing(LONG), WAITING: missing(WAITING)})
    upload(stage, [late()])
    summarized(stage, USUAL, SHORT)
    upload(stage, without_readings())
    summarized(stage, USUAL, SHORT, LONG)
    waits_for(stage, {WAITING: missing(WAITING)})
    rows = verify(stage, (SHORT, USUAL, LONG))
    console.print()
    console.print(days_table(runs_by_day(stage), rows))
    console.print()
    stage.say("verified", f"{len(rows)} rows of days and airports, computed again from the raw lines")
    lengths = {str(day): len(hours_of(day)) for day in (SHORT, USUAL, LONG)}
    result: dict[str, Any] = {"example": "ok", "hours": lengths, "verified": len(rows), "waiting": str(WAITING)}
    sys.stdout.flush()
    print(json.dumps(result | {"seconds": round(time.monotonic() - began, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of("example NAME=hours.run", main))
