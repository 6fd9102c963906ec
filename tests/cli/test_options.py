"""No option is ignored: each one of each command changes what is sent or printed, or is refused.

The commands and their options come from the tree of commands, so a new one needs a line here, or a test of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from sluice.cli import ENTRIES, frame
from tests.cli import whole_api
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi, Request
from tests.cli.recorded import JOB

ROOT = Path(__file__).parents[2]
NOW = datetime(2126, 1, 1, tzinfo=UTC)  # long after all that the answers contain, so that ages do not change
PLACE = ("-n", "demo", "-a", "flights")
AT, PART = "2126-11-22T05:00:00Z", "year=2013/month=1/day=1"
FLAG = ("",)  # the value of an option without one
# A value of each option that is not the one of the command below.
VALUES: dict[str, str | tuple[str, ...]] = {
    **dict.fromkeys(("--namespace", "--app"), "other"), "--schedule": "none", "--workflow": "nothing",
    "--target": "sns",
    "--tag": "none=x", "--text": "zzz", "--day": "2026-11-20", "--since": "2h", "--until": "2h", "--limit": "1",
    "--reason": "why", "--property": "a=b", "--at": "2h", "--file": "other.yaml", "--count": "3", "--concurrency": "3",
    "--attempt": "2", "--lines": "7", "--mode": "drain",
    "--from": "2026-01-02", "--to": "2026-03-01", "--partition": "day=5", "--dataset": "weather", "--upto": "join",
    **dict.fromkeys(("--all", "--json", "--yes", "--dry-run", "--late", "--cost", "--runs", "--wait", "--restart",
                     "--stop-timeouts", "--newest-first", "--propose", "--nested", "--refused", "--follow",
                     "--system", "--enabled"), FLAG),
}  # fmt: skip


@dataclass(frozen=True)
class Base:
    """A use of a command. ``values`` are those of its options that are not in `VALUES`; with a tuple of two tuples,
    the first one replaces the use, and the second one is added to it. ``code`` is its exit code."""

    words: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    code: int = 0


def base(*words: str, code: int = 0, **values: Any) -> Base:
    return Base(words, {f"--{name.rstrip('_').replace('_', '-')}": value for name, value in values.items()}, code)


SWITCH = base("clean", *PLACE, tag=(("-a", "demo.flights"), ("--tag", "none")), all=(PLACE, ("--all",)),
              workflow=(PLACE, ("--workflow", "x")), state=(PLACE, ("--state", "hold")))  # fmt: skip
NAMED = base("clean", *PLACE)
OF_DAG = base("daily", *PLACE)
OF_DAG_RUN = base("daily", "ID", *PLACE)
IN_DEMO = base("-n", "demo")
COMMANDS: dict[str, Base] = {
    "init": base("app"),
    "apply": base("app.yaml", "--set", "bucket=lake", set="bucket=other", update_schedules=FLAG, format="markdown",
                  values=(("app.yaml",), ("--values", "values.yaml"))),
    "convert": base("crontab", "cron.txt", output="out.yaml", report="report.txt", zone="Europe/Paris"),
    "validate": base("app.yaml", "--set", "bucket=https://sqs", set="bucket=lake",
                     values=(("app.yaml",), ("--values", "values.yaml"))),
    "get": base("schedules", *PLACE, target=(("workflows", *PLACE), ("--target", "sns")), state="hold"),
    "describe": base("schedule", "clean", *PLACE),
    "delete": base("schedule", "clean", *PLACE, "--yes", yes=(("schedule", "clean", *PLACE), ("--yes",))),
    "message put": base("backup", *PLACE, "--due", "10m", schedule="@hourly", due="1h", repeats="3", ttl="2h",
                        zone="Europe/Paris", data="x", content_type=(("backup", *PLACE, "--due", "1m", "-d", "x"),
                        ("--content-type", "text/csv")), target='{"type": "sqs"}', file="message.yaml"),
    "message get": base("backup", *PLACE),
    "message list": IN_DEMO,
    "message delete": base("backup", *PLACE),
    "access": base("demo", yes=(("demo", "--file", "members.yaml"), ("--yes",)), file=((("demo", "--yes")),
                   ("--file", "members.yaml"))),
    "grants": base("demo", yes=(("demo", "--file", "grants.yaml"), ("--yes",)),
                   file=(("demo", "--yes"), ("--file", "grants.yaml"))),
    "allowed": base("demo", yes=(("demo", "--file", "allowed.yaml"), ("--yes",)),
                    file=(("demo", "--yes"), ("--file", "allowed.yaml"))),
    "quotas": base("demo", file="quotas.yaml"),
    "prefixes list": base(),
    "prefixes give": base("demo", "s3://lake/raw/"),
    "prefixes take": base("demo", "s3://lake/raw/"),
    **dict.fromkeys(("enable", "disable", "pause", "resume"), SWITCH),
    "stop": base("--reason", "repair", "-n", "demo"),
    "start": IN_DEMO,
    "run": base("clean", *PLACE),
    "skip": base("clean", AT, *PLACE),
    "unskip": base("clean", AT, *PLACE),
    "event": base("demo", "go", "--id", "x", payload='{"a": 1}', id="y", file=(("demo",), ("--file", "events.yaml"))),
    "backfill begin": base("clean", *PLACE, "--from", "2026-01-01", "--to", "2026-02-01", only="missing",
                           partition=(("clean", *PLACE), ("--partition", "day=5"))),
    "backfill list": base("clean", *PLACE, state="FAILED"),
    "backfill show": base("clean", "ID", *PLACE),
    "backfill cancel": base("clean", "ID", *PLACE),
    "reprocess begin": base("flights", PART, "-n", "demo", run=((), ("--run", JOB)), only=FLAG,
                            schedule=(("--from", "2026-01-01", "--to", "2026-02-01", *PLACE), ("-s", "clean")),
                            from_=(("flights", "-n", "demo"), ("--from", PART)), upto="flights.join",
                            to=(("flights", "-n", "demo"), ("--to", PART))),
    "reprocess list": base("-n", "demo", state="FAILED"),
    "reprocess show": base("ID", "-n", "demo"),
    "reprocess cancel": base("ID", "-n", "demo"),
    "dags list": base("-n", "demo", state="hold"),
    "dags runs": base("daily", *PLACE, state="CANCELLED"),
    **dict.fromkeys(("dags show", "dags cancel"), OF_DAG_RUN),
    **dict.fromkeys(("dags run", "dags enable", "dags disable", "dags pause", "dags resume", "dags why"), OF_DAG),
    "dags rerun": base("daily", "ID", "--all", *PLACE, from_=(("daily", "ID", *PLACE), ("--from", "join")),
                       only=(("daily", "ID", *PLACE), ("--only", "join")), all=(("daily", "ID", *PLACE), ("--all",))),
    "dags elements": base("daily", "ID", "load", *PLACE,
                          partition=(("daily", "load", *PLACE), ("--partition", "day=1"))),
    "dags skip": base("daily", AT, *PLACE),
    "dags unskip": base("daily", AT, *PLACE),
    "why job": base(JOB),
    "why run": base(JOB),
    "why schedule": NAMED,
    "top": IN_DEMO,
    "now": base("-n", "demo", workflow="flights.w"),
    "schedules list": base("-n", "demo", state="hold", workflow="flights.w"),
    "audit": base("demo", who="bob", name="demo.x", kind="job"),
    "whoami": base(),
    "preview": NAMED,
    "dry-run": base("clean", *PLACE, "--file", "plays.yaml", file="other.yaml"),
    "jobs list": base("-n", "demo", state="PENDING_LAUNCH", waits_for="pause", workflow="flights.w"),
    "jobs cancel": base(JOB),
    **dict.fromkeys(("jobs approve", "jobs refuse"), base("--schedule", "clean", *PLACE)),
    "runs list": base("-n", "demo", state="FAILED", workflow="flights.w", schedule="flights.clean"),
    "runs show": base(JOB),
    "runs cancel": base(JOB),
    "runs ping": base(JOB),
    "runs rerun": base(JOB, downstream=FLAG, only=FLAG),
    "runs logs": NAMED,
    "periods": base("-n", "demo", state="hold", workflow="flights.w", from_="2026-02-01"),
    "fires": base("demo.flights.batch.m3k2j9x1.0123456789abcdef0123", state="SENT"),
    "logs": NAMED,
    "records": base("-n", "demo", kind="late", workflow="flights.w", schedule="flights.clean"),
    "report": base("-n", "demo", sort="runs", workflow="flights.w"),
    "dead-letters list": base("-n", "demo", workflow="flights.w", schedule="flights.clean"),
    "dead-letters redrive": base("-s", "clean", *PLACE),
    "dead-letters drop": base(JOB),
    "versions": NAMED,
    "datasets list": base("-n", "demo", since=(("flights", "-n", "demo"), ("--since", "2h")),
                          until=(("flights", "-n", "demo"), ("--until", "2013-01-01"))),
    "datasets show": base("flights", "year=2013", "month=1", "day=1", "-n", "demo"),
    "datasets register": base("flights", "year=2013", "month=1", "day=1", "-n", "demo"),
    "policies": IN_DEMO,
    "pools": IN_DEMO,
    "buckets": base(),
}  # fmt: skip
# What these do shows nowhere but at a server of their own, on AWS or on a terminal: the tests that play it, which name
# each of their options.
ELSEWHERE = {
    "upload": "tests/cli/test_upload.py",
    "worker run": "tests/cli/test_history.py",
    "console": "tests/cli/test_console.py",
    "open": "tests/cli/test_console.py",
    "local queue": "tests/cli/test_local.py",
    "local topic": "tests/cli/test_local.py",
    "local hook": "tests/cli/test_local.py",
    **dict.fromkeys(("freeze", "unfreeze", "export", "import", "repair"), "tests/cli/test_operations.py"),
    "apply --yes": "tests/cli/test_apply_asks.py",
    "top --once": "tests/cli/test_top.py",
}
# Options that say what holds without them, so that a script can say it.
DEFAULTS = {("reprocess begin", "--downstream")}


def leaves() -> Iterator[tuple[str, Any]]:
    """Every command by its words."""

    def below(command: Any, words: str) -> Iterator[tuple[str, Any]]:
        for name, each in getattr(command, "commands", {}).items():
            yield from below(each, f"{words} {name}")
        if not getattr(command, "commands", None):
            yield words, command

    for entry in ENTRIES:
        yield from below(entry.load(), entry.name)


LEAVES = dict(leaves())


def options_of(command: Any) -> list[str]:
    return [param.opts[0] for param in command.params if param.param_type_name == "option" and param.name != "help"]


Seen = tuple[Any, ...]
Play = Callable[..., Seen]
FILES = {
    "app.yaml": "namespace: demo\napp: flights\nworkflows:\n  w:\n    target: {type: sqs, queue_url: '${bucket}'}\n",
    "values.yaml": "bucket: https://from-a-file\n",
    "cron.txt": "0 5 * * * /bin/true\n",
    "message.yaml": "description: from a file\n",
    "events.yaml": "- {type: go, id: x}\n",
    "plays.yaml": "- {type: partition, dataset: flights, partition: {year: 2013}}\n",
    "other.yaml": "- {type: partition, dataset: planes, partition: {year: 2014}}\n",
    "members.yaml": "members: []\n",
    "grants.yaml": "grants: []\n",
    "allowed.yaml": "queues: []\n",
    "quotas.yaml": "schedules: 800\n",
}


@cache
def operations() -> list[tuple[str, re.Pattern[str], set[str]]]:
    """The method, the path and the query parameters of each operation of the OpenAPI document."""
    paths = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    return [
        (method.upper(), re.compile(re.sub(r"{\w+}", "[^/]+", path)),
         {each["name"] for each in operation["parameters"] if each["in"] == "query"})
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]  # fmt: skip


def is_described(request: Request) -> bool:
    """Whether the OpenAPI document has an operation with these query parameters."""
    return any(
        method == request.method and path.fullmatch(request.path) and set(request.query) <= query
        for method, path, query in operations()
    )


@pytest.fixture
def play(
    api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Play:
    """Use a command in a new folder: its exit code, what it prints and writes, and its requests."""
    monkeypatch.setattr(frame, "now", lambda: NOW)
    monkeypatch.setattr(api, "answer", lambda request: whole_api.answer_of(api, request))

    def used(*words: str) -> Seen:
        folder = tmp_path_factory.mktemp("use")
        for name, text in FILES.items():
            (folder / name).write_text(text)
        monkeypatch.chdir(folder)
        api.requests.clear()
        done: Result = sluice(*words)
        assert [each for each in api.requests if not is_described(each)] == [], "the OpenAPI document has it"
        sent = [(each.method, each.path, each.query, json.dumps(each.body)) for each in api.requests]
        written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
        return done.exit_code, done.stdout, done.stderr, sent, written

    return used


def uses(name: str, option: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a command without an option, and with it."""
    command = COMMANDS[name]
    value = command.values.get(option, VALUES.get(option))
    assert value is not None, f"{option} of {name} is new: give it a value in VALUES or in COMMANDS"
    without = (*name.split(), *command.words)
    if isinstance(value, tuple) and len(value) == 2:
        first, second = value
        return (*name.split(), *first), (*name.split(), *first, *second)
    added = (option,) if value == FLAG else (option, str(value))
    names = next(param.opts + param.secondary_opts for param in LEAVES[name].params if param.opts[0] == option)
    for at, word in enumerate(without):
        if word in names:  # it is there already, with another value
            return without, (*without[:at], *added, *without[at + len(added) :])
    return without, (*without, *added)


def test_every_command_is_played_here_or_elsewhere() -> None:
    known = {*COMMANDS, *(name for name in ELSEWHERE if "--" not in name)}
    assert known == set(LEAVES)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_no_option_of_a_command_is_ignored(play: Play, name: str) -> None:
    known, ignored = {}, []
    for option in options_of(LEAVES[name]):
        if f"{name} {option}" in ELSEWHERE or (name, option) in DEFAULTS:
            continue
        without, with_it = uses(name, option)
        if without not in known:
            known[without] = play(*without)
            assert play(*without) == known[without], f"{without} is not the same twice"
        if play(*with_it) == known[without]:
            ignored.append(option)
    assert ignored == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_o8_each_command_works_and_sends_what_openapi_has(play: Play, name: str) -> None:
    code, _, stderr, *_ = play(*name.split(), *COMMANDS[name].words)
    assert (code, "unexpected" in stderr) == (COMMANDS[name].code, False), stderr


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_what_is_played_elsewhere_names_its_options(name: str) -> None:
    command, _, option = name.partition(" --")
    place = ROOT / ELSEWHERE[name]
    text = "\n".join(path.read_text() for path in ([place] if place.is_file() else sorted(place.glob("*.py"))))
    wanted = [f"--{option}"] if option else options_of(LEAVES[command])
    params = {param.opts[0]: param.opts + param.secondary_opts for param in LEAVES[command].params}
    missing = [each for each in wanted if not any(f'"{alias}"' in text for alias in params[each])]
    assert missing == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("now", "--state", "hold"), "leave it out; this takes --app, --workflow, --target, --tag, --text, --late"),
        (("records", "--late"), "leave it out; this takes --app, --schedule, --workflow"),
        (("policies", "--state", "x"), "leave it out; this takes --tag, --text"),
        (("get", "datasets", "-n", "demo", "--state", "hold"), "this takes --limit, --namespace, --tag, --text"),
        (("get", "pools", "-n", "demo", "-a", "flights"), "leave it out; this takes"),
        (("datasets", "-n", "demo", "--since", "2h"), "name the dataset"),
        (("datasets", "flights", "-n", "demo", "--tag", "a"), "partitions have no tags"),
        (("runs", "list", "-s", "clean", *PLACE, "--tag", "a"), "a schedule has its tags"),
        (("jobs", "-s", "clean", *PLACE, "--target", "sqs"), "leave one of them out"),
        (("describe", "schedule", "demo.flights.clean", "-a", "other"), "leave out --app, or the full name"),
        (("jobs", "approve", JOB, "-a", "flights"), "leave it out"),
        (("runs", "list", "-n", "demo", "--since", "2h", "--until", "3h"), "the span ends before it"),
    ],
)
def test_a_filter_that_does_not_apply_is_refused(api: PlayedApi, sluice: Sluice, words: Any, hint: str) -> None:
    done = sluice(*words)
    assert (done.exit_code, api.requests) == (2, [])
    assert hint in done.stderr
