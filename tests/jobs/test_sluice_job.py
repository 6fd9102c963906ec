"""`sluice_job`, what jobs import: on contexts that the service wrote, and what it registers and reports."""

from __future__ import annotations

import importlib
import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from subprocess import run
from sys import executable
from typing import Any

import pytest
import sluice_job
from sluice_job import ContextError, DagRun, Partition, RegistrationError, RunContext, Spread, register_partition

from sluice.testing import App
from tests.cli.played_api import KEY, REGION, SECRET, Played, playing

ROOT = Path(__file__).parents[2]
jsonschema = importlib.import_module("jsonschema")  # it comes without types
SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "docs" / "run-context.schema.json").read_text()))
EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
GO = {"type": "event", "event": "go"}
ALARM = {"type": "cloudwatch_alarm", "alarm": "disk"}
SALES = {"type": "partition", "dataset": "sales"}
APP = {
    "namespace": "demo",
    "app": "x",
    "datasets": {"sales": {"bucket": "lake", "prefix": "sales/", "keys": ["region", "hour"]}},
    "workflows": {name: {"target": EMR, "properties": {"output": "s3://lake/out"}} for name in ("clean", "report")},
    "schedules": {
        "by_hour": {"workflow": "clean", "enabled": True, "by": ["region", "hour"], "trigger": SALES},
        "next": {
            "workflow": "report",
            "enabled": True,
            "trigger": {"type": "program_status", "workflow": "clean", "statuses": ["COMPLETED"]},
        },
        "big": {"workflow": "report", "enabled": True, "trigger": {"type": "size", "dataset": "sales", "bytes": 5}},
        "gone": {"workflow": "report", "enabled": True, "trigger": GO, "data": {"n": 7}},
        "alarmed": {"workflow": "report", "enabled": True, "trigger": ALARM},
        "nightly": {"workflow": "report", "enabled": True, "trigger": {"type": "time", "expression": "0 13 * * *"}},
    },
}


def contexts(app: App) -> dict[str, dict[str, Any]]:
    """The last context of each schedule, as the service wrote it."""
    found = [json.loads(text) for text in app.ports.payloads.contexts.values()]
    return {context["schedule"].rpartition(".")[2]: context for context in found}


@pytest.fixture(scope="module")
def written() -> dict[str, dict[str, Any]]:
    app = App(APP, at="2026-03-02T12:00Z")
    app.object("sales", "region=eu/hour=4/part-0.csv", 100)
    app.event("go", {"shop": 3})
    app.alarm("disk", "ALARM")
    app.run("by_hour").succeed()
    app.advance("2h")
    return contexts(app)


def parse(document: dict[str, Any]) -> RunContext:
    return RunContext.parse(document, lambda uri: "")


def test_every_kind_of_context_of_the_service_is_read(written: dict[str, dict[str, Any]]) -> None:
    assert set(written) == {"by_hour", "next", "big", "gone", "alarmed", "nightly"}
    for document in written.values():
        SCHEMA.validate(document)
        context = parse(document)
        for event, original in zip(context.events, document["events"], strict=True):
            assert {name: value for name, value in asdict(event).items() if value is not None} == {
                name: value for name, value in original.items() if value is not None
            }
        whole = asdict(context)
        plain = ("run_id", "attempt", "schedule", "workflow", "logical_start_time", "properties", "correlation")
        assert {name: whole[name] for name in plain} == {name: document[name] for name in plain}


def test_partitions_of_any_keys_are_typed(written: dict[str, dict[str, Any]]) -> None:
    context = parse(written["by_hour"])
    assert dict(context.partition()) == {"region": "eu", "hour": "4"}
    assert context.partition("hour", "region").under("s3://lake/out") == "s3://lake/out/hour=4/region=eu/"
    assert parse(written["next"]).partition("hour")["hour"] == "4", "from upstream"
    assert parse(written["big"]).partition("region").under("s3://lake/out/") == "s3://lake/out/region=eu/"
    with pytest.raises(ContextError, match=r"partition with day, got none: .*give the schedule `by: \[day\]`"):
        context.partition("day")
    several = [event | {"partition": {"region": "us"}} for event in written["by_hour"]["events"]]
    both = written["by_hour"] | {"correlation": None, "events": [*several, *written["by_hour"]["events"]]}
    with pytest.raises(ContextError, match="expected one partition with region, got 2 of them"):
        parse(both).partition("region")


def test_data_payload_alarm_and_start_are_typed(written: dict[str, dict[str, Any]]) -> None:
    gone = parse(written["gone"])
    assert gone.data is not None
    assert (gone.data.content_type, gone.data.json()) == ("application/json", {"n": 7})
    assert (gone.events[0].type, gone.events[0].payload) == ("go", {"shop": 3})
    assert (parse(written["alarmed"]).events[0].alarm, parse(written["alarmed"]).events[0].state) == ("disk", "ALARM")
    assert parse(written["nightly"]).logical_start.isoformat() == "2026-03-02T13:00:00+00:00"
    upstream = parse(written["next"]).upstream
    assert upstream is not None and upstream.schedule == "demo.x.by_hour"


def test_a_run_of_a_dag_knows_its_node() -> None:
    nodes = {"a": {"workflow": "clean"}, "b": {"workflow": "report"}}
    dag = {"trigger": GO, "nodes": nodes, "edges": [{"from": "a", "to": "b"}], "enabled": True}
    app = App({**APP, "schedules": {}, "dags": {"both": dag}}, at="2026-03-02T12:00Z")
    app.event("go")
    found = [json.loads(text) for text in app.ports.payloads.contexts.values()]
    [context] = [parse(document) for document in found if document["workflow"] == "demo.x.clean"]
    assert context.dag == DagRun("demo.x.both", context.dag.run_id, 1, "a")


def test_e2_a_run_knows_its_place_among_the_events_of_its_fire() -> None:
    every = {"type": "time", "expression": "0 13 * * *"}
    several = {"workflow": "clean", "trigger": every, "spread": {"count": 3}, "enabled": True}
    app = App({**APP, "schedules": {"several": several}}, at="2026-03-02T12:00Z")
    app.advance("2h")
    found = [json.loads(text) for text in app.ports.payloads.contexts.values()]
    for document in found:
        SCHEMA.validate(document)
    assert sorted(context.spread for context in map(parse, found) if context.spread) == [
        Spread(number, 3) for number in range(3)
    ]
    with pytest.raises(ContextError, match="spread: expected index to be"):
        parse(found[0] | {"spread": {"count": 3}})


def test_properties_are_typed_or_refused(written: dict[str, dict[str, Any]]) -> None:
    context = parse(written["gone"] | {"properties": {"limit": "5", "share": 0.5, "zone": "UTC", "on": True}})
    assert (context.number("limit"), context.number("share"), context.number("missing", 3)) == (5, 0.5, 3)
    assert (context.text("zone"), context.text("missing", "x")) == ("UTC", "x")
    for name in ("zone", "on", "missing"):
        with pytest.raises(ContextError, match=f"expected the property '{name}' to be a number"):
            context.number(name)
    with pytest.raises(ContextError, match="expected the property 'limit2' to be a text, got None; set it in"):
        context.text("limit2")


PARTITIONS = "/v1/namespaces/demo/datasets/sales/partitions"
BUSY = Played(503, {"error": {"code": "unavailable", "message": "busy", "field": None, "hint": None}})


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}
    for name, value in {**values, "NO_PROXY": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)


def test_t7_a_job_registers_a_partition_without_any_package(keys: None) -> None:
    with playing() as api:
        api.play("POST", PARTITIONS, BUSY, Played(201, {"dataset": "demo.sales"}))
        pauses: list[float] = []
        register_partition("demo.sales", {"region": "eu", "hour": 4}, api.url, pauses.append)
    assert [request.body for request in api.requests] == [{"partition": {"region": "eu", "hour": 4}}] * 2
    assert len(pauses) == 1


def test_t7_folders_have_the_names_that_spark_gives_them(keys: None) -> None:
    values = {"at": "2026-03-01 07:00", "aws-account-id": "0001", "share": "100%", "kept": "a%2Fb"}
    folders = {"at": "2026-03-01 07%3A00", "aws-account-id": "0001", "share": "100%25", "kept": "a%2Fb"}
    path = "/".join(f"{key}={text}" for key, text in folders.items())
    assert Partition(values).under("s3://lake/raw/") == f"s3://lake/raw/{path}/"
    with playing() as api:
        api.play("POST", PARTITIONS, Played(201, {"dataset": "demo.sales"}))
        register_partition("demo.sales", values, api.url)
    assert [request.body for request in api.requests] == [{"partition": folders}]


def test_t7_a_refused_registration_says_why(keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with playing() as api:
        monkeypatch.setenv("SLUICE_API_URL", api.url)
        api.refuse("POST", PARTITIONS, 400, "invalid", "expected exactly the keys region, hour", hint="add hour")
        with pytest.raises(RegistrationError, match="HTTP 400 invalid: expected exactly the keys .*; add hour"):
            register_partition("demo.sales", {"region": "eu"})
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(RegistrationError, match="HTTP 403"):
            register_partition("demo.sales", {"region": "eu"})
    with pytest.raises(RegistrationError, match="expected a dataset as namespace.name, got 'sales'"):
        register_partition("sales", {"region": "eu"})


def test_t7_a_registration_without_an_answer_is_an_error(keys: None) -> None:
    pauses: list[float] = []
    with playing() as api:
        api.play("POST", PARTITIONS, Played(hang_up=True))
        with pytest.raises(RegistrationError, match="expected demo.sales region=eu to be registered"):
            register_partition("demo.sales", {"region": "eu"}, api.url, pauses.append)
    assert len(api.requests) == len(pauses) + 1 == sluice_job.ATTEMPTS


def test_metrics_and_progress_reach_the_log_and_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "metrics.json"
    monkeypatch.setenv("SLUICE_METRICS_FILE", str(path))
    monkeypatch.setattr(sluice_job, "_metrics", {})
    sluice_job.metric("rows", 5)
    sluice_job.progress(3, 10, "writing")
    assert json.loads(path.read_text()) == {"rows": 5, "done": 3, "total": 10}
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"metric": "rows", "value": 5}, {"progress": 3, "total": 10, "message": "writing"}]


def test_the_library_of_jobs_is_a_wheel_without_needs(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("sluice_job.py", "pyproject.toml", "README.md"):
        (source / name).write_bytes((ROOT / "job_library" / name).read_bytes())
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    run([executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(tmp_path), str(source)], check=True)
    [wheel] = tmp_path.glob("sluice_job-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        code = [name for name in archive.namelist() if name.endswith(".py")]
        [metadata] = [archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA")]
    assert code == ["sluice_job.py"]
    assert "Requires-Dist" not in metadata
    assert "Requires-Python: >=3.9" in metadata


# -- periods -----------------------------------------------------------------------------------------------------------

HOURLY = {
    "namespace": "demo",
    "app": "x",
    "datasets": {
        "clicks": {
            "bucket": "lake",
            "prefix": "clicks/",
            "keys": ["dt", "hour"],
            "period": {"each": "hour", "format": "dt=%Y-%m-%d/hour=%H", "zone": "Europe/Paris"},
        }
    },
    "workflows": APP["workflows"],
    "schedules": {
        "by_hour": {
            "workflow": "clean",
            "enabled": True,
            "by": ["dt", "hour"],
            "trigger": {"type": "partition", "dataset": "clicks"},
        },
        "next": APP["schedules"]["next"],
        "big": {"workflow": "report", "enabled": True, "trigger": {"type": "size", "dataset": "clicks", "bytes": 5}},
        "two": {
            "workflow": "report",
            "enabled": True,
            "trigger": {"type": "partition", "dataset": "clicks", "count": 2},
        },
        "day": {
            "workflow": "report",
            "enabled": True,
            "zone": "Europe/Paris",
            "per": "day",
            "trigger": {"type": "partition", "dataset": "clicks", "of": "period"},
            "incomplete": {"after": "1h"},
        },
    },
}


@pytest.fixture(scope="module")
def hourly() -> dict[str, dict[str, Any]]:
    app = App(HOURLY, at="2026-10-26T12:00Z")
    app.object("clicks", "dt=2026-10-25/hour=2/part-0.csv", 100)
    app.run("by_hour").succeed()
    found = contexts(app)
    for document in found.values():
        SCHEMA.validate(document)
    return found


@pytest.mark.parametrize("schedule", ["by_hour", "next", "big"])
def test_t24_a_job_reads_its_period(hourly: dict[str, dict[str, Any]], schedule: str) -> None:
    period = parse(hourly[schedule]).period("clicks" if schedule != "next" else None)
    assert (str(period), period.label, period.zone) == ("2026-10-25T02", "2026-10-25T02", "Europe/Paris")
    assert period.start.isoformat() == "2026-10-25T02:00:00+02:00"
    assert period.end.isoformat() == "2026-10-25T03:00:00+01:00"


def test_t25_a_job_reads_the_period_of_its_job() -> None:
    app = App(HOURLY, at="2026-10-26T12:00Z")
    for hour in ("2", "03"):
        app.object("clicks", f"dt=2026-10-25/hour={hour}/part-0.csv", 100)
    app.advance("1h")
    document = contexts(app)["day"]
    SCHEMA.validate(document)
    period = parse(document).period()
    assert (period.label, period.start.isoformat()) == ("2026-10-25", "2026-10-25T00:00:00+02:00")
    assert period.end.isoformat() == "2026-10-26T00:00:00+01:00"
    assert len(document["missing"]) == 22


def test_t24_several_periods_are_no_period_of_the_run() -> None:
    app = App(HOURLY, at="2026-10-26T12:00Z")
    for hour in ("2", "03"):
        app.object("clicks", f"dt=2026-10-25/hour={hour}/part-0.csv", 100)
    context = parse(contexts(app)["two"])
    with pytest.raises(ContextError, match="expected one period, got 2026-10-25T02, 2026-10-25T03: run"):
        context.period()
    assert {str(event.period) for event in context.partitions("demo.clicks")} == {"2026-10-25T02", "2026-10-25T03"}
    with pytest.raises(ContextError, match="expected one period of other, got none: run"):
        context.period("other")


def test_t24_a_run_without_a_period_says_what_to_do(written: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(ContextError, match="got none: .*give the dataset a period, and the schedule the keys"):
        parse(written["by_hour"]).period()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("zone", "Mars/Olympus", "expected a time zone such as Europe/Paris, got 'Mars/Olympus'"),
        ("start", "2026", r"events\[0\].period: expected start to be an integer, got '2026'"),
        ("label", None, r"events\[0\].period: expected label to be a text, got None"),
    ],
)
def test_t24_a_malformed_period_is_refused(
    hourly: dict[str, dict[str, Any]], field: str, value: Any, message: str
) -> None:
    document = json.loads(json.dumps(hourly["by_hour"]))
    document["events"][0]["period"][field] = value
    with pytest.raises(ContextError, match=message):
        parse(document)


def test_w18_a_result_reaches_the_context_of_the_next_run() -> None:
    app = App(APP, at="2026-03-02T12:00Z")
    app.object("sales", "region=eu/hour=4/part-0.csv", 100)
    app.run("by_hour").succeed(result={"rows": 7})
    document = contexts(app)["next"]
    SCHEMA.validate(document)
    context = parse(document)
    assert context.upstream is not None
    assert context.upstream.result == context.events[0].result == {"rows": 7}
    assert context.result is None and context.result_uri == f"s3://control/results/{context.run_id}-1.json"


def test_w18_under_a_worker_the_last_result_is_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "result.json"
    monkeypatch.setenv("SLUICE_RESULT_FILE", str(file))
    sluice_job.result({"mode": "delta"})
    sluice_job.result(["é", 1.5, None])
    assert json.loads(file.read_text()) == ["é", 1.5, None]


def test_w18_a_large_result_is_written_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The work is done: the job does not fail for it."""
    monkeypatch.setenv("SLUICE_RESULT_FILE", str(tmp_path / "result.json"))
    sluice_job.result({"text": "x" * 11_000})
    assert "at most 10,000 bytes of JSON, got 11,011; Sluice will not keep it" in capsys.readouterr().err
    assert (tmp_path / "result.json").stat().st_size == 11_011


def test_w18_a_result_without_json_or_a_place_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_RESULT_FILE", raising=False)
    monkeypatch.setattr(sluice_job, "_loaded", [])
    with pytest.raises(sluice_job.ResultError, match="expected a value that JSON can hold, got .*; convert it"):
        sluice_job.result({"rows": object()})
    with pytest.raises(sluice_job.ResultError, match="expected a run of Sluice, got no context; load the run's own"):
        sluice_job.result({"rows": 1})
