"""Athena as a target: its document, its parameters, and the meaning of its events (W22)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.access.allowed import Named
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.targets.athena import (
    MAX_PARAMETER,
    MAX_QUERY,
    PRICES,
    AthenaTarget,
    has_mark,
    literal,
    parameters_of,
    text_of,
    usage_of,
)
from chalicelib.core.targets.bills import cost_usd
from chalicelib.core.targets.registry import of_event
from chalicelib.core.targets.target import NoLog
from tests.core.targets.test_targets import ADAPTER, refusal
from tests.support import rows
from tests.support.clock import NOON
from tests.support.queries import OUTPUT, QUERY, TARGET, Query, event_of

MIB = 1_048_576


def run(query: str = QUERY, **fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", **fields)
    return replace(plain, request=replace(plain.request, target={**TARGET, "query": query}))


def test_w22_a_query_with_its_parameters_is_accepted() -> None:
    made = ADAPTER.validate_python({**TARGET, "result_reuse": "1h", "poll_every": "5m", "catalog": "AwsDataCatalog"})
    assert (made.type, made.parameters, made.has_lifecycle) == ("athena", ("{{correlation.day}}", 15), True)
    assert ADAPTER.validate_python({"type": "athena", "query": "SELECT 1"}).workgroup == "primary"


@pytest.mark.parametrize(
    ("changed", "where", "expected"),
    [
        (
            {"query": "SELECT * FROM t WHERE day = '{{correlation.day}}'", "parameters": []},
            "query",
            'expected a query without placeholders, got "{{correlation.day}}\'"',
        ),
        ({"parameters": ["{{correlation.day}}"]}, "parameters", "expected as many parameters as the query has ? (2)"),
        ({"parameters": ["{{day}}", 1]}, "parameters.0", "expected a path such as {{correlation.day}}, got '{{day}}'"),
        ({"parameters": [["a"], 1]}, "parameters.0", "expected a text, a number, true or false, got ['a']"),
        ({"parameters": ["x" * 1_023, 1]}, "parameters.0", "expected a value of at most 1,024 characters"),
        ({"parameters": [float("inf"), 1]}, "parameters.0", "expected a text, a number, true or false, got inf"),
        ({"query": "SELECT 1" + " " * MAX_QUERY}, "query", "expected a query of at most 100,000 bytes"),
        ({"query": ""}, "query", "expected"),
        ({"workgroup": "a b"}, "workgroup", "expected text that matches"),
        ({"output": "s3://results/*/"}, "output", "expected text that matches"),
        ({"output": "results/daily/"}, "output", "expected text that matches"),
        ({"result_reuse": "8d"}, "result_reuse", "expected an age from 1m to 7d, got '8d'"),
        ({"poll_every": "30s"}, "poll_every", "expected an interval from 1m to 1d, got '30s'"),
    ],
)
def test_w22_a_wrong_athena_target_is_refused(changed: dict[str, Any], where: str, expected: str) -> None:
    field, message = refusal(**{**TARGET, **changed})
    assert (field, message[: len(expected)]) == (where, expected)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT '?' FROM t WHERE a = ? -- really?",
        'SELECT "what?" FROM t /* why?\n? */ WHERE b = ?',
        "SELECT 'it''s ?' FROM `odd?` WHERE c = ?",
        "EXECUTE prepared_by_hand",
    ],
)
def test_w22_a_question_mark_in_a_text_is_no_parameter(query: str) -> None:
    assert ADAPTER.validate_python({"type": "athena", "query": query, "parameters": ["a"]}).parameters == ("a",)


def test_w22_a_query_names_its_workgroup_and_its_bucket() -> None:
    made = ADAPTER.validate_python({**TARGET, "catalog": "sales"}).model_dump(mode="json")
    assert list(AthenaTarget.named(made)) == [
        Named("engines", "arn:*:athena:*:*:workgroup/sluice-target-demo", "workgroup", "sluice-target-demo"),
        Named("engines", "arn:*:athena:*:*:datacatalog/sales", "catalog", "sales"),
        Named("buckets", OUTPUT, "output"),
    ]
    [alone] = AthenaTarget.named({"workgroup": "primary", "catalog": "AwsDataCatalog", "output": None})
    assert alone.value.endswith(":workgroup/primary")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", "'1'"),
        ("", "''"),
        ("O'Hare", "'O''Hare'"),
        ("x' OR '1'='1", "'x'' OR ''1''=''1'"),
        ("back\\slash", "'back\\slash'"),
        (7, "7"),
        (-1.5, "-1.5"),
        (True, "true"),
    ],
)
def test_w22_a_parameter_is_one_literal_of_sql(value: Any, expected: str) -> None:
    assert literal(value, "parameters.0") == expected


def test_w22_parameters_have_the_values_of_the_context() -> None:
    target = {**TARGET, "parameters": ["{{correlation.day}}", "{{properties.least}}", "of {{correlation.day}}"]}
    context = {"correlation": {"day": "x' --"}, "properties": {"least": 15}}
    assert parameters_of(target, context) == ["'x'' --'", "15", "'of x'' --'"]


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        (None, "expected a run whose context has correlation.day, got one without it"),
        (["1"], "expected a text, a number, true or false, got ['1']"),
        ("1" * MAX_PARAMETER, "expected a value of at most 1,024 characters as a literal, got '1,026'"),
    ],
)
def test_w22_a_parameter_without_a_literal_is_an_error(day: Any, expected: str) -> None:
    with pytest.raises(SluiceError) as failure:
        parameters_of(TARGET, {"correlation": {"day": day}})
    assert (failure.value.field, failure.value.message) == ("parameters.0", expected)


@pytest.mark.parametrize("end", ["", ";", " ;\n\n", "\n"])
def test_w22_a_query_ends_with_the_name_of_its_run(end: str) -> None:
    assert text_of(run(f"SELECT 1{end}")) == "SELECT 1\n-- sluice demo.flights.clean.1.a-1"


@pytest.mark.parametrize(
    "query",
    [
        "ALTER TABLE t RENAME TO u",
        "  msck repair table t",
        "Drop table t",
        "VACUUM t",
        "-- select\n-- note\nALTER TABLE t RENAME TO u",
        "/* select\n */ /**/-- note\n  optimize t",
    ],
)
def test_w22_a_statement_that_bears_no_comment_gets_none(query: str) -> None:
    assert (has_mark(query), text_of(run(query))) == (False, query)
    assert has_mark("SELECT * FROM alter_ego")
    assert has_mark("-- drop\nSELECT 1 /* drop */ -- drop")
    assert has_mark("/* a */ " * 5_000 + "SELECT 1"), "in no more than milliseconds"


@pytest.mark.parametrize(
    ("state", "is_dml", "scanned", "gb", "dollars"),
    [
        ("SUCCEEDED", True, 1_024 * 1_024 * MIB, 1_024, 5.0),
        ("SUCCEEDED", True, 10 * MIB + 1, 11 / 1_024, 0.000052),
        ("SUCCEEDED", True, 1, 10 / 1_024, 0.000048),
        ("SUCCEEDED", True, 0, 10 / 1_024, 0.000048),
        ("SUCCEEDED", False, 0, 0, 0),
        ("CANCELLED", True, 512 * MIB, 0.5, 0.002441),
        ("CANCELLED", True, 0, 0, 0),
        ("FAILED", True, 512 * MIB, 0, 0),
    ],
)
def test_h1_a_query_costs_what_it_has_scanned(
    state: Any, is_dml: bool, scanned: int, gb: float, dollars: float
) -> None:
    usage = usage_of(state, is_dml, scanned)
    assert usage.scanned_gb == gb
    assert cost_usd(usage, PRICES) == pytest.approx(dollars, abs=1e-6)


@pytest.mark.parametrize("state", ["RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"])
def test_w22_an_event_of_a_query_moves_its_run(state: Any) -> None:
    event = event_of(Query("q-1", {"WorkGroup": "w"}, NOON, state), NOON)
    change = of_event(event).read_event(event)
    assert (change.kind, change.target_id, change.state, change.complete) == ("athena", "q-1", state, False)
    assert change.update == RunUpdate(state, NOON, target_id="q-1")


def test_w22_a_query_that_is_queued_again_changes_nothing() -> None:
    event = event_of(Query("q-1", {"WorkGroup": "w"}, NOON, "QUEUED"), NOON, before="RUNNING")
    assert of_event(event).read_event(event).update is None


def test_w15_the_log_of_a_query_names_the_command() -> None:
    found = AthenaTarget.log_of(run(target_id="q-1"))
    assert isinstance(found, NoLog)
    assert found.why.endswith("aws athena get-query-execution --query-execution-id q-1")
    assert AthenaTarget.log_of(run()) == NoLog("it has no query execution yet", "it never began there")
