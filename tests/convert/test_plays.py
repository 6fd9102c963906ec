"""Converted apps in `sluice.testing`, compared with what Airflow runs (`tests/convert/plays.py`) (L26)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sluice import yaml12
from sluice.testing import App
from sluice.testing.seen import DagRun
from tests.convert.conftest import FILES, converted
from tests.convert.plays import PLAYS, Play, Played

STATES = {"SKIPPED": "skipped", "BLOCKED": "upstream_failed"}
OPEN = ("PENDING", "WAITING", "SKIPPED", "BLOCKED", "ABORTED")


def played(play: Play) -> App:
    """The app of a file, enabled at the instant of the play."""
    kind = "mwaa" if play.file.endswith(".mwaa") else "airflow"
    document = yaml12.load(converted(kind, FILES / play.file, "--enabled").document.replace("$$", "$"))
    return App(document, at=play.now)


def begin(app: App, dag: str, events: tuple[str, ...]) -> DagRun:
    for event in events:
        what, *words = event.split()
        if what == "at":
            app.advance_to(words[0])
        elif what == "partition":
            app.partition(words[0], **dict(word.split("=") for word in words[1:]))
        elif what == "event":
            app.event(words[0])
        elif what == "succeed":
            app.dag_runs(words[0])[-1].node(words[1]).succeed()
        elif what == "none":
            assert app.dag_runs(words[0]) == []
        else:
            raise AssertionError(f"expected an event, got {event!r}")
    return app.dag_run(dag)


def ended(app: App, run: DagRun, name: str, result: str, fails: bool) -> None:
    """End the run of a node; a failure with all its retries."""
    if run.node(name).state == "SUCCEEDED":
        return  # a delivery
    if elements := run.node(name).elements:
        for element in elements[:-1]:
            element.succeed()
        if not fails:
            elements[-1].succeed()
        for _ in range(100 if fails else 0):
            if elements[-1].state in ("STARTING", "RUNNING"):
                elements[-1].fail()
            app.advance("1m")
            if run.node(name).state == "FAILED":
                return
        assert not fails, f"{name} does not fail"
        return
    if not fails:
        run.node(name).run.succeed(**({"result": json.loads(result)} if result else {}))
        return
    for _ in range(100):
        run.node(name).fail()
        while (state := run.node(name).state) == "RETRYING" and run.node(name).run.state != "RUNNING":
            app.advance("1m")
        if state == "FAILED":
            return
    raise AssertionError(f"{name} does not fail")


def outcome(app: App, run: DagRun, expected: Played) -> dict[str, Any]:
    """Play the waves. What ran, and how the rest ended."""
    waves, before = [], set()
    for wave in expected.waves:
        started = {name for name, state in run.states.items() if state not in OPEN} - before
        waves.append(" ".join(sorted(started)))
        before |= started
        for word in wave.split():
            name, _, result = word.rstrip("!").partition("=")
            if name in started:
                ended(app, run, name, result, word.endswith("!"))
    waves.append(
        " ".join(sorted(name for name, state in run.states.items() if state not in OPEN and name not in before))
    )
    rest = {name: STATES.get(state, state) for name, state in run.states.items() if name not in before}
    return {"waves": waves, "rest": rest, "failed": run.state == "FAILED"}


CASES = [(play, each) for play in PLAYS for each in play.runs]


@pytest.mark.parametrize(
    ("play", "expected"), CASES, ids=lambda value: getattr(value, "what", getattr(value, "dag", ""))
)
def test_l26_a_converted_dag_runs_what_airflow_runs(play: Play, expected: Played) -> None:
    app = played(play)
    run = begin(app, play.dag, expected.events or play.events)
    found = outcome(app, run, expected)
    plain = [" ".join(sorted(word.rstrip("!").partition("=")[0] for word in wave.split())) for wave in expected.waves]
    rest = dict.fromkeys(expected.skipped.split(), "skipped")
    rest |= dict.fromkeys(expected.upstream_failed.split(), "upstream_failed")
    failed = expected.failed or bool(expected.reported)
    assert found == {"waves": [*plain, ""], "rest": rest, "failed": failed}
    if expected.reported:
        report = (FILES / f"{play.file}.report").read_text()
        assert expected.reported in report


@pytest.mark.parametrize(
    "play", [each for each in PLAYS if each.starts], ids=lambda play: f"{play.dag}-{play.now[:10]}"
)
def test_l26_a_converted_dag_starts_when_airflow_starts_it(play: Play) -> None:
    app = played(play)
    found = app.next_fires(play.dag, len(play.starts))
    assert tuple(f"{each:%Y-%m-%dT%H:%MZ}" for each in found) == play.starts


def test_every_converted_dag_of_the_plays_exists() -> None:
    assert {play.file for play in PLAYS} <= {file.name for file in FILES.iterdir()}


def _play(file: str, dag: str) -> Play:
    return next(play for play in PLAYS if (play.file, play.dag) == (file, dag) and play.runs)


def test_l26_a_day_waits_for_the_run_of_the_day_before() -> None:
    """max_active_runs=1: the next run begins once the one before has ended."""
    play = _play("past.dag", "balance")
    app = played(play)
    first = begin(app, play.dag, play.events)
    app.advance_to("2026-03-04T05:00Z")
    assert [each.states["opening"] for each in app.dag_runs("balance") if each.id != first.id] in ([], ["PENDING"])
    for name in ("opening", "postings", "closing"):
        first.node(name).succeed()
    second = next(each for each in app.dag_runs("balance") if each.id != first.id)
    assert second.states == {"opening": "STARTING", "postings": "PENDING", "closing": "PENDING"}


def test_l26_a_run_ends_at_its_dagrun_timeout() -> None:
    """Airflow: a run that takes longer than dagrun_timeout fails, and its tasks that run are ended."""
    play = _play("etl.dag", "clicks_daily")
    app = played(play)
    run = begin(app, play.dag, play.events)
    run.node("clean").succeed()
    for _ in range(3):  # each attempt may take 3 hours, so that the run would take longer
        app.advance("2h50m")
    assert run.state == "FAILED"
    assert run.states["report"] == run.states["told"] == "BLOCKED"
    assert "RUNNING" not in run.states.values()


def test_l26_a_sensor_that_times_out_runs_nothing() -> None:
    """The payments do not come: Airflow fails the sensor, and the tasks after it do not run."""
    app = played(_play("sensors.dag", "books"))
    begin_at = ("at 2026-03-03T02:00Z", "succeed orders load", "at 2026-03-03T06:00Z", "none books")
    for event in begin_at:
        what, *words = event.split()
        if what == "at":
            app.advance_to(words[0])
        elif what == "succeed":
            app.dag_runs(words[0])[-1].node(words[1]).succeed()
    app.advance_to("2026-03-04T04:01Z")  # a day and two hours after the first event
    assert app.dag_runs("books") == []
    assert [record.kind for record in app.records("books~")] == ["ABORTED"]


def test_l26_an_empty_list_is_reported() -> None:
    """In Airflow, a task mapped over an empty list is skipped, and so are the tasks after it."""
    app = played(_play("files.mwaa", "convert"))
    run = begin(app, "convert", ("at 2026-03-03T00:00Z", "succeed prices_a fetch"))
    run.node("listed").run.succeed(result=[])
    assert run.states["each_file"] == "SUCCEEDED"
    assert run.states["regions-0"] == "STARTING"
    assert "in Airflow it skips them" in (FILES / "files.mwaa.report").read_text()
