"""`sluice records`: work that never became a run, with its reason and its instant."""

from __future__ import annotations

import json
from typing import get_args

from chalicelib.core.rows.run import Record, RecordKind
from chalicelib.flow.views import views
from sluice.cli import records
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, SCHEDULES, record

NS = "/v1/namespaces/demo"


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


def test_records_of_a_schedule_are_filtered_by_kind_and_day(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{SCHEDULES}/clean/records"] = [
        record("ABORTED", "c", at="2026-11-20T10:00:00.000Z"),
        record("SKIPPED", "b", at="2026-11-19T10:00:00.000Z"),
        record("ABORTED", "a", at="2026-11-19T09:00:00.000Z"),
        record("ABORTED", "z", at="2026-11-18T09:00:00.000Z"),
    ]
    done = sluice("records", "-s", CLEAN, "--kind", "aborted", "--day", "2026-11-19", "--json")
    assert [each["id"] for each in json.loads(done.stdout)["items"]] == [f"{CLEAN}.m3k2j9x1.a"]
    assert set(api.requests[0].query) == {"limit"}  # the route accepts no other parameter


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
    assert set(records.KINDS) == set(get_args(RecordKind))
    assert set(record("ABORTED")) == set(views.record_view(Record("i", "ABORTED", "s", 1, "", 0)))
