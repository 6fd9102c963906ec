"""Wrong bodies, paths, ids, conditions and methods are refused, and nothing is stored."""

import json
from time import process_time
from typing import Any

import pytest

from app import app
from tests.web.conftest import APP, NS, Api
from tests.web.wrong import EMR, ONE, refused, schedule

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
def test_a_body_is_one_json_object(standing: Api, path: str, raw: bytes, code: str) -> None:
    error = refused(standing, 400, "PUT", path, raw)
    assert (error["code"], error["field"]) == (code, "body")
    assert error["message"].startswith("expected ")
    assert ", got " in error["message"]


@pytest.mark.long
def test_a_repeated_key_among_many_is_found_quickly(standing: Api) -> None:
    raw = json.dumps({f"k{number}": 1 for number in range(40_000)})[:-1] + ', "k39999": 2}'
    before = process_time()
    error = refused(standing, 400, "PUT", NS, raw.encode())
    assert process_time() - before < 1.0
    assert error["message"] == "expected each key of an object once, got 'k39999' twice"


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
def test_a_body_that_is_too_large_is_refused(standing: Api, path: str, body: Any, field: str) -> None:
    method = "POST" if path.startswith(f"{ONE}/") else "PUT"
    error = refused(standing, 413, method, path, body)
    assert (error["code"], error["field"]) == ("too_large", field)
    assert error["hint"].startswith("put large data into S3 and pass a reference")


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
def test_a_name_in_the_path_must_be_valid(standing: Api, path: str, field: str, name: str) -> None:
    if "#" in name:
        name = name.replace("#", "%23")  # the client would cut the name at a bare "#"
    for method in ("PUT", "GET", "DELETE"):
        error = refused(standing, 400, method, path.format(name), {} if method == "PUT" else None)
        assert (error["code"], error["field"]) == ("invalid", field)
        assert error["message"].startswith("expected a name, got ")
        assert error["hint"] == "lower-case letters, digits, '-' and '_', at most 63, beginning with a letter or digit"


@pytest.mark.parametrize("kind", ["job", "run"])
@pytest.mark.parametrize(
    "text", ["x", "demo.flights.nightly", "a.b.c.d.e.f", "demo.flights.nightly.!.x", "%20", "a" * 3000]
)
def test_an_invalid_id_is_not_found(standing: Api, kind: str, text: str) -> None:
    for path in (f"/v1/{kind}s/{text}", f"/v1/{kind}s/{text}/why"):
        assert refused(standing, 404, "GET", path)["code"] == "not_found"


def test_an_id_of_a_deleted_thing_is_not_found(standing: Api) -> None:
    for kind in ("job", "run"):
        error = refused(standing, 404, "GET", f"/v1/{kind}s/demo.flights.nightly.1.0a1b2c3d4e5f60718293")
        assert error["message"] == f"no {kind} named 'demo.flights.nightly.1.0a1b2c3d4e5f60718293'"


# -- conditions ---


@pytest.mark.parametrize("etag", ["*", "three", '"1", "2"', 'W/"1"', '"²"'])
def test_an_etag_must_be_one_of_ours(standing: Api, etag: str) -> None:
    error = refused(standing, 400, "PUT", NS, {}, if_match=etag)
    assert error["field"] == "If-Match"
    assert error["message"] == f'expected an ETag of an answer of this API, such as "3", got {etag!r}'


@pytest.mark.parametrize("path", [f"{ONE}/run", f"{ONE}/enable", f"{NS}/datasets/flights/partitions"])
def test_a_condition_that_is_not_checked_is_refused(standing: Api, path: str) -> None:
    assert refused(standing, 400, "POST", path, if_match='"1"')["field"] == "If-Match"


# -- what Chalice refuses itself -------------------------------------------------------------------------------------


def test_a_method_not_allowed_answers_the_allowed_ones(standing: Api) -> None:
    """API Gateway answers this before the Lambda (403). A request that reaches the Lambda still gets our form of
    errors.
    """
    for method, path, allowed in [("POST", NS, "PUT, GET, DELETE"), ("DELETE", f"{NS}/runs", "GET")]:
        error = refused(standing, 405, method, path, {})
        assert error["code"] == "method_not_allowed"
        assert error["hint"] == f"this path takes {allowed}"


@pytest.mark.parametrize(("resource", "status", "code"), [("/v1/moons", 404, "not_found"), (NS, 500, "internal")])
def test_an_event_without_a_route_gets_an_error_in_our_format(resource: str, status: int, code: str) -> None:
    """As from an API Gateway that was deployed with other code than that of the Lambda."""
    event = {
        "requestContext": {"httpMethod": "GET", "resourcePath": resource.replace("demo", "{ns}"), "identity": {}},
        "headers": {},
        "multiValueQueryStringParameters": None,
        "pathParameters": {},
        "stageVariables": {},
        "body": None,
    }
    answer = app(event, None)
    app.routes.pop(resource, None)  # Chalice keeps its lookups among the routes, where other tests would find them
    assert answer["statusCode"] == status
    assert json.loads(answer["body"])["error"]["code"] == code
