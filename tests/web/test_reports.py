"""Reports of days over the API, from the files that the job writes to the lake (H3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from chalicelib.flow.history.reports import LINES_A_FILE
from chalicelib.wiring import ports
from tests.web.conftest import APP, NS, Api

REPORTS = f"{NS}/reports"


@pytest.fixture
def lake(api: Api) -> Iterator[Any]:
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="lake-bucket")
    yield s3


def put(
    lake: Any, day: str, count: int, as_of: str = "20260303T011500.000Z", complete: bool = True, runs: int = 1
) -> None:
    """Write a report as Spark does: files of this many lines in their order, ``_SUCCESS`` last."""
    root = f"history_report/json/day={day}/as_of={as_of}/"
    lines = [json.dumps({"workflow": f"demo.flights.w{n:04}", "runs": runs, "cost_usd": None}) for n in range(count)]
    for at in range(0, count, LINES_A_FILE):
        body = "\n".join(lines[at : at + LINES_A_FILE]) + "\n"
        key = f"{root}namespace=demo/part-00000-x.c{at // LINES_A_FILE:03}.json"
        lake.put_object(Bucket="lake-bucket", Key=key, Body=body.encode())
    lake.put_object(Bucket="lake-bucket", Key=f"{root}namespace=other/part-0.c000.json", Body=b'{"workflow":"o.a.w"}\n')
    if complete:
        lake.put_object(Bucket="lake-bucket", Key=f"{root}_SUCCESS", Body=b"")


def names(answer: Any) -> list[str]:
    return [item["workflow"] for item in answer["items"]]


def test_h3_the_report_of_a_day_is_that_of_the_namespace(api: Api, lake: Any) -> None:
    put(lake, "2026-03-02", 2)
    answer = api.get(f"{REPORTS}?day=2026-03-02")
    assert (answer["day"], answer["next_cursor"]) == ("2026-03-02", None)
    assert answer["items"] == [
        {"namespace": "demo", "workflow": f"demo.flights.w000{n}", "runs": 1, "cost_usd": None} for n in (0, 1)
    ]


def test_h3_of_several_versions_the_latest_complete_one_counts(api: Api, lake: Any) -> None:
    put(lake, "2026-03-02", 1, "20260303T011500.000Z", runs=1)
    put(lake, "2026-03-02", 1, "20260303T021500.000Z", runs=2)
    put(lake, "2026-03-02", 1, "20260303T031500.000Z", complete=False, runs=3)
    assert [item["runs"] for item in api.get(f"{REPORTS}?day=2026-03-02")["items"]] == [2]


def test_h3_a_long_report_is_paged_over_its_files(api: Api, lake: Any) -> None:
    put(lake, "2026-03-02", LINES_A_FILE + 120)
    found: list[str] = []
    query = f"{REPORTS}?day=2026-03-02&limit=200"
    sizes, cursor = [], ""
    while cursor is not None:
        page = api.get(f"{query}{f'&cursor={cursor}' if cursor else ''}")
        found += names(page)
        sizes.append(len(page["items"]))
        cursor = page["next_cursor"]
    assert sizes == [200, 200, 200, 20]
    assert found == [f"demo.flights.w{n:04}" for n in range(LINES_A_FILE + 120)]


def test_h3_without_a_day_the_newest_report_is_answered(api: Api, lake: Any) -> None:
    from datetime import UTC, datetime, timedelta

    today = datetime.fromtimestamp(ports().clock.now() / 1000, UTC).date()
    put(lake, str(today - timedelta(days=3)), 1)
    put(lake, str(today - timedelta(days=2)), 2)
    answer = api.get(REPORTS)
    assert (answer["day"], len(answer["items"])) == (str(today - timedelta(days=2)), 2)


def test_h3_a_namespace_without_runs_that_day_has_empty_report(api: Api, lake: Any) -> None:
    put(lake, "2026-03-02", 0)
    assert api.get(f"{REPORTS}?day=2026-03-02")["items"] == []


def test_h3_a_day_without_a_report_is_reported_with_what_to_do(api: Api, lake: Any) -> None:
    for query in ("?day=2026-03-02", ""):
        error = api.refused(404, "GET", REPORTS + query)
        assert (error["code"], error["field"]) == ("not_found", "day")
        assert "expected a report, got none" in error["message"] and "system.history" in error["hint"]


@pytest.mark.parametrize("query", ["?day=yesterday", "?day=2026-02-30", "?state=FAILED", "?limit=0", "?cursor=x"])
def test_h3_an_invalid_report_query_is_refused(api: Api, lake: Any, query: str) -> None:
    put(lake, "2026-03-02", 1)
    day = "" if "day" in query else "&day=2026-03-02"
    api.refused(400, "GET", f"{REPORTS}{query}{day}")


def test_h2_runs_of_a_workflow_are_found_for_any_starter(api: Api) -> None:
    for name in ("one", "two"):
        api.schedule(name, enabled=True)
        api.post(f"{APP}/schedules/{name}/run")
    api.work()
    found = api.get(f"{APP}/workflows/notify/runs")["items"]
    assert {run["schedule"] for run in found} == {"demo.flights.one", "demo.flights.two"}
    assert [run["claimed_at"] for run in found] == sorted((run["claimed_at"] for run in found), reverse=True)
    assert len(api.get(f"{APP}/workflows/notify/runs?state=SUCCEEDED&limit=1")["items"]) == 1
    assert api.get(f"{APP}/workflows/notify/runs?state=FAILED")["items"] == []
    assert api.get(f"{APP}/workflows/clean/runs")["items"] == []
    assert api.refused(404, "GET", f"{APP}/workflows/nothing/runs")["code"] == "not_found"


def test_h3_a_report_on_many_failures_with_long_reasons_is_read(api: Api, lake: Any) -> None:
    line = {"workflow": "demo.flights.w", "last_failure": "\u00fc" * 500, "last_failed_run": "r" * 250, "runs": 1}
    body = "\n".join(json.dumps({**line, "more": "x" * 1_500}, ensure_ascii=False) for _ in range(LINES_A_FILE))
    assert len(body.encode()) > 1_000_000
    root = "history_report/json/day=2026-03-02/as_of=20260303T011500.000Z/"
    lake.put_object(Bucket="lake-bucket", Key=f"{root}namespace=demo/part-0.c000.json", Body=body.encode())
    lake.put_object(Bucket="lake-bucket", Key=f"{root}_SUCCESS", Body=b"")
    assert len(api.get(f"{REPORTS}?day=2026-03-02&limit=500")["items"]) == LINES_A_FILE
