"""`apply`, `get` and `describe`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import (
    CLEAN,
    SCHEDULES,
    app,
    dataset,
    namespace,
    partition,
    record,
    run,
    schedule,
    schedule_why,
    version,
    workflow,
)

NS = "/v1/namespaces/demo"
APP = f"{NS}/apps/flights"
REPORT = {
    "name": "demo.flights",
    "created": ["dataset demo.flights", f"schedule {CLEAN}"],
    "replaced": ["workflow demo.flights.clean_flights"],
    "kept": ["app demo.flights"],
    "deleted": [],
    "untouched": [],
}
DOCUMENT = "namespace: demo\napp: flights\ndatasets: {flights: {bucket: '${bucket}'}}\n"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "app.yaml"
    path.write_text(DOCUMENT)
    return str(path)


def test_apply_sends_the_filled_document_and_reports(api: PlayedApi, sluice: Sluice, file: str) -> None:
    api.play("GET", NS, namespace())
    api.play("PUT", APP, REPORT)
    done = sluice("apply", file, "--set", "bucket=a=b")
    assert done.exit_code == 0
    assert [line.split() for line in done.stdout.splitlines()[:3]] == [
        ["CHANGE", "KIND", "NAME"],
        ["created", "dataset", "demo.flights"],
        ["created", "schedule", CLEAN],
    ]
    assert "demo.flights: 2 created, 1 replaced, 1 kept" in done.stdout
    [put] = api.sent("PUT", APP)
    assert put.body == {"namespace": "demo", "app": "flights", "datasets": {"flights": {"bucket": "a=b"}}}
    assert put.query == {}
    assert not api.sent("PUT", NS)


def test_apply_creates_a_namespace_that_is_missing(api: PlayedApi, sluice: Sluice, file: str) -> None:
    api.refuse("GET", NS, 404, "not_found", "no namespace named 'demo'")
    api.play("PUT", NS, {"name": "demo", "did": "created"})
    api.play("PUT", APP, REPORT)
    done = sluice("apply", file, "--set", "bucket=lake")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1].split() == ["created", "namespace", "demo"]
    assert [request.body for request in api.sent("PUT", NS)] == [{}]
    assert [request.query.get("dry_run") for request in api.sent("PUT", APP)] == ["true", None]


def test_apply_with_dry_run_stores_nothing(api: PlayedApi, sluice: Sluice, file: str) -> None:
    api.play("GET", NS, namespace())
    api.play("PUT", APP, REPORT)
    done = sluice("apply", file, "--set", "bucket=lake", "--dry-run")
    assert "dry run: nothing was stored" in done.stdout
    assert [request.query["dry_run"] for request in api.sent("PUT", APP)] == ["true"]


def test_apply_with_dry_run_does_not_create_the_namespace(api: PlayedApi, sluice: Sluice, file: str) -> None:
    api.refuse("GET", NS, 404, "not_found", "no namespace named 'demo'")
    api.play("PUT", APP, REPORT)
    done = sluice("apply", file, "--set", "bucket=lake", "--dry-run")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1].split() == ["created", "namespace", "demo"]
    assert "dry run: nothing was stored" in done.stdout
    assert [request.query["dry_run"] for request in api.sent("PUT", APP)] == ["true"]
    assert not api.sent("PUT", NS)


def test_a_refused_apply_creates_no_namespace(api: PlayedApi, sluice: Sluice, file: str) -> None:
    api.refuse("GET", NS, 404, "not_found", "no namespace named 'demo'")
    api.refuse("PUT", APP, 400, "invalid", "expected a name, got 'A'", field="app")
    done = sluice("apply", file, "--set", "bucket=lake")
    assert done.exit_code == 1
    assert "error: expected a name, got 'A'" in done.stderr
    assert not api.sent("PUT", NS)


def test_apply_reads_all_files_before_it_sends_one(api: PlayedApi, sluice: Sluice, file: str, tmp_path: Path) -> None:
    second = tmp_path / "second.yaml"
    second.write_text("namespace: demo\n")
    done = sluice("apply", file, str(second), "--set", "bucket=lake")
    assert done.exit_code == 2
    assert "error: expected the name of its app, got nothing" in done.stderr
    assert f"field: {second}: app" in done.stderr
    assert not api.requests


def test_apply_reads_standard_input_and_prints_json(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", NS, namespace())
    api.play("PUT", APP, REPORT)
    done = sluice("apply", "-", "--set", "bucket=lake", "--json", input=DOCUMENT)
    assert json.loads(done.stdout) == REPORT


def test_apply_prints_one_json_document_per_file_and_row(api: PlayedApi, sluice: Sluice, file: str) -> None:
    api.play("GET", NS, namespace())
    api.play("PUT", APP, REPORT)
    done = sluice("apply", file, file, "--set", "bucket=lake", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [REPORT, REPORT]


def test_an_api_refusal_is_shown_with_field_and_hint(api: PlayedApi, sluice: Sluice, file: str) -> None:
    api.play("GET", NS, namespace())
    message = "expected an existing workflow, got 'demo.flights.claen'"
    api.refuse(
        "PUT", APP, 400, "unknown_reference", message, field="schedules.clean.workflow", hint="did you mean 'clean'?"
    )
    done = sluice("apply", file, "--set", "bucket=lake")
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"error: {message}",
        "  field: schedules.clean.workflow",
        "  hint: did you mean 'clean'?",
    ]


@pytest.mark.parametrize(
    ("args", "path", "views", "words"),
    [
        (("namespaces",), "/v1/namespaces", [namespace()], ["demo", "data team", " m ago", "Flights out of"]),
        (("app", "-n", "demo"), f"{NS}/apps", [app()], ["demo.flights"]),
        (
            ("workflows", "-n", "demo", "-a", "flights"),
            f"{APP}/workflows",
            [workflow()],
            ["demo.flights.clean_flights", "emr_serverless", "5", "2", "s3://lake/code/clean_flights.py"],
        ),
        (
            ("schedule", "-n", "demo", "-a", "flights"),
            SCHEDULES,
            [schedule(), schedule("demo.flights.report", "disabled")],
            [CLEAN, "enabled", "1 partition of demo.flights", "demo.flights.report", "disabled"],
        ),
        (
            ("datasets", "-n", "demo"),
            f"{NS}/datasets",
            [dataset()],
            ["demo.flights", "year/month/day", "_SUCCESS", "s3://lake/raw/flights/"],
        ),
    ],
)
def test_get_lists_as_a_table_and_as_json(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], path: str, views: list[object], words: list[str]
) -> None:
    api.lists[path] = views
    table = sluice("get", *args)
    assert table.exit_code == 0
    assert table.stdout.startswith("NAME")
    assert [word for word in words if word not in table.stdout] == []
    assert json.loads(sluice("get", *args, "--json").stdout) == {"items": views, "next_cursor": None}


def test_get_lists_all_pages(api: PlayedApi, sluice: Sluice) -> None:
    api.lists["/v1/namespaces"] = [namespace(f"n{number:03d}") for number in range(230)]
    listed = sluice("get", "namespaces")
    assert len(listed.stdout.splitlines()) == 231
    assert "n229" in listed.stdout


def test_get_lists_the_schedules_of_all_apps(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/apps"] = [app("demo.flights"), app("demo.weather")]
    api.lists[SCHEDULES] = [schedule()]
    api.lists[f"{NS}/apps/weather/schedules"] = [schedule("demo.weather.load")]
    listed = sluice("get", "schedules", "-n", "demo")
    assert CLEAN in listed.stdout
    assert "demo.weather.load" in listed.stdout


@pytest.mark.parametrize(
    "args", [(CLEAN,), ("clean", "-n", "demo", "-a", "flights"), ("flights.clean", "--namespace", "demo")]
)
def test_get_prints_one_as_yaml_by_any_of_its_names(api: PlayedApi, sluice: Sluice, args: tuple[str, ...]) -> None:
    view = schedule()
    api.play("GET", f"{SCHEDULES}/clean", view)
    assert yaml.safe_load(sluice("get", "schedule", *args).stdout) == view
    assert json.loads(sluice("get", "schedule", *args, "--json").stdout) == view


def test_the_namespace_may_come_from_the_environment(
    api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_NAMESPACE", "demo")
    api.lists[f"{NS}/datasets"] = [dataset()]
    assert "demo.flights" in sluice("get", "datasets").stdout


def test_an_empty_list_is_reported_on_stderr(api: PlayedApi, sluice: Sluice) -> None:
    api.lists["/v1/namespaces"] = []
    done = sluice("get", "namespaces")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no namespaces" in done.stderr


def test_describe_of_a_schedule_shows_definition_and_activity(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"{SCHEDULES}/clean", schedule())
    api.play("GET", f"{SCHEDULES}/clean/why", schedule_why())
    api.lists[f"{SCHEDULES}/clean/runs"] = [run(state="FAILED") for _ in range(9)]
    api.lists[f"{SCHEDULES}/clean/records"] = [record("ABORTED")]
    api.lists[f"{SCHEDULES}/clean/versions"] = [version(3, "constraints.0.max: 1 -> 2"), version(2), version(1)]
    page = sluice("describe", "schedule", CLEAN).stdout
    for words in (
        f"schedule {CLEAN}  enabled  version 3",
        "1 partition of demo.flights, one job per year/month/day",
        "at most 2 runs of the workflow at a time, else wait",
        "1d, then abort",
        "(in 4 m)",
        "Waiting jobs",
        "waits for 1 partition of demo.weather",
        "Last runs",
        "Last that never ran",
        record("ABORTED")["reason"],
        "Last versions",
        "constraints.0.max: 1 -> 2",
    ):
        assert words in page
    assert page.count("exit code 1: the file is empty") == 5
    parts = json.loads(sluice("describe", "schedule", CLEAN, "--json").stdout)
    assert list(parts) == ["schedule", "why", "runs", "records", "versions"]


def test_t7_a_dataset_shows_what_is_in_no_partition(api: PlayedApi, sluice: Sluice) -> None:
    why = "its path has no folders year=.../month=.../day=..."
    ignored = [
        {"key": "raw/flights/_SUCCESS", "at": "2026-11-20T11:50:12.964Z", "why": why, "code": "no_folders", "of": ""}
    ]
    api.play("GET", f"{NS}/datasets/flights", dataset() | {"ignored": ignored})
    api.lists[f"{NS}/datasets/flights/partitions"] = []
    line = f"raw/flights/_SUCCESS at 2026-11-20T11:50:12.964Z: {why}"
    assert line in " ".join(sluice("describe", "dataset", "demo.flights").stdout.split())
    assert f"in no partition: {line}" in " ".join(sluice("datasets", "demo.flights").stderr.split())


def test_t24_a_dataset_shows_its_period(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/datasets/flights/partitions"] = []
    weeks = {"each": "week", "format": "day=%Y-%m-%d", "zone": "Europe/Paris", "week_starts": "sun"}
    api.play("GET", f"{NS}/datasets/flights", dataset() | {"period": weeks})
    page = sluice("describe", "dataset", "demo.flights").stdout
    assert "week, named day=%Y-%m-%d, in Europe/Paris, weeks start on sun" in page


def test_describe_shows_the_other_kinds(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", NS, namespace())
    api.play("GET", APP, app())
    api.play("GET", f"{APP}/workflows/clean_flights", workflow())
    api.play("GET", f"{NS}/datasets/flights", dataset())
    api.lists |= {f"{NS}/apps": [app()], f"{NS}/datasets": [dataset()], f"{APP}/workflows": [workflow()]}
    api.lists |= {SCHEDULES: [schedule()], f"{NS}/datasets/flights/partitions": [partition(1)]}
    assert "s3://lake/raw/flights/" in sluice("describe", "namespace", "demo").stdout
    assert CLEAN in sluice("describe", "app", "demo.flights").stdout
    page = sluice("describe", "workflow", "clean_flights", "-n", "demo", "-a", "flights").stdout
    assert "spark.executor.cores=2" in page
    assert "2, 30s after a failure" in page
    page = sluice("describe", "dataset", "demo.flights").stdout
    assert "s3://lake/raw/flights/year=…/month=…/day=…" in page
    assert "year=2013/month=1/day=1" in page
