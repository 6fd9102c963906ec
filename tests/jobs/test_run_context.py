from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import sluice_job
from pyspark.sql import SparkSession
from sluice_job import ContextError, Day, RunContext

ROOT = Path(__file__).parents[2]
jsonschema = importlib.import_module("jsonschema")  # the package has no types
SCHEMA = json.loads((ROOT / "docs" / "run-context.schema.json").read_text())

DAY = {"year": "2013", "month": "1", "day": "2"}
ENDED = {"kind": "program_status", "id": "e2", "instant": 5, "workflow": "demo.flights.clean_flights"}
ENDED |= {"run_id": "r0", "status": "COMPLETED", "partition": DAY}
TICK = {"kind": "time", "id": "t", "instant": 5}


def parse(document: dict[str, Any], manifest: str = "") -> RunContext:
    return RunContext.parse(document, lambda uri: manifest)


def valid(document: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(SCHEMA).is_valid(document))


def test_one_schema_accepts_the_whole_document(document: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    now = {"kind": "run_now", "id": "n", "instant": 5}
    whole = document(properties={"a": [1, {"b": None}]}, events=[*document()["events"], ENDED, TICK, now])

    assert valid(whole)
    assert valid(document(correlation=None, events=[], manifest="s3://c/m.jsonl", upstream=whole))


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": 2},
        {"attempt": 0},
        {"attempt": "1"},
        {"logical_start_time": 1.5},
        {"correlation": {"year": 2013}},
        {"manifest": "s3://c/m.jsonl"},  # with events inline as well
        {"events": [TICK | {"kind": "tick"}]},
        {"events": [TICK | {"dataset": "d"}]},
        {"events": [ENDED | {"status": "SUCCEEDED"}]},
        {"upstream": {}},
        {"user": "me"},
    ],
)
def test_the_schema_refuses_an_invalid_context(document: Any, changes: dict[str, Any]) -> None:
    assert not valid(document(**changes))


@pytest.mark.spark
def test_the_context_and_its_manifest_are_read_through_spark(
    spark: SparkSession, tmp_path: Path, document: Any
) -> None:
    manifest = tmp_path / "m.jsonl"
    events = [document()["events"][0] | {"id": f"e{i}", "path": f"s3://lake/{i}"} for i in range(3)]
    manifest.write_text("".join(json.dumps(event) + "\n" for event in events))
    uri = tmp_path / "r1.json"
    uri.write_text(json.dumps(document(events=[], manifest=str(manifest), upstream=document(run_id="r0"))))

    context = RunContext.load(spark, str(uri))

    assert [event.id for event in context.partitions("demo.flights_raw")] == ["e0", "e1", "e2"]
    assert context.upstream is not None and context.upstream.run_id == "r0"
    assert (context.attempt, context.logical_start_time) == (1, 1_700_000_000_123)


def test_w18_a_result_is_written_through_spark(
    spark: SparkSession, tmp_path: Path, document: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the file system of Hadoop, as on EMR. A later result replaces an earlier one."""
    monkeypatch.delenv("SLUICE_RESULT_FILE", raising=False)
    uri, written = tmp_path / "r1.json", tmp_path / "results" / "r1-1.json"
    uri.write_text(json.dumps(document(result_uri=str(written))))
    RunContext.load(spark, str(uri))
    for value in ({"files": ["a", "b"]}, {"files": ["é"], "rows": 3}):
        sluice_job.result(value)
        assert json.loads(written.read_text()) == value

    (tmp_path / "file").write_text("x")
    uri.write_text(json.dumps(document(result_uri=str(tmp_path / "file" / "below.json"))))
    RunContext.load(spark, str(uri))
    with pytest.raises(sluice_job.ResultError, match=r"expected to write .*below\.json, got .*allow s3:PutObject"):
        sluice_job.result({"rows": 1})


def test_partitions_and_path_depend_on_the_dataset(document: Any) -> None:
    flights = document()["events"][0]
    weather = flights | {"dataset": "demo.weather_raw", "path": "s3://lake/w"}
    context = parse(document(events=[flights, weather, TICK]))

    assert [event.dataset for event in context.partitions()] == ["demo.flights_raw", "demo.weather_raw"]
    assert context.path("weather_raw") == "s3://lake/w/"
    with pytest.raises(ContextError, match=r"expected one partition of raw among its events, got none"):
        context.path("raw")
    with pytest.raises(ContextError, match=r"got s3://lake/raw/.*, s3://lake/w/; name the input's root"):
        context.path()


@pytest.mark.parametrize(
    ("changes", "day"),
    [
        ({}, Day(2013, 1, 1)),
        ({"correlation": None, "events": [TICK, ENDED]}, Day(2013, 1, 2)),
        ({"correlation": {"region": "eu"}, "events": [ENDED | {"partition": DAY | {"hour": "5"}}]}, Day(2013, 1, 2)),
        ({"correlation": {"year": "2013", "month": "01", "day": "03"}}, Day(2013, 1, 3)),
    ],
)
def test_the_day_is_that_of_the_correlation_or_of_the_events(document: Any, changes: Any, day: Day) -> None:
    assert parse(document(**changes)).day() == day


def test_the_day_is_searched_upstream_at_any_depth(document: Any) -> None:
    middle = document(run_id="r1", correlation=None, events=[ENDED | {"partition": None}], upstream=document())

    assert parse(document(correlation=None, events=[TICK], upstream=middle)).day() == Day(2013, 1, 1)


def test_a_run_without_exactly_one_day_says_what_was_found(document: Any) -> None:
    first = document()["events"][0]
    hourly = document(run_id="r0", correlation={"hour": "5"}, events=[])
    nothing = document(correlation=None, events=[TICK], upstream=hourly)
    several = document(correlation=None, events=[first, first | {"partition": DAY}], upstream=document())

    with pytest.raises(ContextError, match=r"got none: run r1 has correlation -, .*upstream run r0 .*hour=5"):
        parse(nothing).day()
    with pytest.raises(ContextError, match=r"got 2 days: .*demo.flights_raw year=2013/month=1/day=1;.*day=2.*give the"):
        parse(several).day()
    with pytest.raises(ContextError, match=r"expected a calendar day, got year=2013/month=2/day=30"):
        parse(document(correlation={"year": "2013", "month": "2", "day": "30"})).day()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 2}, "expected schema 1, got 2; use the sluice_job.py that belongs"),
        ({"run_id": None}, "expected run_id to be a text, got None"),
        ({"attempt": True}, "expected attempt to be an integer, got True"),
        ({"events": {}}, "expected events to be a list, got {}"),
        ({"correlation": {"year": 2013}}, "expected texts as values of correlation"),
        ({"events": [TICK, 7]}, r"events\[1\]: expected a JSON object, got 7"),
        ({"events": [TICK | {"kind": "partition"}]}, r"events\[0\]: expected dataset .* no such field"),
        ({"upstream": {"schema": 1}}, "upstream: expected manifest to be a text or null, got no such field"),
    ],
)
def test_a_malformed_context_says_what_was_expected_and_got(document: Any, changes: Any, message: str) -> None:
    with pytest.raises(ContextError, match=message):
        parse(document(**changes))


def test_a_malformed_manifest_row_is_named(document: Any) -> None:
    with pytest.raises(ContextError, match=r"s3://c/m.jsonl:2: expected JSON, got '\{'"):
        parse(document(events=[], manifest="s3://c/m.jsonl"), manifest=json.dumps(TICK) + "\n{\n")


def test_unknown_fields_and_kinds_are_ignored(document: Any) -> None:
    custom = {"kind": "custom", "id": "c", "instant": 5, "payload": {}}

    assert parse(document(events=[custom], colour="blue")).events[0].kind == "custom"


@pytest.mark.spark
def test_an_unreadable_context_is_reported_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("<html>")

    with pytest.raises(ContextError, match=r"expected to read .*none.json, got .*does not exist.*; check that the"):
        RunContext.load(spark, str(tmp_path / "none.json"))
    with pytest.raises(ContextError, match=r"bad.json: expected JSON, got '<html>'"):
        RunContext.load(spark, str(tmp_path / "bad.json"))


def test_a_property_that_is_no_path_is_refused_naming_the_others(document: Any) -> None:
    context = parse(document(properties={"output": "s3://lake/out", "n": 3}))

    assert context.root("output") == "s3://lake/out/"
    assert context.root("rejected", default="s3://lake/rejected") == "s3://lake/rejected/"
    with pytest.raises(ContextError, match=r"expected the property 'n' to be a path .*got 3; .*\['n', 'output'\]"):
        context.root("n")
