"""Athena as a target: what is sent, and the meaning of each answer (W22)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from chalicelib.aws.targets.athena import MAX_PAGES_FOUND, AthenaTarget
from chalicelib.core import ids
from chalicelib.core.instants import MINUTE
from chalicelib.core.results import Result
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, RunUpdate, SearchLimit, Started
from tests.support import rows
from tests.support.clock import HandClock
from tests.support.queries import MB, OUTPUT, QUERY, TARGET, Queries, Query, refused

CONTEXT = {"correlation": {"day": "1"}, "events": []}
TIMEOUT = ConnectTimeoutError(endpoint_url="https://athena.example")


def run(attempt: int = 1, target: dict[str, Any] | None = None, **fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", attempt=attempt, **fields)
    token = ids.client_token(plain.run_id, plain.attempt)
    return replace(plain, request=replace(plain.request, target=target or TARGET, client_token=token))


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def queries(clock: HandClock) -> Queries:
    return Queries(clock)


@pytest.fixture
def target(queries: Queries, clock: HandClock) -> AthenaTarget:
    return AthenaTarget(queries, clock.now, pause=lambda seconds: None)


def started(
    queries: Queries, adapter: AthenaTarget, document: dict[str, Any] | None = None, **fields: Any
) -> tuple[Run, Query]:
    answer = adapter.start(run(target=document, **fields), CONTEXT)
    assert isinstance(answer, Started)
    return run(target=document, target_id=answer.target_id, **fields), queries.queries[answer.target_id]


def test_w22_a_start_has_the_query_and_its_parameters(queries: Queries, target: AthenaTarget) -> None:
    _, made = started(queries, target, {**TARGET, "catalog": "AwsDataCatalog", "result_reuse": "2h"})
    assert made.asked == {
        "QueryString": f"{QUERY}\n-- sluice demo.flights.clean.1.a-1",
        "ExecutionParameters": ["'1'", "15"],
        "ClientRequestToken": ids.client_token("demo.flights.clean.1.a", 1),
        "WorkGroup": "sluice-target-demo",
        "QueryExecutionContext": {"Database": "lake", "Catalog": "AwsDataCatalog"},
        "ResultConfiguration": {"OutputLocation": OUTPUT},
        "ResultReuseConfiguration": {"ResultReuseByAgeConfiguration": {"Enabled": True, "MaxAgeInMinutes": 120}},
    }


def test_w22_a_query_alone_leaves_the_rest_to_its_workgroup(queries: Queries, target: AthenaTarget) -> None:
    plain = {"type": "athena", "query": "SELECT 1", "parameters": [], "workgroup": "primary"}
    _, made = started(queries, target, plain)
    assert set(made.asked) == {"QueryString", "ClientRequestToken", "WorkGroup"}


def test_w22_a_repeated_start_is_the_same_query(queries: Queries, target: AthenaTarget) -> None:
    assert target.start(run(), CONTEXT) == target.start(run(unknown_answer=True), CONTEXT)
    assert target.start(run(attempt=2), CONTEXT) != target.start(run(), CONTEXT)
    assert (len(queries.queries), set(queries.calls)) == (2, {"StartQueryExecution"})


def test_w22_a_run_without_a_value_is_never_started(queries: Queries, target: AthenaTarget) -> None:
    answer = target.start(run(), {"correlation": {}})
    assert isinstance(answer, Never)
    assert answer.why.startswith("parameters.0: expected a run whose context has correlation.day")
    assert queries.calls == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refused("TooManyRequestsException", "You have exceeded the limit for concurrent queries"), NotNow),
        (refused("ThrottlingException"), NotNow),
        (refused("InternalServerException", status=500), NoAnswer),
        (TIMEOUT, NoAnswer),
        (refused("AccessDeniedException"), Never),
        (refused("InvalidRequestException", "line 1:8: mismatched input"), Never),
    ],
)
def test_c12_each_refusal_of_a_query_has_its_meaning(
    queries: Queries, target: AthenaTarget, error: Exception, kind: type[Answer]
) -> None:
    queries.refusals = [error]
    answer = target.start(run(), CONTEXT)
    assert isinstance(answer, kind), answer
    assert not queries.queries


def test_w7_a_poll_of_a_query_gives_state_and_instants(queries: Queries, target: AthenaTarget) -> None:
    begun, made = started(queries, target)
    began = queries.clock.now()
    assert target.status(begun) is None, "it is queued"
    made.state, made.queued = "RUNNING", 400
    assert target.status(begun) == RunUpdate("RUNNING", began + 400, target_id=made.id)
    queries.clock.pass_by("2500ms")
    queries.end(made, "SUCCEEDED", scanned=300 * MB, more={"DataManifestLocation": "s3://r/m.csv"})
    output = {"query_execution_id": made.id, "output": f"{OUTPUT}{made.id}.csv", "scanned_bytes": 300 * MB}
    assert target.status(begun) == RunUpdate(
        "SUCCEEDED",
        began + 2_500,
        "",
        made.id,
        billed=(0, 0, 0, 0, 293),
        started_at=began + 400,
        result=Result({**output, "manifest": "s3://r/m.csv"}),
    )


@pytest.mark.parametrize(
    ("reason", "error", "expected", "outcome"),
    [
        (
            "TABLE_NOT_FOUND: no such table",
            {"ErrorCategory": 2, "ErrorType": 1301, "Retryable": False},
            "TABLE_NOT_FOUND: no such table (user error, fails again if repeated)",
            "failed",
        ),
        ("", {"ErrorCategory": 1, "Retryable": True, "ErrorMessage": "busy"}, "busy (system error, may", "failed"),
        ("Query timeout", {}, "Query timeout", "timed_out"),
        ("", {}, "", "failed"),
    ],
)
def test_w22_a_failed_query_has_athenas_reason(
    queries: Queries, target: AthenaTarget, reason: str, error: dict[str, Any], expected: str, outcome: str
) -> None:
    begun, made = started(queries, target)
    queries.end(made, "FAILED", reason, error=error, scanned=MB)
    update = target.status(begun)
    assert update is not None
    assert (update.state, update.outcome, update.billed) == ("FAILED", outcome, (0, 0, 0))
    assert str(update.reason).startswith(expected)


@pytest.mark.parametrize(
    ("changed", "billed"),
    [
        ({"kind": "DDL"}, (0, 0, 0)),
        ({"more": {"ResultReuseInformation": {"ReusedPreviousResult": True}}}, (0, 0, 0)),
        ({"scanned": 512 * MB, "more": {"DpuCount": 24.0}}, ()),
        ({}, (0, 0, 0, 0, 10)),
    ],
)
def test_h1_what_athena_does_not_bill_costs_nothing(
    queries: Queries, target: AthenaTarget, changed: dict[str, Any], billed: tuple[int, ...]
) -> None:
    begun, made = started(queries, target)
    queries.end(made, "SUCCEEDED", **changed)
    update = target.status(begun)
    assert update is not None
    assert update.billed == billed


def test_w7_queries_are_asked_about_by_fifty(queries: Queries, clock: HandClock) -> None:
    pauses: list[float] = []
    target = AthenaTarget(queries, clock.now, pauses.append)
    begun = [started(queries, target, attempt=number)[0] for number in range(1, 61)]
    queries.calls.clear()
    assert target.status_many([*begun, run()]) == [None] * 61
    assert (queries.calls, pauses) == (["BatchGetQueryExecution"] * 2, [0.1])


def test_w1_a_query_that_athena_does_not_know_is_lost(queries: Queries, target: AthenaTarget) -> None:
    begun, made = started(queries, target, start_requested_at=queries.clock.now())
    made.shown = False
    assert target.status(begun) is None, "it may be shown later"
    queries.clock.wait_until(queries.clock.now() + 2 * MINUTE)
    update = target.status(begun)
    assert update is not None
    assert (update.state, update.outcome) == ("FAILED", "lost")
    assert update.reason == "Athena knows no such query execution any more"


def test_w1_a_query_left_out_of_a_batch_is_not_lost(queries: Queries, target: AthenaTarget, clock: HandClock) -> None:
    class Hiding(Queries):
        def batch_get_query_execution(self, **asked: Any) -> dict[str, Any]:
            return {"QueryExecutions": [], "UnprocessedQueryExecutionIds": []}

    hiding = Hiding(clock)
    target = AthenaTarget(hiding, clock.now, pause=lambda seconds: None)
    begun, _ = started(hiding, target)
    clock.wait_until(clock.now() + 5 * MINUTE)
    assert target.status(begun) is None


def test_w10_a_query_is_found_by_the_end_of_its_text(queries: Queries, target: AthenaTarget) -> None:
    begun, made = started(queries, target, start_requested_at=queries.clock.now())
    for number in range(2, 130):
        started(queries, target, attempt=number)
    queries.calls.clear()
    assert target.find(replace(begun, target_id=None)) == made.id
    assert "StartQueryExecution" not in queries.calls
    assert queries.calls.count("ListQueryExecutions") == 3
    assert target.find(run(attempt=200, start_requested_at=queries.clock.now())) is None


def test_w10_a_search_ends_at_queries_before_the_first_call(queries: Queries, target: AthenaTarget) -> None:
    for number in range(2, 202):
        started(queries, target, attempt=number)
    queries.clock.wait_until(queries.clock.now() + 10 * MINUTE)
    queries.calls.clear()
    assert target.find(run(start_requested_at=queries.clock.now())) is None
    assert queries.calls == ["ListQueryExecutions", "BatchGetQueryExecution"]


def test_w10_a_search_beyond_its_pages_is_an_error(clock: HandClock) -> None:
    class Endless(Queries):
        def list_query_executions(self, **asked: Any) -> dict[str, Any]:
            self.calls.append("ListQueryExecutions")
            return {"QueryExecutionIds": [], "NextToken": "more"}

    endless = Endless(clock)
    target = AthenaTarget(endless, clock.now, pause=lambda seconds: None)
    with pytest.raises(SearchLimit, match="expected the query within 40 pages of workgroup sluice-target-demo"):
        target.find(run())
    assert len(endless.calls) == MAX_PAGES_FOUND


def test_w10_a_deleted_workgroup_has_no_queries(queries: Queries, target: AthenaTarget) -> None:
    begun, _ = started(queries, target, start_requested_at=queries.clock.now())
    queries.clock.pass_by("5m")
    gone = refused("InvalidRequestException", "WorkGroup sluice-target-demo is not found.")
    queries.refusals = [gone]
    assert target.find(replace(begun, target_id=None)) is None
    queries.refusals = [gone, gone]
    update = target.status(begun)
    assert update is not None and update.outcome == "lost"
    queries.refusals = [gone]
    target.cancel(begun)
    queries.refusals = [refused("InvalidRequestException", "MaxResults is too large")]
    with pytest.raises(Exception, match="MaxResults"):
        target.find(replace(begun, target_id=None))


def test_w10_a_statement_without_a_mark_is_not_searched(queries: Queries, target: AthenaTarget) -> None:
    ddl = {**TARGET, "query": "MSCK REPAIR TABLE t", "parameters": []}
    begun, made = started(queries, target, ddl)
    assert made.text == "MSCK REPAIR TABLE t"
    queries.calls.clear()
    assert (target.find(begun), queries.calls) == (None, [])


def test_w6_a_query_is_stopped_once(queries: Queries, target: AthenaTarget) -> None:
    begun, made = started(queries, target)
    target.cancel(begun)
    target.cancel(begun)
    assert (made.state, made.reason) == ("CANCELLED", "Query cancelled by user")
    made.shown = False
    target.cancel(begun)
    queries.refusals = [refused("AccessDeniedException")]
    with pytest.raises(Exception, match="AccessDenied"):
        target.cancel(begun)


def test_w7_a_throttled_poll_of_a_query_is_repeated_later(queries: Queries, target: AthenaTarget) -> None:
    begun, made = started(queries, target)
    made.state = "RUNNING"
    queries.refusals = [refused("ThrottlingException")]
    assert target.status(begun) is None
    queries.refusals = [TIMEOUT]
    assert target.status(begun) is not None, "a poll without an answer is asked once more"
