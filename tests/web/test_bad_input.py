"""What is wrong is refused, in words that name the field, what was expected and what came; and nothing is stored."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app import app
from tests.web.conftest import APP, KEYS, NS, WEEKDAYS, Api, installation, settle_in

ONE = f"{APP}/schedules/nightly"
CHAIN = {"workflow": "clean", "enabled": True, "trigger": {"type": "program_status", "workflow": "refine"}}
DATASET = {"bucket": "lake", "prefix": "raw/orders/", "keys": ["day"]}
WORKFLOW = {"target": {"type": "sqs", "queue_url": "https://sqs.example/target"}}
EMR = {"type": "emr_serverless", "entry_point": "s3://code/refine.py"}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """Shared, since nothing is stored; `nightly` is a living schedule, and `chained` starts `clean` after `refine`."""
    with installation() as standing:
        settle_in(standing)
        standing.put(f"{APP}/workflows/refine", {"target": EMR})
        standing.schedule("nightly", enabled=True)
        standing.put(f"{APP}/schedules/chained", CHAIN)
        yield standing


def refused(api: Api, status: int, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
    """The error of a request that must leave every table as it was."""
    before = api.everything()
    error = api.refused(status, method, path, body, **headers)
    assert api.everything() == before
    assert error["message"]
    return error


def schedule(**changed: Any) -> dict[str, Any]:
    return {"workflow": "notify", "trigger": WEEKDAYS} | changed


def time(expression: Any, **more: Any) -> dict[str, Any]:
    return schedule(trigger={"type": "time", "expression": expression, **more})


def partition(dataset: str, **more: Any) -> dict[str, Any]:
    return {"type": "partition", "dataset": dataset, **more}


def after(workflow: str) -> dict[str, Any]:
    return {"type": "program_status", "workflow": workflow}


def nested(depth: int) -> dict[str, Any]:
    inner = partition("flights")
    for _ in range(depth):
        inner = {"type": "all", "triggers": [inner]}
    return inner


# -- schedules -------------------------------------------------------------------------------------------------------

CRON = "expected a 5-field cron expression such as '0 5 * * mon-fri', a macro such as @daily, or '@every 1h30m', got "


@pytest.mark.parametrize(
    ("document", "code", "field", "message"),
    [
        (schedule(workflw="notify"), "unknown_field", "workflw", "unknown field 'workflw'"),
        (time("0 5 * * *", zon="UTC"), "unknown_field", "trigger.zon", "unknown field 'zon'"),
        ({"trigger": WEEKDAYS}, "invalid", "workflow", "expected a value, got nothing"),
        (time("every day"), "invalid", "trigger.expression", CRON + "'every day'"),
        (time("61 5 * * *"), "invalid", "trigger.expression", CRON + "'61 5 * * *'"),
        (time("0 5 * *"), "invalid", "trigger.expression", CRON + "'0 5 * *'"),
        (time("0 0 5 * * *"), "invalid", "trigger.expression", CRON + "'0 0 5 * * *'"),
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
        (schedule(by=KEYS), "invalid", "by", "expected correlation keys only where every leaf is about partitions"),
        (schedule(constraints=[{"type": "concurrency", "max": 1}]), "invalid", "constraints.0",
         "expected a concurrency constraint only for a target with a lifecycle, got 'one for a sqs target"),
        (schedule(constraints=[{"type": "concurrency", "max": 0}]), "invalid", "constraints.0.max", ""),
        (schedule(constraints=[{"type": "quiet_hours"}]), "invalid", "constraints.0",
         "expected an object whose type is one of concurrency, got "),
        (schedule(trigger={"type": "moon"}), "invalid", "trigger",
         "expected an object whose type is one of time, partition, program_status, all, any, got {'type': 'moon'}"),
        (schedule(trigger="0 5 * * *"), "invalid", "trigger", "expected an object whose type is one of time, "),
        (schedule(trigger={"type": "all", "triggers": []}), "invalid", "trigger.triggers", ""),
        (schedule(trigger={"type": "any", "triggers": [WEEKDAYS, partition("flights", count=0)]}), "invalid",
         "trigger.triggers.1.count", ""),
        (schedule(trigger={"type": "any", "triggers": [partition("flights")] * 46}), "invalid", "trigger",
         "expected at most 45 leaves in one trigger (L5), got '46 leaves'"),
        (schedule(priority=10), "invalid", "priority", ""),
        (schedule(priority="urgent"), "invalid", "priority", ""),
        (schedule(enabled="perhaps"), "invalid", "enabled", ""),
        (schedule(tags=["a"]), "invalid", "tags", ""),
        (schedule(properties=[1]), "invalid", "properties", ""),
    ],
)  # fmt: skip
def test_a_wrong_schedule_is_neither_created_nor_put_in_the_place_of_a_right_one(
    api: Api, document: dict[str, Any], code: str, field: str, message: str
) -> None:
    for path in (f"{APP}/schedules/wrong", ONE):
        error = refused(api, 400, "PUT", path, document)
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
def test_a_value_of_the_wrong_kind_is_named_in_the_words_of_json(
    api: Api, document: dict[str, Any], field: str, message: str
) -> None:
    error = refused(api, 400, "PUT", ONE, document)
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
        (schedule(workflw="x"), "remove it, or check its spelling"),
    ],
)
def test_a_refusal_says_what_to_do(api: Api, document: dict[str, Any], hint: str) -> None:
    assert refused(api, 400, "PUT", ONE, document)["hint"] == hint


@pytest.mark.parametrize(
    ("document", "way"),
    [
        ({"workflow": "clean", "trigger": after("clean")}, "demo.flights.clean -> demo.flights.clean"),
        ({"workflow": "refine", "trigger": after("clean")},
         "demo.flights.refine -> demo.flights.clean -> demo.flights.refine"),
    ],
)  # fmt: skip
def test_a_cycle_of_triggers_is_refused_and_its_way_is_told(api: Api, document: dict[str, Any], way: str) -> None:
    error = refused(api, 400, "PUT", f"{APP}/schedules/back", document)
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
        (f"{APP}/workflows/clean", {"target": {"type": "lambda"}}, "target"),
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
def test_a_wrong_document_is_refused(api: Api, path: str, document: dict[str, Any], field: str) -> None:
    error = refused(api, 400, "PUT", path, document)
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
def test_a_wrong_partition_is_refused(api: Api, content: dict[str, Any], field: str) -> None:
    error = refused(api, 400, "POST", f"{NS}/datasets/flights/partitions", content)
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
def test_a_wrong_wish_is_refused(api: Api, path: str, content: dict[str, Any], field: str) -> None:
    assert refused(api, 400, "POST", path, content)["field"] == field


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
def test_nothing_lives_in_what_does_not_exist(api: Api, method: str, path: str, body: Any, missing: str) -> None:
    error = refused(api, 404, method, path, body)
    assert repr(missing) in error["message"]
    assert error["hint"].startswith("create the ")


# -- a deployment ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("third", "code", "field"),
    [
        (schedule(workflw="x"), "unknown_field", "schedules.third.workflw"),
        (time("0 0 30 2 *"), "invalid", "schedules.third.trigger.expression"),
        (schedule(workflow="notfiy"), "unknown_reference", "schedules.third.workflow"),
        (schedule(trigger=partition("flihgts")), "unknown_reference", "schedules.third.trigger"),
        (schedule(trigger=partition("fresh"), by=["hour"]), "invalid", "schedules.third.by"),
        ({"workflow": "refine", "trigger": after("clean")}, "cycle", "schedules.third.trigger"),
        ({"workflow": "loop", "trigger": after("loop")}, "cycle", "schedules.third.trigger"),
        (7, "invalid", "schedules.third"),
    ],
)
@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_an_app_whose_third_schedule_is_wrong_stores_nothing_at_all(
    api: Api, third: Any, code: str, field: str, query: str
) -> None:
    document = {
        "description": "new",
        "datasets": {"fresh": {"bucket": "lake", "prefix": "fresh/", "keys": ["day"]}},
        "workflows": {"loop": {"target": EMR}},
        "schedules": {"first": schedule(trigger=partition("fresh")), "second": schedule(), "third": third},
    }
    error = refused(api, 400, "PUT", APP + query, document)
    assert (error["code"], error["field"]) == (code, field)


def test_an_app_that_closes_a_cycle_within_itself_stores_nothing(api: Api) -> None:
    document = {
        "workflows": {"one": {"target": EMR}, "two": {"target": EMR}},
        "schedules": {
            "there": {"workflow": "one", "trigger": after("two"), "enabled": True},
            "back": {"workflow": "two", "trigger": after("one"), "enabled": True},
        },
    }
    error = refused(api, 400, "PUT", f"{NS}/apps/flights", document)
    assert (error["code"], error["field"]) == ("cycle", "schedules.there.trigger")


@pytest.mark.parametrize(
    ("datasets", "field"),
    [
        ({"new": DATASET | {"prefix": "raw/flights/"}}, "datasets.new.prefix"),
        ({"one": DATASET, "two": DATASET}, "datasets.two.prefix"),
    ],
)
@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_an_app_with_a_prefix_that_is_taken_stores_nothing(
    api: Api, datasets: dict[str, Any], field: str, query: str
) -> None:
    error = refused(api, 409, "PUT", APP + query, {"description": "new", "datasets": datasets})
    assert (error["code"], error["field"]) == ("conflict", field)


def test_a_deployment_means_its_own_parts_too(api: Api) -> None:
    document = {
        "datasets": {"orders": DATASET},
        "workflows": {"ship": WORKFLOW},
        "schedules": {"a": schedule(trigger=partition("ordres"))},
    }
    assert refused(api, 400, "PUT", APP, document)["hint"] == "did you mean 'demo.orders'?"
    document["schedules"] = {"a": schedule(workflow="shipp")}
    assert refused(api, 400, "PUT", APP, document)["hint"] == "did you mean 'demo.flights.ship'?"


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"schedules": {"Bad Name": schedule()}}, "schedules.Bad Name"),
        ({"workflows": {"a.b": WORKFLOW}}, "workflows.a.b"),
        ({"schedules": [schedule()]}, "schedules"),
        ({"schedule": {}}, "schedule"),
        ({"namespace": "demmo"}, "namespace"),
    ],
)
def test_a_wrong_app_is_refused(api: Api, document: dict[str, Any], field: str) -> None:
    assert refused(api, 400, "PUT", APP, document)["field"].startswith(field)


def test_a_flag_is_true_or_false(api: Api) -> None:
    for text in ("yes", "1", "True", ""):
        error = refused(api, 400, "PUT", f"{APP}?dry_run={text}", {"owner": "new"})
        assert (error["field"], error["message"]) == ("dry_run", f"expected true or false, got {text!r}")
    assert refused(api, 400, "PUT", f"{APP}?dryrun=true", {"owner": "new"})["field"] == "dryrun"


# -- bodies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"not json", "bad_json"),
        (b"{'owner': 'ops'}", "bad_json"),
        (b'{"owner": "ops"', "bad_json"),
        (b"owner=ops", "bad_json"),
        (b"\xff\xfe\xfd", "bad_json"),
        (b'{"owner": "a", "owner": "b"}', "bad_json"),
        (b'{"tags": {"n": NaN}}', "bad_json"),
        (b'{"tags": {"n": 1e999}}', "bad_json"),
        (b'{"owner": "\\ud800"}', "bad_json"),
        (b"[]", "invalid"),
        (b'[{"owner": "ops"}]', "invalid"),
        (b'"ops"', "invalid"),
        (b"7", "invalid"),
        (b"null", "invalid"),
        (b'{"owner": ' + b"[" * 51 + b"]" * 51 + b"}", "invalid"),
        (b'{"owner": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid"),
    ],
)
@pytest.mark.parametrize("path", [NS, APP, ONE])
def test_a_body_is_one_json_object(api: Api, path: str, raw: bytes, code: str) -> None:
    error = refused(api, 400, "PUT", path, raw)
    assert (error["code"], error["field"]) == (code, "body")
    assert error["message"].startswith("expected ")
    assert ", got " in error["message"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (NS, b" " * 1_000_001, "body"),
        (APP, b'{"description": "' + b"x" * 1_000_000 + b'"}', "body"),
        (f"{ONE}/run", b'{"properties": {"x": "' + b"x" * 1_000_000 + b'"}}', "body"),
        (f"{ONE}/enable", b" " * 1_000_001, "body"),
        (ONE, schedule(properties={"x": "x" * 100_000}), "body"),
        (f"{ONE}/run", {"properties": {"x": "x" * 100_000}}, "body"),
        (f"{APP}/workflows/clean", {"target": EMR, "properties": {"x": "é" * 20_000}}, "body"),
        (APP, {"schedules": {"a": schedule(), "b": schedule(properties={"x": "x" * 100_000})}}, "schedules.b"),
    ],
)
def test_a_body_that_is_too_large_is_refused(api: Api, path: str, body: Any, field: str) -> None:
    method = "POST" if path.startswith(f"{ONE}/") else "PUT"
    error = refused(api, 413, method, path, body)
    assert (error["code"], error["field"]) == ("too_large", field)
    assert error["hint"] == "put large data into S3 and pass a reference"


# -- paths -----------------------------------------------------------------------------------------------------------

ODD = [
    "Demo",
    "a.b",
    "-a",
    "_a",
    "a b",
    "a%20b",
    "a%2Fb",
    "a#b",
    "é",
    "a" * 64,
    "..",
    "*",
    "{ns}",
    "a@1",
    "%00",
    "$LATEST",
]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/namespaces/{}", "namespace"),
        (NS + "/apps/{}", "app"),
        (APP + "/workflows/{}", "name"),
        (APP + "/schedules/{}", "name"),
        (NS + "/datasets/{}", "name"),
    ],
)
def test_a_name_in_the_path_is_a_name(api: Api, path: str, field: str, name: str) -> None:
    if "#" in name:
        name = name.replace("#", "%23")  # a bare one never leaves the client
    for method in ("PUT", "GET", "DELETE"):
        error = refused(api, 400, method, path.format(name), {} if method == "PUT" else None)
        assert (error["code"], error["field"]) == ("invalid", field)
        assert error["message"].startswith("expected a name, got ")
        assert error["hint"] == "lower-case letters, digits, '-' and '_', at most 63, beginning with a letter or digit"


@pytest.mark.parametrize("kind", ["job", "run"])
@pytest.mark.parametrize(
    "text", ["x", "demo.flights.nightly", "a.b.c.d.e.f", "demo.flights.nightly.!.x", "%20", "a" * 3000]
)
def test_an_id_that_is_none_names_nothing(api: Api, kind: str, text: str) -> None:
    for path in (f"/v1/{kind}s/{text}", f"/v1/{kind}s/{text}/why"):
        assert refused(api, 404, "GET", path)["code"] == "not_found"


def test_an_id_of_something_that_is_over_names_nothing(api: Api) -> None:
    for kind in ("job", "run"):
        error = refused(api, 404, "GET", f"/v1/{kind}s/demo.flights.nightly.1.0a1b2c3d4e5f60718293")
        assert error["message"] == f"no {kind} named 'demo.flights.nightly.1.0a1b2c3d4e5f60718293'"


# -- conditions ---


@pytest.mark.parametrize("etag", ["*", "three", '"1", "2"', 'W/"1"', '"²"'])
def test_an_etag_is_one_of_ours(api: Api, etag: str) -> None:
    error = refused(api, 400, "PUT", NS, {}, if_match=etag)
    assert error["field"] == "If-Match"
    assert error["message"] == f'expected an ETag that this API answered with, such as "3", got {etag!r}'


@pytest.mark.parametrize("path", [f"{ONE}/run", f"{ONE}/enable", f"{NS}/datasets/flights/partitions"])
def test_a_condition_that_nobody_would_check_is_refused(api: Api, path: str) -> None:
    assert refused(api, 400, "POST", path, if_match='"1"')["field"] == "If-Match"


# -- what Chalice refuses by itself ----------------------------------------------------------------------------------


def test_a_method_that_a_path_does_not_take_is_told_which_it_does(api: Api) -> None:
    """API Gateway answers this before the Lambda sees it (403); whoever reaches the Lambda still gets our shape."""
    for method, path, allowed in [("POST", NS, "PUT, GET, DELETE"), ("DELETE", f"{NS}/runs", "GET")]:
        error = refused(api, 405, method, path, {})
        assert error["code"] == "method_not_allowed"
        assert error["hint"] == f"this path takes {allowed}"


@pytest.mark.parametrize(("resource", "status", "code"), [("/v1/moons", 404, "not_found"), (NS, 500, "internal")])
def test_an_event_that_fits_no_route_gets_an_error_of_our_shape(resource: str, status: int, code: str) -> None:
    """As from an API Gateway that was deployed with other code than the Lambda's."""
    event = {
        "requestContext": {"httpMethod": "GET", "resourcePath": resource.replace("demo", "{ns}"), "identity": {}},
        "headers": {},
        "multiValueQueryStringParameters": None,
        "pathParameters": {},
        "stageVariables": {},
        "body": None,
    }
    told = app(event, None)
    assert told["statusCode"] == status
    assert json.loads(told["body"])["error"]["code"] == code
