"""`make example NAME=retraining.retrain`: a complete month of flights starts the training of a model for each airport.

A DAG on real Spark prepares the month, trains three models, and evaluates them on days that no model was trained on. It
publishes those that are better than the baseline. The trainings share one slot with an experiment. The last line of the
output is JSON.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.flights import data, watch
from examples.stage import ENDED, Document, Stage, check, exit_code_of, most_at_once
from infra.local import cloud

HERE = Path(__file__).parent
YEAR, MONTH = 2013, 1
DAG = "/apps/retraining/dags/retrain"
# The nodes in the order of the output; the priorities are those of the app's document.
NODES = ("prepare", "jfk", "lga", "ewr", "evaluate", "publish")
PRIORITIES = {"jfk": 9, "lga": 7, "ewr": 5, "experiment": 0}
JOBS = (
    "training_set.py", "train_delays.py", "explore_delays.py", "evaluate_models.py", "publish_models.py",
    "flight_features.py", "flight_models.py",
)  # fmt: skip
PATIENCE = 600.0  # seconds


def month_csv() -> bytes:
    """All flights of the month, with one header."""
    first = date(YEAR, MONTH, 1)
    days = [first + timedelta(days=number) for number in range(31)]
    parts = [data.flights_csv(day) for day in days if day.month == MONTH]
    return parts[0] + b"".join(part.partition(b"\n")[2] for part in parts[1:])


def upload(stage: Stage) -> None:
    """Upload the month, and then the done-flag, which makes the partition ready."""
    body = month_csv()
    folder = f"{stage.prefix}raw/months/year={YEAR}/month={MONTH}/"
    for name, content in (("flights.csv", body), ("_SUCCESS", b"")):
        stage.s3.put_object(Bucket=stage.lake, Key=folder + name, Body=content)
    flights = body.count(b"\n") - 1
    stage.say("uploaded", f"{YEAR}-{MONTH:02}: {flights:,} flights")


def deploy(stage: Stage) -> None:
    values = {"lake": stage.lake, "code": stage.upload_jobs(*JOBS)}
    report = stage.deploy("retraining", HERE / "app.yaml", values)
    named = [name for name in report["created"] if "~" not in name]
    stage.say("deployed", ", ".join(named))


def node_of(run: Document) -> str:
    """The node of a run, or its schedule outside the DAG: ``jfk`` for ``retrain~<digest>~jfk``."""
    return str(run["schedule"]).rpartition(".")[2].rpartition("~")[2]


class Watching:
    """Reads and shows the runs and the waiting jobs until all have ended."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.waited: dict[str, str] = {}  # by node: the last reason why it waited for a permit

    def until_over(self) -> Document:
        """Wait until the DAG run and the experiment have ended. Returns the DAG run, with the state of each node."""
        seen: list[Document] = []
        with watch.Watch(watch.Steps(self.stage.console)).open() as window:

            def is_over() -> bool:
                jobs = [job for job in self.stage.client.get(f"{self.stage.base}/jobs")["items"] if job["met_at"]]
                self.waited |= {node_of(job): job["reason"] for job in jobs if job["queued_in"]}
                seen[:] = self.stage.client.get(f"{self.stage.base}{DAG}/runs")["items"]
                runs = self.runs()
                goal = standing(seen[0]) if seen else "waiting for the month"
                window.show([shown(run) for run in runs], [shown(job) for job in jobs], goal)
                experiments = [run["state"] for run in runs if node_of(run) == "experiment"]
                ended = bool(experiments) and set(experiments) <= set(ENDED)
                return ended and bool(seen) and bool(seen[0]["state"] != "RUNNING")

            self.stage.until(is_over, "the models", PATIENCE)
        return seen[0]

    def runs(self) -> list[Document]:
        """The runs of the nodes and of the experiment, without the run that starts the DAG run."""
        return [run for run in self.stage.runs() if not run["schedule"].endswith("~")]


def standing(dag_run: Document) -> str:
    """The state of each node of a DAG run, in one line."""
    return ", ".join(f"{name} {dag_run['nodes'][name]['state']}" for name in NODES)


def shown(document: Document) -> Document:
    """A run or a job under the name of its node, and without the month, because there is only one."""
    return {**document, "schedule": node_of(document), "correlation": None}


def verify(runs: dict[str, Document], dag_run: Document, evaluation: list[dict[str, str]], published: set[str]) -> None:
    """Compare the runs and the models with the expected result. Raises `Failed` if they differ."""
    check(dag_run["state"] == "SUCCEEDED", "every node to succeed", standing(dag_run))
    check(set(runs) == {*NODES, "experiment"}, "each node once, and the experiment", sorted(runs))
    trained = {name: runs[name] for name in PRIORITIES}
    check({name: run["priority"] for name, run in trained.items()} == PRIORITIES, f"{PRIORITIES}", trained)
    spans = [(watch.instant(run["claimed_at"]), watch.instant(run["ended_at"])) for run in trained.values()]
    check(most_at_once(spans) == 1, "one training at a time", most_at_once(spans))
    for one, other in combinations(trained, 2):
        check(not overtaken(trained[one], trained[other]), f"{one} before {other}, which is less urgent", "the reverse")
    won = {row["origin"] for row in evaluation if float(row["area"]) > float(row["baseline"])}
    check(published == won, f"the models published that are better than the baseline: {sorted(won)}", sorted(published))
    check(bool(won), "a model that is better than the baseline", evaluation)


def overtaken(urgent: Document, other: Document) -> bool:
    """Whether the less urgent run got the slot although the urgent one was in the queue already. The urgent job has 2 s
    to join the queue, because its check may have been in progress."""
    queued = watch.instant(urgent["accepted_at"] or urgent["created_at"])
    started = watch.instant(other["claimed_at"])
    return bool((started - queued).total_seconds() > 2 and started < watch.instant(urgent["claimed_at"]))


def runs_table(runs: dict[str, Document], waited: dict[str, str]) -> Table:
    table = Table(title="Runs (spans in seconds)", title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("run")
    for name in ("priority", "waited", "took"):
        table.add_column(name, justify="right")
    table.add_column("state")
    table.add_column("why it waited", overflow="fold")
    for name, run in sorted(runs.items(), key=lambda item: str(item[1]["claimed_at"])):
        table.add_row(
            name,
            str(run["priority"]),
            watch.span(run["accepted_at"] or run["created_at"], run["claimed_at"]),
            watch.span(run["started_at"], run["ended_at"]),
            f"[{watch.COLOURS.get(run['state'], '')}]{run['state']}[/]",
            str(run["waited_for"] or waited.get(name, "-")).replace(f"{run['schedule'].partition('.')[0]}.", ""),
        )
    return table


def models_table(rows: list[dict[str, str]], published: set[str]) -> Table:
    title = "Models, on a week that none has seen (area under the ROC curve; 0.5 is chance)"
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column("airport")
    for name in ("trained on", "tried on", "late", "model", "baseline"):
        table.add_column(name, justify="right")
    table.add_column("published")
    for row in rows:
        counts = (f"{int(row['trained_on']):,}", f"{int(row['tried_on']):,}", f"{float(row['late_share']):.0%}")
        scores = (f"{float(row['area']):.3f}", f"{float(row['baseline']):.3f}")
        table.add_row(row["origin"], *counts, *scores, "yes" if row["origin"] in published else "no")
    return table


def evaluation_of(stage: Stage) -> list[dict[str, str]]:
    folder = f"{stage.prefix}evaluation/year={YEAR}/month={MONTH}/"
    [key] = [key for key in stage.keys(folder) if key.endswith(".csv")]
    return list(csv.DictReader(stage.text(stage.lake, key).splitlines()))


def published_of(stage: Stage) -> set[str]:
    """The airports with a published model. Raises `Failed` if a model does not have one weight for each input."""
    found = set()
    for key in stage.keys(f"{stage.prefix}published/"):
        if key.endswith(".txt"):
            model = json.loads(stage.text(stage.lake, key))
            check(len(model["weights"]) == len(model["inputs"]), "a weight for each input", model)
            found.add(model["origin"])
    return found


def main() -> int:
    began = time.monotonic()
    console = Console()
    console.rule("Sluice: models that are trained again")
    with console.status("starting the local cloud, or using the one that is up"):
        endpoints = cloud.ensure_up()
    stage = Stage(endpoints, "retraining", console)
    deploy(stage)
    upload(stage)
    watching = Watching(stage)
    dag_run = watching.until_over()
    runs = {node_of(run): run for run in watching.runs()}
    evaluation, published = evaluation_of(stage), published_of(stage)
    verify(runs, dag_run, evaluation, published)
    console.print()
    console.print(runs_table(runs, watching.waited))
    console.print()
    console.print(models_table(evaluation, published))
    console.print()
    order = sorted(PRIORITIES, key=lambda name: str(runs[name]["claimed_at"]))
    result: dict[str, Any] = {"example": "ok", "order": order, "published": sorted(published)}
    sys.stdout.flush()
    print(json.dumps(result | {"seconds": round(time.monotonic() - began, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of("example NAME=retraining.retrain", main))
