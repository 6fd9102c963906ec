"""`make demo` and `make demo-all`: partitions of real flights arrive in S3 and start workflows; one starts the next.

    python -m examples.flights.demo          one day, three runs of Spark
    python -m examples.flights.demo --all    four days, and the report by its clock: eight runs or more

The demo runs on the local cloud, which runs the template that is deployed to AWS. Each run of the demo has its own
namespace and prefix, so that the demo can be repeated. The last line of the output is JSON.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.flights import data, watch
from examples.stage import exit_code_of
from infra.local import cloud
from infra.local.console_line import console_line
from sluice import documents
from sluice.client import Client
from sluice.errors import NotReachable

HERE = Path(__file__).parent
JOBS = HERE.parents[1] / "jobs"
LIBRARY = HERE.parents[1] / "job_library" / "sluice_job.py"
STORM, AFTER_IT = date(2013, 2, 8), date(2013, 2, 9)  # a snow storm
POLL_EVERY = 1.0  # seconds
PATIENCE = 280.0  # seconds until the demo fails with the condition that is still unmet


@dataclass(frozen=True, slots=True)
class Scene:
    """What arrives: days with flights and weather, and one day of which a part does not come."""

    complete: tuple[date, ...]
    in_part: str  # what comes of the day after the storm: flights or weather
    by_clock: bool  # whether the report waits for its clock; else it is run once all days are joined

    @property
    def cleaned(self) -> int:
        """How many days have flights."""
        return len(self.complete) + (self.in_part == "flights")


SHORT = Scene((STORM,), "weather", by_clock=False)
ALL = Scene((date(2013, 1, 1), date(2013, 1, 2), STORM), "flights", by_clock=True)


class Demo:
    """One run of the demo, in its own namespace."""

    def __init__(self, endpoints: Any, steps: watch.Steps, scene: Scene) -> None:
        self.steps, self.scene = steps, scene
        self.name = f"demo-{datetime.now(UTC):%m%d-%H%M%S}"
        self.prefix = f"{self.name}/"
        os.environ.update(endpoints.environment())
        self.client = Client.from_environment()
        self.s3 = endpoints.session().client("s3")
        self.lake = endpoints.outputs["LakeBucket"]
        self.control = endpoints.outputs["ControlBucket"]

    def deploy(self) -> None:
        """Upload the jobs to the control bucket, and deploy the app."""
        code = f"code/{self.name}/"
        for job in [*sorted(JOBS.glob("*.py")), LIBRARY]:
            self.s3.put_object(Bucket=self.control, Key=code + job.name, Body=job.read_bytes())
        values = {
            "namespace": self.name,
            "prefix": self.prefix,
            "lake": self.lake,
            "code": f"s3://{self.control}/{code}",
        }
        app = documents.load(str(HERE / "app.yaml"), values)
        self.client.put(f"/v1/namespaces/{self.name}", {"description": "make demo"})
        report = self.client.put(f"/v1/namespaces/{self.name}/apps/flights", app)
        self.steps.say(f"deployed {len(report['created'])} definitions of examples/flights/app.yaml")
        if self.scene.by_clock:
            self._post("enable")

    def review(self) -> None:
        """Deploy two schedules whose jobs wait for a person after the demo: for an approval, and for a resume."""
        values = {"namespace": self.name, "approver": approver_of(self.client.get("/v1/whoami")["arn"])}
        app = f"/v1/namespaces/{self.name}/apps/review"
        self.client.put(app, documents.load(str(HERE / "review.yaml"), values))
        self.client.post(f"{app}/schedules/paused/pause", {"mode": "hold"})

    def upload(self) -> None:
        for day in self.scene.complete:
            data.upload_day(self.s3, self.lake, f"{self.prefix}raw/", day)
            self.steps.say(f"uploaded {day}: flights and weather")
        came, lacking = self.scene.in_part, "weather" if self.scene.in_part == "flights" else "flights"
        data.upload_day(self.s3, self.lake, f"{self.prefix}raw/", AFTER_IT, kinds=(came,))
        self.steps.say(f"uploaded {AFTER_IT}: {came}, but no {lacking}")

    def watch(self) -> None:
        """Show the runs until every complete day is joined, and a report was made after the last join."""
        deadline = time.monotonic() + PATIENCE
        runs: list[dict[str, Any]] = []
        waiting: list[dict[str, Any]] = []
        asked = self.scene.by_clock
        with watch.Watch(self.steps).open() as window:
            while True:
                try:
                    runs = self.runs()
                    waiting = self.client.get(f"/v1/namespaces/{self.name}/jobs")["items"]
                except NotReachable as failure:  # a busy machine: the next request may be answered
                    if time.monotonic() > deadline:
                        raise
                    window.show(runs, waiting, f"waiting for an answer of the API ({failure.message})")
                    time.sleep(POLL_EVERY)
                    continue
                missing = unmet(runs, self.scene)
                if missing == REPORT and not asked:
                    self._post("run", {}, key=self.name)
                    asked = True
                window.show(runs, waiting, f"waiting for {missing}" if missing else "done")
                if missing is None:
                    return
                if time.monotonic() > deadline:
                    raise SystemExit(f"demo: expected {missing} within {PATIENCE:.0f} s; see `sluice runs list`")
                time.sleep(POLL_EVERY)

    def runs(self) -> list[dict[str, Any]]:
        return list(self.client.listing(f"/v1/namespaces/{self.name}/runs")["items"])

    def stop(self) -> None:
        """Disable the schedule with the timer, which would fire without end, and wait for its active runs."""
        self._post("disable")
        deadline = time.monotonic() + 60
        while any(run["state"] in watch.ACTIVE for run in self.runs()) and time.monotonic() < deadline:
            time.sleep(POLL_EVERY)

    def _post(self, action: str, body: dict[str, Any] | None = None, key: str | None = None) -> None:
        self.client.post(f"/v1/namespaces/{self.name}/apps/flights/schedules/report/{action}", body, key=key)

    def fired(self, run: dict[str, Any]) -> str:
        """The events that started a run, as short text."""
        parts = []
        for event in self.client.get(f"/v1/runs/{run['run_id']}")["events"]:
            if event["kind"] == "partition":
                parts.append(f"{watch.short(event['dataset'])} {watch.day_of({'correlation': event['partition']})}")
            elif event["kind"] == "program_status":
                parts.append(f"{watch.short(event['workflow'])} {event['status']}")
            elif event["kind"] == "time" and str(run["fired_by"]) != "run now":
                parts.append(f"clock {datetime.fromtimestamp(event['instant'] / 1000, UTC):%H:%M:%S}")
        return " + ".join(parts) or str(run["fired_by"])

    def why_waiting(self) -> list[dict[str, Any]]:
        why = self.client.get(f"/v1/namespaces/{self.name}/apps/flights/schedules/join/why")
        return list(why["jobs"])

    def result(self) -> tuple[list[str], list[list[str]]]:
        """The header and the rows of the newest report."""
        root = f"{self.prefix}report/csv/"
        keys = [row["Key"] for row in self.s3.list_objects_v2(Bucket=self.lake, Prefix=root)["Contents"]]
        newest = max(key for key in keys if key.endswith(".csv"))
        text = self.s3.get_object(Bucket=self.lake, Key=newest)["Body"].read().decode()
        header, *rows = list(csv.reader(io.StringIO(text)))
        return header, rows


def approver_of(arn: str) -> str:
    """Who may approve in the demo: the signer of its requests, or a role if the local cloud names no person."""
    is_person = re.fullmatch(r"arn:aws[a-z-]*:(iam|sts)::\d{12}:(user|role|assumed-role)/.+", arn) is not None
    return arn if is_person else "arn:aws:iam::000000000000:role/lead"


REPORT = "a report on these days"


def unmet(runs: Sequence[dict[str, Any]], scene: Scene) -> str | None:
    """The condition that is still unmet, as text; None once the demo is complete."""
    ended = {name: [r for r in runs if watch.short(r["schedule"]) == name and r["state"] == "SUCCEEDED"]
             for name in ("clean", "join", "report")}  # fmt: skip
    if left := scene.cleaned - len(ended["clean"]):
        return f"{left} {'day' if left == 1 else 'days'} to be cleaned"
    if left := len(scene.complete) - len(ended["join"]):
        return "1 day to be joined with its weather" if left == 1 else f"{left} days to be joined with their weather"
    last = max(str(run["ended_at"]) for run in ended["join"])
    if not any(str(run["claimed_at"]) > last for run in ended["report"]):
        return REPORT
    return None


# The columns of the report that the demo shows: the name, the heading, and the format of a value.
SHOWN = (
    ("day", "day", str),
    ("origin", "from", str),
    ("flights", "flights", str),
    ("cancelled_share", "cancelled", lambda value: f"{float(value):.0%}"),
    ("mean_dep_delay", "mean delay, min", lambda value: f"{float(value):.1f}"),
    ("late_share", "late > 15 min", lambda value: f"{float(value):.0%}"),
    ("worst_weather_class", "worst weather", str),
)


def report_table(header: list[str], rows: list[list[str]]) -> Table:
    table = Table(title="The newest report", title_justify="left", show_edge=False, pad_edge=False)
    for name, heading, _ in SHOWN:
        table.add_column(heading, justify="left" if name in ("day", "origin", "worst_weather_class") else "right")
    for row in rows[:12]:
        cells = dict(zip(header, row, strict=True))
        table.add_row(*(write(cells[name]) if cells[name] else "-" for name, _, write in SHOWN))
    return table


def main(arguments: Sequence[str] = ()) -> int:
    console = Console(width=None if Console().is_terminal else 110)
    steps = watch.Steps(console)
    console.rule("Sluice: flights and their weather")
    with steps.doing("starting the local cloud, or using the one that is up"):
        endpoints = cloud.ensure_up()
    demo = Demo(endpoints, steps, ALL if "--all" in arguments else SHORT)
    steps.say(f"the local cloud is up; namespace {demo.name}")
    demo.deploy()
    demo.review()
    demo.upload()
    demo.watch()
    demo.stop()
    steps.say("done")
    runs = demo.runs()
    console.print()
    console.print(watch.summary(runs, {run["run_id"]: demo.fired(run) for run in runs}))
    console.print()
    console.print(report_table(*demo.result()))
    console.print()
    waiting = demo.why_waiting()
    for job in waiting:
        console.print(
            f"[bold]why[/] {watch.short(job['schedule'])} of {watch.day_of(job)}: {job['why']}", highlight=False
        )
        console.print(f"    what would make it run: {job['wakes']}", highlight=False)
    console.print(f"[bold]console[/] {console_line(demo.name)}", highlight=False, soft_wrap=True)
    states = Counter(run["state"] for run in runs)
    result = {
        "demo": "ok",
        "runs": dict(sorted(states.items())),
        "waiting": [f"{job['schedule']} {watch.day_of(job)}: {job['why']}" for job in waiting],
        "seconds": round(steps.seconds, 1),
    }
    sys.stdout.flush()
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of("demo", lambda: main(sys.argv[1:])))
