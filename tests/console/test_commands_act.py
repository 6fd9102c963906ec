"""Each command that the console shows beside a button works: run on the command line and the service of this checkout.

The page's list of commands has placeholders for names and ids. They are replaced by those of an installation in which
the command makes sense: a job that waits for approval, a run that runs, an event that was not delivered.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sluice.cli import app as command_line
from tests.acceptance.undelivered import NEVER
from tests.console.test_commands import LISTED
from tests.docs.session import USER, Session, session
from tests.support.dags import ends
from tests.support.world import EMR, SQS

KEYS = ["year", "day"]
ARRIVAL = {"type": "partition", "dataset": "flights"}
APP: dict[str, Any] = {
    "datasets": {"flights": {"bucket": "lake", "prefix": "raw/", "keys": KEYS}},
    "workflows": {"clean": {"target": EMR}, "notify": {"target": SQS, "delivery": {"tries": 1}}},
    "schedules": {
        "clean": {"workflow": "clean", "enabled": True, "trigger": ARRIVAL, "by": KEYS},
        "ask": {
            "workflow": "clean",
            "enabled": True,
            "trigger": ARRIVAL,
            "by": KEYS,
            "constraints": [{"type": "approval", "people": [USER]}],
        },
        "hourly": {
            "workflow": "notify",
            "enabled": True,
            "trigger": {"type": "time", "expression": "0 * * * *"},
            "tags": {"team": "a"},
        },
    },
    "dags": {
        "nightly": {
            "trigger": ARRIVAL,
            "by": KEYS,
            "nodes": {"prepare": {"workflow": "clean"}, "join": {"workflow": "clean"}},
            "edges": [{"from": "prepare", "to": "join"}],
            "enabled": True,
        },
        "files": {
            "trigger": {"type": "time", "expression": "0 0 1 1 *"},
            "concurrency": {"max": 1, "on_unmet": "wait"},
            "run_timeout": "2d",
            "deadline": {"end_within": "1m"},
            "nodes": {
                "scan": {"workflow": "clean"},
                "load": {"workflow": "clean", "each": {"of": "scan", "path": "files"}},
                "delta": {"workflow": "clean"},
            },
            "edges": [
                {"from": "scan", "to": "load", "if": {"mode": ["full"]}},
                {"from": "scan", "to": "delta", "if": {"mode": ["delta"]}},
            ],
            "enabled": True,
        },
    },
}
# The placeholders of the list, a fire to come, and a range in the past.
NAME, ID, OTHER_ID = "demo.flights.clean", "demo.flights.clean.mwpf8i2l.6562d4990586c37d8acd", "0a1b2c3d4e5f6071"
AT, FIRE, PAST = "2026-11-22T05:00:00Z", "2026-03-02T14:00:00Z", "2026-02-01T05:00:00Z --to 2026-02-02T05:00:00Z"


def ran(text: str) -> str:
    """What a command prints. Raises AssertionError if it fails."""
    program, *words = shlex.split(text)
    assert program == "sluice"
    result = CliRunner().invoke(command_line, words)
    assert result.exit_code == 0, f"{text}\n{result.output}"
    return result.stdout


class Installation:
    """A session with one partition, whose runs run, and what a command needs beyond that."""

    def __init__(self, reader: Session) -> None:
        self.world = reader.world
        self.world.deploy(APP)
        self.world.upload("raw/year=2013/day=4/a", "sluice-lake")
        self.world.settle()

    def running(self) -> str:
        return self.world.runs("clean")[-1].run_id

    def ended(self) -> str:
        self.world.finish()
        self.world.settle()
        return self.running()

    def waiting(self) -> str:
        return self.world.jobs("ask")[-1].job_id

    def ended_dag(self) -> str:
        for _ in APP["dags"]["nightly"]["nodes"]:
            self.ended()
        return self.world.runs("nightly~")[-1].run_id

    def begun_dag(self, name: str) -> str:
        """The id of a run of a DAG that was just started."""
        begun = self._begun(f"dags run demo.flights.{name}", "run_id")
        self.world.settle()
        return begun

    def mapped(self) -> tuple[str, str, str]:
        """Three runs of a DAG with a place for one: of the first an element has failed, the second is late and goes on,
        and the third waits to begin."""
        first, *others = (self.begun_dag("files") for _ in range(3))
        ends(self.world, "scan", result={"mode": "full", "files": ["a.csv", "b.csv"]})
        for run in list(self.world.targets.emr.runs.values()):
            if run.state == "SUBMITTED" and "each" in run.request:
                self.world.emr_says(run.id, "RUNNING")
                self.world.emr_says(run.id, "FAILED" if run.request["each"]["index"] == 1 else "SUCCESS", "disk full")
        self.world.settle()
        self.world.pass_by("10m")
        [waiting] = [job.job_id for job in self.world.jobs("files~")]  # both asked at the same instant
        [late] = [run_id for run_id in others if run_id != waiting]
        return first, late, waiting

    def undelivered(self) -> str:
        self.world.targets.queue.answers = [NEVER]
        self.world.pass_by("1h")
        return self.world.runs("hourly")[-1].run_id

    def large_fire(self) -> str:
        spread = {"spread": {"count": 10}}
        self.world.put("hourly", {**APP["schedules"]["hourly"], **spread})
        self.world.pass_by("1h")
        return str(json.loads(ran(f"sluice runs show {self.world.runs('hourly')[-1].run_id} --json"))["fire"])

    def message(self) -> str:
        ran("sluice message put demo.flights.beat --due 2h --target " + shlex.quote(json.dumps(SQS)))
        return "demo.flights.beat"

    def backfill(self) -> str:
        self.ended()
        return self._begun("backfill begin demo.flights.clean --partition year=2013/day=4", "backfill_id")

    def reprocess(self) -> str:
        return self._begun("reprocess demo.flights year=2013/day=4", "reprocess_id")

    def _begun(self, text: str, field: str) -> str:
        return str(json.loads(ran(f"sluice {text} --json"))[field])


Fill = Callable[[str, Installation], str]


def the(found: Callable[[Installation], str], placeholder: str = ID) -> Fill:
    """The command with a placeholder replaced by what is found or made."""
    return lambda text, at: text.replace(placeholder, found(at))


def names(placeholder: str, name: str) -> Fill:
    return lambda text, at: text.replace(placeholder, name)


def after(command: str) -> Fill:
    """The command, once this one has succeeded."""

    def filled(text: str, at: Installation) -> str:
        ran(command)
        return text

    return filled


def both(*fills: Fill) -> Fill:
    def filled(text: str, at: Installation) -> str:
        for fill in fills:
            text = fill(text, at)
        return text

    return filled


DAG = both(the(Installation.ended_dag), names(NAME, "demo.flights.nightly"))
NIGHTLY = names(NAME, "demo.flights.nightly")
HOURLY = both(names(NAME, "demo.flights.hourly"), names(AT, FIRE))
FILLS: dict[str, Fill] = {
    "why": the(Installation.waiting),
    "cancelJob": the(Installation.waiting),
    "approve": the(Installation.waiting),
    "refuse": the(Installation.waiting),
    "answerAll": names("demo.flights.clean", "demo.flights.ask"),
    "showRun": the(Installation.running),
    "cancelRun": the(Installation.running),
    "pingRun": the(Installation.running),
    "rerunRun": the(Installation.ended),
    "showFire": the(Installation.large_fire),
    "logs": both(the(Installation.ended), names("--attempt 2", "--attempt 1")),
    "redrive": the(Installation.undelivered),
    "dropLetter": the(Installation.undelivered),
    "redriveAll": both(lambda text, at: at.undelivered() and text, names(NAME, "demo.flights.hourly")),
    "skip": HOURLY,
    "unskip": both(after(f"sluice skip demo.flights.hourly {FIRE}"), HOURLY),
    "preview": HOURLY,
    "whyDag": DAG,
    "runDag": DAG,
    "enableDag": DAG,
    "disableDag": DAG,
    "rerunDag": DAG,
    "pauseDag": NIGHTLY,
    "resumeDag": both(after("sluice dags pause demo.flights.nightly"), NIGHTLY),
    "cancelDag": both(lambda text, at: text.replace(ID, at.world.runs("nightly~")[-1].run_id), NIGHTLY),
    "showDag": DAG,
    "elements": both(the(lambda at: at.mapped()[0]), names(NAME, "demo.flights.files"), names(" join", " load")),
    "showMessage": the(Installation.message, NAME),
    "deleteMessage": the(Installation.message, NAME),
    "start": after("sluice stop demo --tag team=a --reason 'table is repaired'"),
    # The list has all options at once; a schedule has a range of instants, or a dataset.
    "backfill": both(names(" --dataset demo.flights", ""), names(f"{AT} --to {AT}", PAST), HOURLY),
    "cancelBackfill": the(Installation.backfill, OTHER_ID),
    "cancelReprocess": the(Installation.reprocess, OTHER_ID),
    "showReprocess": the(Installation.reprocess, OTHER_ID),
    "periods": both(names(f"{AT} --to {AT}", PAST), HOURLY),
    "bulk": both(after("sluice pause demo.flights.hourly"), names("a.b", "demo.flights")),
}


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with session(tmp_path) as reader:
        yield Installation(reader)


# The report of a day is written by an app of the installation, which no session has.
@pytest.mark.parametrize("key", [key for key in LISTED if key != "report"])
def test_a_command_of_the_console_succeeds(key: str, installation: Installation) -> None:
    fill = FILLS.get(key, lambda text, at: text)
    ran(fill(LISTED[key], installation))
