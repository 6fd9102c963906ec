"""`sluice records`: work that never became a run, with its reason and its instant."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from chalicelib.core.rows.run import Record, RecordKind
from sluice.cli import records
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, JOB, SCHEDULES, record, run
from tests.support.answers import views
from tests.support.reasons import says

NS = "/v1/namespaces/demo"


@pytest.fixture(autouse=True)
def no_runs(api: PlayedApi) -> None:
    """A namespace and a schedule without runs, unless a test says otherwise."""
    api.lists |= {f"{NS}/runs": [], f"{SCHEDULES}/clean/runs": [], f"{NS}/records": []}


def test_records_show_reason_and_time_of_each_ending(api: PlayedApi, sluice: Sluice) -> None:
    views = [record("ABORTED"), record("SKIPPED", count=7, reason="missed during an outage")]
    api.lists[f"{NS}/records"] = views
    lines = sluice("records", "-n", "demo").stdout.splitlines()
    assert lines[0].split() == ["WORK", "ENDED", "AS", "AT", "COUNT"]
    assert views[0]["id"] in lines[1] and "ABORTED" in lines[1] and "UTC (3 m ago)" in lines[1]
    assert any(views[0]["reason"] in line for line in lines)
    assert any(line.split()[-1] == "7" for line in lines if "SKIPPED" in line)
    assert any("missed during an outage" in line for line in lines)
    answer = json.loads(sluice("records", "-n", "demo", "--json").stdout)
    assert answer == {"items": views, "next_cursor": None}


def cut(state: str, end: str, at: str, **more: Any) -> dict[str, Any]:
    """A run that was aborted or cancelled, as the list of runs shows it."""
    return run(f"{JOB[:-1]}{end}", state=state, reason=f"{state.lower()} by ada", ended_at=at, **more)


def test_records_show_aborted_and_cancelled_runs_with_the_rest(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/records"] = [record("SKIPPED", at="2026-11-20T10:00:00.000Z")]
    runs = [cut("ABORTED", "b", "2026-11-20T09:00:00.000Z"), cut("CANCELLED", "a", "2026-11-20T11:00:00.000Z")]
    api.play("GET", f"{NS}/runs", *[{"items": [each], "next_cursor": None} for each in (*runs, *runs)])
    done = json.loads(sluice("records", "-n", "demo", "--json").stdout)
    assert [each["kind"] for each in done["items"]] == ["CANCELLED", "SKIPPED", "ABORTED"]
    assert done["items"][0] == {
        "id": f"{JOB[:-1]}a",
        "kind": "CANCELLED",
        "schedule": CLEAN,
        "reason": "cancelled by ada",
        "at": "2026-11-20T11:00:00.000Z",
        "count": 1,
    }
    page = sluice("records", "-n", "demo").stdout
    assert "cancelled by ada" in page and "2026-11-20 11:00:00.000 UTC" in page
    asked = [request.query["state"] for request in api.requests if request.path == f"{NS}/runs"]
    assert asked == ["ABORTED", "CANCELLED"] * 2, "the API filters"


def test_records_of_kind_cancelled_are_runs_alone(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{SCHEDULES}/clean/runs"] = [cut("CANCELLED", str(n), f"2026-11-20T1{n}:00:00.000Z") for n in (3, 2, 1)]
    done = sluice("records", "-s", CLEAN, "--kind", "cancelled", "--limit", "2")
    assert done.stdout.count("cancelled by ada") == 2
    assert "12:00" in done.stdout and "11:00" not in done.stdout, "the newest"
    assert "2 shown; sluice records ... --limit 0 shows all" in done.stderr
    assert [request.path for request in api.requests] == [f"{SCHEDULES}/clean/runs"]


def test_records_of_other_kinds_ask_for_no_runs(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/records"] = [record("EXPIRED")]
    assert "EXPIRED" in sluice("records", "-n", "demo", "--kind", "expired").stdout
    assert [request.path for request in api.requests] == [f"{NS}/records"]


def test_records_are_filtered_by_the_api_and_runs_beside_them(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{SCHEDULES}/clean/records"] = [record("ABORTED", "a", at="2026-11-19T09:00:00.000Z")]
    args = ("-s", CLEAN, "--kind", "aborted", "--day", "2026-11-19", "--text", "ada")
    done = sluice("records", *args, "--json")
    assert [each["id"] for each in json.loads(done.stdout)["items"]] == [f"{CLEAN}.m3k2j9x1.a"]
    common = {"day": "2026-11-19", "q": "ada", "limit": "100"}
    assert [request.query for request in api.requests] == [
        {**common, "kind": "ABORTED"},
        {**common, "state": "ABORTED"},
    ]


def test_records_of_a_namespace_are_read_day_by_day(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/records"] = [record("EXPIRED", at="2026-11-19T10:00:00.000Z")]
    assert "EXPIRED" in sluice("records", "-n", "demo", "--day", "2026-11-19").stdout
    assert api.requests[0].query["day"] == "2026-11-19"


def test_a_record_of_another_id_names_its_schedule(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/records"] = [record("LATE") | {"id": "lease-1"}]
    assert f"{CLEAN} lease-1" in sluice("records", "-n", "demo").stdout


def test_without_records_the_note_says_what_it_means(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/records"] = []
    done = sluice("records", "-n", "demo")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.strip() == "no records yet: no work was aborted, dropped or skipped"
    assert "no records match" in sluice("records", "-n", "demo", "-k", "late").stderr


def test_an_unknown_kind_of_record_sends_nothing(api: PlayedApi, sluice: Sluice) -> None:
    done = sluice("records", "-n", "demo", "--kind", "aborte")
    assert (done.exit_code, api.requests) == (2, [])
    assert "did you mean ABORTED?" in done.stderr


def test_the_command_knows_every_kind_of_record() -> None:
    assert set(records.KINDS) == {*get_args(RecordKind), *records.OF_RUNS}
    assert set(record("ABORTED")) == set(views.record_view(Record("i", "ABORTED", "s", 1, says(""), 0)))
