"""A wrong document is refused with the field, the expected and the given value; and nothing is stored."""

from typing import Any

import pytest

from tests.support.kinds import CONSTRAINT_TYPES, LEAF_TYPES
from tests.web.conftest import APP, KEYS, NS, WEEKDAYS, Api
from tests.web.wrong import DATASET, EMR, ONE, WORKFLOW, after, partition, refused, schedule, time

CRON = (
    "expected a 5-field cron expression such as '0 5 * * mon-fri', one of 6 fields with the second first, "
    "a macro such as @daily, '@every 1h30m', or 'R4/PT3S', got "
)
TRIGGERS = ", ".join([*LEAF_TYPES, "all", "any", "at_least"])
CONSTRAINTS = ", ".join(CONSTRAINT_TYPES)


@pytest.mark.parametrize(
    ("document", "code", "field", "message"),
    [
        (schedule(workflw="notify"), "unknown_field", "workflw", "unknown field 'workflw'"),
        (time("0 5 * * *", zon="UTC"), "unknown_field", "trigger.zon", "unknown field 'zon'"),
        ({"trigger": WEEKDAYS}, "invalid", "workflow", "expected a value, got nothing"),
        (time("every day"), "invalid", "trigger.expression", CRON + "'every day'"),
        (time("61 5 * * *"), "invalid", "trigger.expression", CRON + "'61 5 * * *'"),
        (time("0 5 * *"), "invalid", "trigger.expression", CRON + "'0 5 * *'"),
        (time("0 0 5 * * * *"), "invalid", "trigger.expression", CRON + "'0 0 5 * * * *'"),
        (time("@fortnightly"), "invalid", "trigger.expression", CRON + "'@fortnightly'"),
        (time(""), "invalid", "trigger.expression", CRON + "''"),
        (time("0 0 30 2 *"), "invalid", "trigger.expression",
         "expected a cron expression that some date matches, got '0 0 30 2 *'"),
        (time("@every 0s"), "invalid", "trigger.expression", "expected a duration such as 90s, 1h30m, 2d or PT5M, "),
        (time("@every 10ms"), "invalid", "trigger.expression", "expected an interval of at least 1s, got "),
        (time("0 5 * * *", zone="Mars/Olympus"), "invalid", "trigger.zone",
         "expected a time zone such as Europe/Paris or UTC, got 'Mars/Olympus'"),
        (time("0 5 * * *", zone="../../etc/passwd"), "invalid", "trigger.zone", "expected a time zone such as "),
        (schedule(workflow="Notify"), "invalid", "workflow", "expected a name, or a full name with dots such as "),
        (schedule(workflow="notify!"), "invalid", "workflow", "expected a name, or a full name with dots such as "),
        (schedule(workflow="a.b.c.d"), "invalid", "workflow", "expected a name, or a full name with dots such as "),
        (schedule(workflow="notfiy"), "unknown_reference", "workflow",
         "expected an existing workflow, got 'demo.flights.notfiy'"),
        (schedule(trigger=partition("flihgts")), "unknown_reference", "trigger",
         "expected an existing dataset, got 'demo.flihgts'"),
        (schedule(trigger=after("claen")), "unknown_reference", "trigger",
         "expected an existing workflow, got 'demo.flights.claen'"),
        (schedule(trigger=after("notify")), "invalid", "trigger",
         "expected a workflow whose target reports the status of its runs, got "),
        (schedule(trigger=partition("flights"), by=["hour"]), "invalid", "by",
         "expected partition keys that dataset demo.flights has (year, month, day), got 'hour'"),
        (schedule(trigger=partition("flights", by=["hour"])), "invalid", "by",
         "expected partition keys that dataset demo.flights has (year, month, day), got 'hour'"),
        (schedule(by=KEYS), "invalid", "by", "expected correlation keys only where every leaf counts events"),
        (schedule(constraints=[{"type": "concurrency", "max": 1}]), "invalid", "constraints.0",
         "expected a concurrency constraint only for a target with a lifecycle, got 'one for a sqs target"),
        (schedule(constraints=[{"type": "concurrency", "max": 0}]), "invalid", "constraints.0.max", ""),
        (schedule(constraints=[{"type": "quiet_hours"}]), "invalid", "constraints.0",
         f"expected an object whose type is one of {CONSTRAINTS}, got "),
        (schedule(trigger={"type": "moon"}), "invalid", "trigger",
         f"expected an object whose type is one of {TRIGGERS}, got {{'type': 'moon'}}"),
        (schedule(trigger="0 5 * * *"), "invalid", "trigger", f"expected an object whose type is one of {TRIGGERS}, "),
        (schedule(trigger={"type": "all", "triggers": []}), "invalid", "trigger.triggers", ""),
        (schedule(trigger={"type": "any", "triggers": [WEEKDAYS, partition("flights", count=0)]}), "invalid",
         "trigger.triggers.1.count", ""),
        (schedule(trigger={"type": "any", "triggers": [partition("flights")] * 46}), "invalid", "trigger",
         "expected at most 45 leaves in one trigger, got '46 leaves'"),
        (schedule(priority=10), "invalid", "priority", ""),
        (schedule(priority="urgent"), "invalid", "priority", ""),
        (schedule(enabled="perhaps"), "invalid", "enabled", ""),
        (schedule(tags=["a"]), "invalid", "tags", ""),
        (schedule(properties=[1]), "invalid", "properties", ""),
    ],
)  # fmt: skip
def test_a_wrong_schedule_is_not_created_and_replaces_no_other(
    standing: Api, document: dict[str, Any], code: str, field: str, message: str
) -> None:
    for path in (f"{APP}/schedules/wrong", ONE):
        error = refused(standing, 400, "PUT", path, document)
        assert (error["code"], error["field"]) == (code, field)
        assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("document", "field", "message"),
    [
        (schedule(timeout={"after": "soon"}), "timeout.after", "expected a duration such as 90s, 1h30m, 2d or PT5M, "),
        (schedule(timeout={"after": "9" * 400 + "s"}), "timeout.after", "expected a duration such as 90s, 1h30m, "),
        (schedule(timeout={"after": "99999999w"}), "timeout.after", "expected a duration such as 90s, 1h30m, "),
        (schedule(timeout={"then": "panic"}), "timeout.then", "expected 'abort' or 'run', got 'panic'"),
        (schedule(timeout=5), "timeout", "expected "),
        (time("@every 99999999999d"), "trigger.expression", "expected a duration such as "),
        (time("0 " + "5," * 1000 + "5 * * *"), "trigger.expression", "expected at most 200 characters, got '0 5,5"),
        (schedule(trigger={"type": "all", "triggers": []}), "trigger.triggers", "expected at least 1 item, got []"),
        (schedule(priority=10), "priority", "expected less than or equal to 9, got 10"),
        (schedule(priority="urgent"), "priority", "expected a whole number, got 'urgent'"),
        (schedule(priority=1.5), "priority", "expected a whole number, got 1.5"),
        (schedule(enabled="perhaps"), "enabled", "expected true or false, got 'perhaps'"),
        (schedule(properties=[1]), "properties", "expected an object, got [1]"),
        (schedule(constraints={}), "constraints", "expected a list, got {}"),
        (schedule(description=7), "description", "expected text, got 7"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_by_its_json_type(
    standing: Api, document: dict[str, Any], field: str, message: str
) -> None:
    error = refused(standing, 400, "PUT", ONE, document)
    assert error["field"] == field
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        (schedule(workflow="notfiy"), "did you mean 'demo.flights.notify'?"),
        (schedule(workflow="flights.claen"), "did you mean 'demo.flights.clean'?"),
        (schedule(trigger=partition("flihgts")), "did you mean 'demo.flights'?"),
        (schedule(trigger=after("claen")), "did you mean 'demo.flights.clean'?"),
        (schedule(trigger=partition("zzz")), "create the dataset first, or correct the name"),
        (time("0 0 30 2 *"), "no such date exists in any year; correct day of month or month"),
        (time("0 5 * * *", zone="Paris"), "use a name of the IANA time zone database"),
        (schedule(workflw="x"), "did you mean 'workflow'?"),
    ],
)
def test_a_refusal_says_what_to_do(standing: Api, document: dict[str, Any], hint: str) -> None:
    assert refused(standing, 400, "PUT", ONE, document)["hint"] == hint


@pytest.mark.parametrize(
    ("document", "way"),
    [
        ({"workflow": "clean", "trigger": after("clean")}, "demo.flights.clean -> demo.flights.clean"),
        ({"workflow": "refine", "trigger": after("clean")},
         "demo.flights.refine -> demo.flights.clean -> demo.flights.refine"),
    ],
)  # fmt: skip
def test_a_cycle_of_triggers_is_refused_with_its_path(standing: Api, document: dict[str, Any], way: str) -> None:
    error = refused(standing, 400, "PUT", f"{APP}/schedules/back", document)
    assert (error["code"], error["field"]) == ("cycle", "trigger")
    assert error["message"] == f"expected triggers without a cycle, got {way}"


# -- other documents -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "document", "field"),
    [
        (NS, {"ownr": "ops"}, "ownr"),
        (NS, {"description": 7}, "description"),
        (NS, {"tags": {"n": 7}}, "tags.n"),
        (f"{APP}/workflows/clean", {}, "target"),
        (f"{APP}/workflows/clean", {"target": {"type": "kafka"}}, "target"),
        (f"{APP}/workflows/clean", {"target": {"type": "sqs", "queue_url": "my-queue"}}, "target.queue_url"),
        (
            f"{APP}/workflows/clean",
            {"target": {"type": "emr_serverless", "entry_point": "job.py"}},
            "target.entry_point",
        ),
        (f"{APP}/workflows/clean", {"target": EMR, "retries": {"attempts": 0}}, "retries.attempts"),
        (f"{APP}/workflows/clean", {"target": EMR, "retries": {"delay": "soon"}}, "retries.delay"),
        (f"{NS}/datasets/flights", DATASET | {"prefix": "raw/orders"}, "prefix"),
        (f"{NS}/datasets/flights", DATASET | {"prefix": "/raw/"}, "prefix"),
        (f"{NS}/datasets/flights", DATASET | {"prefix": ""}, "prefix"),
        (f"{NS}/datasets/flights", DATASET | {"keys": []}, "keys"),
        (f"{NS}/datasets/flights", DATASET | {"keys": ["day", "day"]}, "keys"),
        (f"{NS}/datasets/flights", DATASET | {"keys": ["a/b"]}, "keys.0"),
        (f"{NS}/datasets/flights", DATASET | {"keys": "day"}, "keys"),
        (f"{NS}/datasets/flights", DATASET | {"ready": {"done_flag": "a/b"}}, "ready.done_flag"),
        pytest.param(f"{NS}/datasets/new", DATASET | {"prefix": "é" * 500 + "/"}, "prefix"),
        pytest.param(f"{NS}/datasets/new", DATASET | {"bucket": "My Bucket"}, "bucket"),
    ],
)
def test_an_invalid_document_is_refused_by_the_api(
    standing: Api, path: str, document: dict[str, Any], field: str
) -> None:
    error = refused(standing, 400, "PUT", path, document)
    assert error["field"] == field
    assert error["code"] in ("invalid", "unknown_field")


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({}, "partition"),
        ({"partition": {}}, "partition"),
        ({"partition": "2013-01-01"}, "partition"),
        ({"partition": {"year": "2013", "month": "1"}}, "partition"),
        ({"partition": {"year": "2013", "month": "1", "day": "1", "hour": "1"}}, "partition"),
        ({"partition": {"year": "2013", "month": "1", "day": ""}}, "partition.day"),
        ({"partition": {"year": "2013", "month": "1", "day": "1/2"}}, "partition.day"),
        ({"partition": {"year": "2013", "month": "1", "day": "1\n"}}, "partition.day"),
        ({"partition": {"year": "2013", "month": "1", "day": "1" * 201}}, "partition.day"),
        ({"partition": {"year": "2013", "month": "1", "day": 1.5}}, "partition.day"),
        ({"partition": {"year": "2013", "month": "1", "day": None}}, "partition.day"),
        ({"partition": {"year": "2013", "month": "1", "day": True}}, "partition.day"),
        ({"partition": {"year": "2013", "month": "1", "day": {"is": 1}}}, "partition.day"),
        ({"partition": {"year": "2013", "month": "1", "day": "1"}, "ready": True}, "ready"),
    ],
)
def test_a_wrong_partition_is_refused(standing: Api, content: dict[str, Any], field: str) -> None:
    error = refused(standing, 400, "POST", f"{NS}/datasets/flights/partitions", content)
    assert error["field"] == field


@pytest.mark.parametrize(
    ("path", "content", "field"),
    [
        (f"{ONE}/run", {"propertys": {}}, "propertys"),
        (f"{ONE}/run", {"properties": []}, "properties"),
        (f"{ONE}/run", {"properties": None}, "properties"),
        (f"{ONE}/enable", {"at": "noon"}, "at"),
        (f"{ONE}/disable", {"mode": "drain"}, "mode"),
    ],
)
def test_an_invalid_action_is_refused(standing: Api, path: str, content: dict[str, Any], field: str) -> None:
    assert refused(standing, 400, "POST", path, content)["field"] == field


@pytest.mark.parametrize(
    ("method", "path", "body", "missing"),
    [
        ("PUT", "/v1/namespaces/nowhere/datasets/orders", DATASET, "nowhere"),
        ("PUT", "/v1/namespaces/nowhere/apps/orders", {}, "nowhere"),
        ("PUT", f"{NS}/apps/nowhere/workflows/ship", WORKFLOW, "demo.nowhere"),
        ("PUT", f"{NS}/apps/nowhere/schedules/daily", schedule(), "demo.nowhere"),
        ("GET", "/v1/namespaces/nowhere/apps", None, "nowhere"),
        ("GET", "/v1/namespaces/nowhere/datasets", None, "nowhere"),
        ("GET", "/v1/namespaces/nowhere/jobs", None, "nowhere"),
        ("GET", "/v1/namespaces/nowhere/runs", None, "nowhere"),
        ("GET", "/v1/namespaces/nowhere/records", None, "nowhere"),
        ("GET", f"{NS}/apps/nowhere/workflows", None, "demo.nowhere"),
        ("GET", f"{NS}/apps/nowhere/schedules", None, "demo.nowhere"),
    ],
)
def test_a_document_in_a_missing_parent_is_refused(
    standing: Api, method: str, path: str, body: Any, missing: str
) -> None:
    error = refused(standing, 404, method, path, body)
    assert repr(missing) in error["message"]
    assert error["hint"].startswith("create the ")
