"""The load of something outside Sluice: its documents, its words, what is asked, and the meaning of a reply (C6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.access.allowed import Named
from chalicelib.core.constraints.constraint import MeterQuestion, PoolQuestion, Use
from chalicelib.core.constraints.load import MAX_WHY, Load, LoadReading
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND
from chalicelib.core.jobs.check import Launch, Wait, decide
from chalicelib.core.names import Names
from chalicelib.core.targets.answers import Never, NoAnswer
from tests.core.builders import NAME, NOON, end_of, facts, met, schedule

METRIC: dict[str, Any] = {"namespace": "AWS/RDS", "metric": "CPUUtilization"}
CPU: dict[str, Any] = {"cloudwatch": METRIC}
POOL: dict[str, Any] = {"pool": "spark"}
EMR: dict[str, Any] = {"emr_application": "00f1abcdefg"}
SUBNET: dict[str, Any] = {"subnet": "subnet-0a1b2c3d"}
NAMES = Names("demo", "flights", "UTC", NOON)


def load(of: dict[str, Any] = CPU, **fields: Any) -> Any:
    bound = {} if {"below", "at_least"} & fields.keys() else {"below": 0.7}
    [made] = schedule(constraints=[{"type": "load", "of": of, **bound, **fields}]).constraints
    return made


def refused(document: dict[str, Any]) -> SluiceError:
    with pytest.raises(ValidationError) as caught:
        schedule(constraints=[{"type": "load", **document}])
    return errors.from_validation(caught.value)


# -- documents -----------------------------------------------------------------------------------------------------


def test_c6_a_load_waits_and_is_measured_each_minute_by_default() -> None:
    made = load()
    assert (made.on_unmet, made.span, made.below, made.at_least) == ("wait", MINUTE, 0.7, None)
    metric = made.of.cloudwatch
    assert (metric.statistic, metric.period, metric.dimensions) == ("Average", 60, {})


@pytest.mark.parametrize("recheck", ["10s", "90s", "1d", "24h"])
def test_c6_the_pause_between_measurements_is_10s_to_1d(recheck: str) -> None:
    assert 10 * SECOND <= load(recheck=recheck).span <= DAY


@pytest.mark.parametrize(
    ("document", "field", "message"),
    [
        ({"of": CPU}, "", "expected either below or at_least, got 'neither'"),
        ({"of": CPU, "below": 1, "at_least": 0}, "", "expected either below or at_least, got 'both'"),
        ({"of": CPU, "below": 0, "at_least": 0}, "", "expected either below or at_least, got 'both'"),
        ({"of": {}, "below": 1}, "of", "expected one of pool, emr_application, cloudwatch and subnet, got 'none'"),
        (
            {"of": SUBNET | POOL, "below": 1},
            "of",
            "expected one of pool, emr_application, cloudwatch and subnet, got ['pool', 'subnet']",
        ),
        (
            {"of": CPU, "below": 1, "recheck": "9999ms"},
            "recheck",
            "expected a pause between two measurements from 10s to 1d, got '9999ms'",
        ),
        (
            {"of": CPU, "below": 1, "recheck": "86401s"},
            "recheck",
            "expected a pause between two measurements from 10s to 1d, got '86401s'",
        ),
    ],
)
def test_c6_a_contradictory_load_is_refused_with_a_message(document: dict[str, Any], field: str, message: str) -> None:
    error = refused(document)
    assert (error.code, error.field, error.message) == ("invalid", f"constraints.0.{field}".removesuffix("."), message)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"of": {"pool": "a.b.c.d"}}, "of.pool"),
        ({"of": {"emr_application": "Not An Id"}}, "of.emr_application"),
        ({"of": {"subnet": "vpc-0a1b2c3d"}}, "of.subnet"),
        ({"of": {"cloudwatch": METRIC | {"period": 7}}}, "of.cloudwatch.period"),
        ({"of": {"cloudwatch": METRIC | {"statistic": "Median"}}}, "of.cloudwatch.statistic"),
        ({"of": {"cloudwatch": METRIC | {"metric": ""}}}, "of.cloudwatch.metric"),
        ({"recheck": "soon"}, "recheck"),
        ({"on_unmet": "cancel_other"}, "on_unmet"),
    ],
)
def test_c6_an_invalid_field_of_a_load_is_named(fields: dict[str, Any], field: str) -> None:
    assert refused({"of": CPU, "below": 1, **fields}).field == f"constraints.0.{field}"


# -- words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "bound", "words"),
    [
        (CPU, {"below": 0.7}, "CPUUtilization of AWS/RDS is below 0.7, else wait"),
        (SUBNET, {"at_least": 50}, "the free addresses of subnet-0a1b2c3d is at least 50, else wait"),
        (POOL, {"below": 0}, "the share of pool spark in use is below 0, else wait"),
        (EMR, {"below": 1}, "the capacity in use of EMR application 00f1abcdefg is below 1, else wait"),
        (SUBNET, {"at_least": 0}, "the free addresses of subnet-0a1b2c3d is at least 0, else wait"),
        (CPU, {"below": 1e6, "on_unmet": "abort"}, "CPUUtilization of AWS/RDS is below 1e+06, else abort"),
    ],
)
def test_c14_a_load_says_what_is_measured_and_its_bound(of: dict[str, Any], bound: dict[str, Any], words: str) -> None:
    assert load(of, **bound).rule == words


# -- names and references ------------------------------------------------------------------------------------------


def test_c6_a_pool_without_a_namespace_is_of_the_schedules_own() -> None:
    assert load(POOL).resolve(NAMES).of.pool == "demo.spark"
    assert load({"pool": "shared.spark"}).resolve(NAMES).of.pool == "shared.spark"
    assert load(POOL, at_least=2, recheck="5m").resolve(NAMES) == load({"pool": "demo.spark"}, at_least=2, recheck="5m")
    assert load(SUBNET).resolve(NAMES) == load(SUBNET)


@pytest.mark.parametrize(
    ("of", "uses"),
    [
        (POOL, [Use("pool", "spark", "of.pool")]),
        (EMR, [Use("application", "00f1abcdefg", "of.emr_application")]),
        (CPU, [Use("metric", "AWS/RDS/CPUUtilization", "of.cloudwatch")]),
        (SUBNET, []),
    ],
)
def test_c6_a_put_checks_what_a_load_refers_to(of: dict[str, Any], uses: list[Use]) -> None:
    assert list(load(of).references()) == uses


# -- questions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "asked"),
    [
        (POOL, PoolQuestion("spark")),
        (EMR, MeterQuestion(EMR, (Named("applications", "00f1abcdefg", "of.emr_application"),))),
        (SUBNET, MeterQuestion(SUBNET, ())),
        (
            {"cloudwatch": METRIC | {"dimensions": {"DB": "lake"}, "statistic": "Maximum", "period": 300}},
            MeterQuestion(
                {"cloudwatch": METRIC | {"dimensions": {"DB": "lake"}, "statistic": "Maximum", "period": 300}},
                (Named("metrics", "AWS/RDS/CPUUtilization", "of.cloudwatch"),),
            ),
        ),
    ],
)
def test_c6_each_measurement_asks_its_own_source(of: dict[str, Any], asked: Any) -> None:
    """An allow-list sees the application or the metric. The question has no field that the document left out."""
    assert load(of).question(met(), NAME, {}, NOON) == asked


# -- replies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "value"), [(0.5, "0.5"), (0.0, "0"), (1234567.0, "1.23457e+06"), (2 / 3, "0.666667"), (b"12.5", "12.5")]
)
def test_c6_a_value_is_kept_as_text_until_the_next_measurement(reply: Any, value: str) -> None:
    made = load(recheck="5m")
    assert made.read(reply, None, NOON) == LoadReading(value, NOON, NOON + 5 * MINUTE)
    failing = made.read(NoAnswer("throttled"), None, NOON)
    assert made.read(reply, failing, NOON).failures == 0, "a value ends a series of failures"


@pytest.mark.parametrize("refusal", [NoAnswer, Never])
def test_c6_a_failing_measurement_backs_off_until_it_answers(refusal: Any) -> None:
    made, said, pauses = load(), None, []
    for number in range(1, 10):
        said = made.read(refusal("no data"), said, NOON)
        assert (said.value, said.why, said.at, said.failures) == (None, "no data", NOON, number)
        pauses.append((said.until - NOON) // MINUTE)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    slow = load(recheck="2h").read(refusal("no data"), said, NOON)
    assert slow.until == NOON + 2 * HOUR, "never sooner than the schedule says"


def test_c6_the_reason_of_a_failed_measurement_is_cut() -> None:
    assert MAX_WHY == 300
    assert load().read(NoAnswer("x" * 301), None, NOON).why == "x" * 300


# -- judgement -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "value", "holds"),
    [
        ({"below": 0.7}, 0.69, True),
        ({"below": 0.7}, 0.7, False),
        ({"below": 0}, -1, True),
        ({"below": 0}, 0, False),
        ({"at_least": 50}, 50, True),
        ({"at_least": 50}, 49.9, False),
        ({"at_least": 0}, 0, True),
        ({"at_least": 0}, -0.1, False),
    ],
)
def test_c6_a_value_is_below_its_bound_or_at_least_at_it(bound: dict[str, Any], value: float, holds: bool) -> None:
    made = load(**bound)
    assert made.holds(value) is holds
    document = {"type": "load", "of": CPU, **bound}
    decision = decide(
        met(), facts(schedule=schedule(constraints=[document]), loads={"0": made.read(value, None, NOON)}), NOON
    )
    assert isinstance(decision, Launch if holds else Wait)


@pytest.mark.parametrize(
    "bound",
    [
        {"below": 0.7},
        {"below": 0},
        {"below": 1e17},
        {"below": -1e300},
        {"at_least": 50},
        {"at_least": 0},
        {"at_least": -3},
        {"at_least": 1e17},
    ],
)
def test_c6_an_assumed_reading_meets_its_bound_or_misses_it(bound: dict[str, Any]) -> None:
    """Sluice measures only where these two readings lead to different decisions."""
    made: Load = load(**bound)
    for wanted in (True, False):
        assumed = made.assume(wanted, NOON)
        assert assumed.value is not None
        assert made.holds(float(assumed.value)) is wanted
        assert (assumed.at, assumed.until, assumed.why, assumed.failures) == (NOON, NOON, "", 0)


def test_c6_an_unmet_load_aborts_if_the_schedule_says_so() -> None:
    strict = schedule(constraints=[{"type": "load", "of": CPU, "below": 0.7, "on_unmet": "abort"}])
    reading = load().read(0.9, None, NOON)
    assert end_of(decide(met(), facts(schedule=strict, loads={"0": reading}), NOON)) == "ABORTED"
    failed = load().read(NoAnswer("throttled"), None, NOON)
    assert isinstance(decide(met(), facts(schedule=strict, loads={"0": failed}), NOON), Wait)


# -- what a job keeps ----------------------------------------------------------------------------------------------


def test_c6_a_job_keeps_the_last_reading_of_each_of_its_loads() -> None:
    first, second = load().read(0.5, None, NOON), load().read(NoAnswer("throttled"), None, NOON + 1)
    before = met(measured={"0": first.kept(), "1": first.kept()})
    after = Load.with_answers(before, {"1": second})
    assert after == replace(before, measured={"0": first.kept(), "1": second.kept()})
    assert (Load.last_answer(after, "0"), Load.last_answer(after, "1")) == (first, second)
    assert Load.last_answer(after, "2") is None
    assert first.kept() == {"value": "0.5", "at": NOON, "until": NOON + MINUTE, "why": "", "failures": 0}


def test_c6_the_log_has_the_values_of_a_check_by_number() -> None:
    answers = {"0": load().read(0.5, None, NOON), "1": load().read(NoAnswer("throttled"), None, NOON)}
    assert Load.logged(answers) == ("measured", {"values": {"0": "0.5", "1": None}})
