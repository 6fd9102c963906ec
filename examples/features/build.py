"""`make example NAME=features.build`: a nightly feature build on real Spark, and a backfill of the month before.

The month is February 2013 of New York's flights: 28 nights with one run each, two at a time, the newest first. The
example computes the result again from the raw lines, and runs one night a second time. The last line of the output is
JSON.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections import Counter
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from chalicelib.core.instants import zone
from examples.features.expected import WINDOW_DAYS, expected
from examples.flights import data, watch
from examples.progress import counting
from examples.stage import ENDED, Document, Stage, check, exit_code_of, most_at_once
from infra.local import cloud

HERE = Path(__file__).parent
ZONE = zone("America/New_York")
NIGHT = 3  # the hour in the app's expression
MONTH = [date(2013, 2, 1) + timedelta(days=number) for number in range(28)]
BATCH_SIZE = 2  # concurrent runs of the workflow, as in the app's constraint
HANDED_OUT = 3  # concurrency of the backfill: one more, so that a job waits when a run ends
TWICE = date(2013, 2, 9)  # the second day of the snow storm
SCHEDULE, REPORT = "/apps/features/schedules/nightly", "/apps/features/schedules/report"
JOBS = ("build_features.py", "features_report.py", "flight_features.py")
PATIENCE = 600.0  # seconds


def night_after(day: date) -> datetime:
    """When the schedule fires for a day: at three o'clock in New York, the night after."""
    return datetime(day.year, day.month, day.day, NIGHT, tzinfo=ZONE) + timedelta(days=1)


def upload(stage: Stage) -> None:
    """Upload the month, and the week before it, from which the features of its first days are computed."""
    days = [MONTH[0] - timedelta(days=ago) for ago in range(WINDOW_DAYS, 0, -1)] + MONTH
    with counting(stage.console, "days uploaded", len(days)) as counter:
        for number, day in enumerate(days, 1):
            data.upload_day(stage.s3, stage.lake, f"{stage.prefix}raw/", day, kinds=("flights",), parts=1)
            counter.at(number, str(day))


def deploy(stage: Stage) -> None:
    values = {"lake": stage.lake, "code": stage.upload_jobs(*JOBS), "nights": str(len(MONTH))}
    report = stage.deploy("features", HERE / "app.yaml", values)
    stage.say("deployed", ", ".join(report["created"]))
    fires = stage.client.get(f"{stage.base}{SCHEDULE}/preview", {"count": 2})
    stage.say("nightly", f"{fires['description']}; next: {', '.join(fires['items'])}")


def backfill(stage: Stage) -> None:
    """Start a backfill of the month, and wait for its end. The request has an idempotency key, so a repeat starts no
    other backfill."""
    body = {
        "from": night_after(MONTH[0]).isoformat(),
        "to": night_after(MONTH[-1] + timedelta(days=1)).isoformat(),
        "concurrency": HANDED_OUT,
        "order": "newest",
    }
    path = f"{stage.base}{SCHEDULE}/backfills"
    planned = stage.client.post(path, {**body, "dry_run": True})
    stage.say("backfill", f"would run {planned['total']} nights: {planned['first'][0]} ... {planned['last'][-1]}")
    begun = stage.client.post(path, body, key=stage.name)
    again = stage.client.post(path, body, key=stage.name)
    check(begun["backfill_id"] == again["backfill_id"], "one backfill for one request", again["backfill_id"])
    seen: Document = begun
    with counting(stage.console, "nights built", begun["total"]) as counter:

        def is_over() -> bool:
            nonlocal seen
            seen = stage.client.get(f"{path}/{begun['backfill_id']}")
            names = ", ".join(str(each["entry"])[:10] for each in seen["active"])
            counter.at(seen["succeeded"], f"under way: {names}" if names else "")
            return bool(seen["state"] != "RUNNING")

        stage.until(is_over, "the backfill to be over", PATIENCE)
    check((seen["state"], seen["succeeded"]) == ("DONE", len(MONTH)), f"{len(MONTH)} nights built", seen)


def report(stage: Stage, number: int) -> Document:
    """The run of the report with this number, from 1 on, once it has succeeded."""
    found: list[Document] = []

    def has_ended() -> bool:
        found[:] = [run for run in stage.runs(f"{REPORT}/runs") if run["state"] in ENDED]
        return len(found) >= number

    stage.until(has_ended, f"report {number}", 120)
    check(found[-1]["state"] == "SUCCEEDED", "the report to succeed", f"{found[-1]['state']}: {found[-1]['reason']}")
    return found[-1]


def build_twice(stage: Stage, nights: list[Document]) -> None:
    """Run one night a second time, and check that its partition is replaced and that the report stays the same."""
    [first] = [night for night in nights if day_of(night) == TWICE]
    folder = data.partition_key(f"{stage.prefix}features/", TWICE)
    before = (len(stage.keys(folder)), table_of(stage, "days"), table_of(stage, "signals"))
    again = stage.client.post(f"/v1/runs/{first['run_id']}/rerun", key=f"{stage.name}-again")["job_id"]
    ran: list[Document] = []

    def has_ended() -> bool:
        ran[:] = [run for run in stage.runs(f"{SCHEDULE}/runs") if run["run_id"] == again]
        return bool(ran) and ran[0]["state"] in ENDED

    stage.until(has_ended, f"the run {again} to end", 120)
    check(ran[0]["state"] == "SUCCEEDED", "the second build to succeed", ran[0]["state"])
    stage.client.post(f"{stage.base}{REPORT}/run", key=f"{stage.name}-report")
    report(stage, 2)
    after = (len(stage.keys(folder)), table_of(stage, "days"), table_of(stage, "signals"))
    check(after == before, "the same report after a night was built twice", after)
    stage.say("again", f"{TWICE} was built a second time, and the report after it is the same")


def day_of(run: Document) -> date:
    """The day for which a run builds the features: the day before its nominal instant."""
    return datetime.fromisoformat(run["nominal_at"]).astimezone(ZONE).date() - timedelta(days=1)


def table_of(stage: Stage, name: str) -> list[dict[str, str]]:
    [key] = [key for key in stage.keys(f"{stage.prefix}report/{name}/") if key.endswith(".csv")]
    return list(csv.DictReader(stage.text(stage.lake, key).splitlines()))


def verify(stage: Stage, nights: list[Document]) -> int:
    """Compare the runs and the result with the expected ones. Returns how many days and origins were compared."""
    built = Counter(day_of(run) for run in nights)
    check(built == Counter(MONTH), "each night of the month once", built)
    spans = [(watch.instant(run["started_at"]), watch.instant(run["ended_at"])) for run in nights]
    check(most_at_once(spans) <= BATCH_SIZE, f"at most {BATCH_SIZE} nights at a time", most_at_once(spans))
    wanted = expected(MONTH)
    rows = {(row["date"], row["origin"]): row for row in table_of(stage, "days")}
    check(rows.keys() == wanted.keys(), f"{len(wanted)} rows of days and origins", len(rows))
    for key, want in wanted.items():
        row = rows[key]
        got = (int(row["flights"]), int(row["known_aircraft"]), int(row["route_flights"]))
        check(got == want[:3], f"{want[:3]} of {key}", got)
        mean = float(row["route_mean_delay"])
        check(abs(mean - (want.route_mean_delay or 0.0)) < 0.001, f"a mean of {want.route_mean_delay} of {key}", mean)
    return len(wanted)


def nights_table(nights: list[Document]) -> Table:
    """The first and last few runs, and the reasons why they waited."""
    table = Table(title="The nights (spans in seconds)", title_justify="left", show_edge=False, pad_edge=False)
    for name in ("run", "day", "fired by", "why it waited", "took", "state"):
        table.add_column(name, justify="right" if name == "took" else "left", overflow="fold")
    for run in [*nights[:4], None, *nights[-3:]]:
        if run is None:
            table.add_row(f"... {len(nights) - 7} more", "", "", "", "", "")
            continue
        took = watch.span(run["started_at"], run["ended_at"])
        # For a run that did not wait, the reason only repeats what started it.
        waited = "-" if run["waited_for"] in (None, run["fired_by"]) else run["waited_for"].replace(app_of(run), "")
        table.add_row(str(run["number"]), str(day_of(run)), run["fired_by"].split()[0], waited, took, run["state"])
    return table


def app_of(run: Document) -> str:
    """``<namespace>.<app>.``, the prefix of every full name of the app."""
    return f"{str(run['schedule']).rpartition('.')[0]}."


def signals_table(rows: list[dict[str, str]]) -> Table:
    table = Table(title="What the week before says of a delay", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("feature", no_wrap=True)
    for name in ("flights", "correlation", "late: lowest fifth", "highest fifth"):
        table.add_column(name, justify="right")
    for row in sorted(rows, key=lambda row: -abs(float(row["correlation"] or 0))):
        shares = (f"{float(row[name]):.0%}" for name in ("late_lowest", "late_highest"))
        table.add_row(row["feature"], f"{int(row['flights']):,}", f"{float(row['correlation']):.3f}", *shares)
    return table


def main() -> int:
    began = time.monotonic()
    console = Console()
    console.rule("Sluice: nightly features, and the month before")
    with console.status("starting the local cloud, or using the one that is up"):
        endpoints = cloud.ensure_up()
    stage = Stage(endpoints, "features", console)
    upload(stage)
    deploy(stage)
    backfill(stage)
    reported = report(stage, 1)
    nights = [run for run in stage.runs(f"{SCHEDULE}/runs") if run["kind"] == "backfill"]
    compared = verify(stage, nights)
    build_twice(stage, nights)
    # The schedule would fire every night without end, and there are no flights of this year.
    stage.client.post(f"{stage.base}{SCHEDULE}/disable")
    console.print()
    console.print(nights_table(nights))
    console.print()
    console.print(signals_table(table_of(stage, "signals")))
    console.print()
    stage.say("report", reported["fired_by"].replace(app_of(reported), ""))
    stage.say("verified", f"{compared} rows of days and origins, counted again from the raw lines")
    result: dict[str, Any] = {"example": "ok", "nights": len(nights), "verified": compared}
    took = (watch.instant(nights[-1]["ended_at"]) - watch.instant(nights[0]["claimed_at"])).total_seconds()
    sys.stdout.flush()
    print(json.dumps(result | {"backfill_seconds": round(took, 1), "seconds": round(time.monotonic() - began, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of("example NAME=features.build", main))
