"""GET /v1/openapi.json: every route, in OpenAPI 3.1."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from app import app
from chalicelib.core.errors import STATUS
from tests.support.kinds import CONSTRAINT_TYPES, GATHERING_TYPES, GIVEN_TYPES, LEAF_TYPES, TARGET_TYPES
from tests.web.conftest import Api, installation


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        yield made


@pytest.fixture(scope="module")
def document(api: Api) -> Any:
    return api.get("/v1/openapi.json")


def operations(document: Any) -> dict[tuple[str, str], Any]:
    return {(path, method): each for path, methods in document["paths"].items() for method, each in methods.items()}


def test_the_openapi_document_is_valid(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    OpenAPIV31SpecValidator(document).validate()


def test_every_route_is_listed_with_its_own_summary(document: Any) -> None:
    routes = {(path, method.lower()) for path, methods in app.routes.items() for method in methods}
    found = operations(document)
    assert set(found) == routes
    summaries = [each["summary"] for each in found.values()]
    assert all(re.fullmatch(r"[A-Z][^\n]{5,110}[^.]", text) for text in summaries), summaries
    assert len({each["operationId"] for each in found.values()}) == len(found)


def test_every_operation_has_its_parameters_body_and_errors(document: Any) -> None:
    for (path, method), each in operations(document).items():
        named = {(one["in"], one["name"]) for one in each["parameters"]}
        assert {name for kind, name in named if kind == "path"} == set(re.findall(r"{(\w+)}", path))
        assert ("requestBody" in each) >= (method == "put")
        assert each["responses"]["default"] == {"$ref": "#/components/responses/Error"}
    found = operations(document)
    assert {("query", "state"), ("query", "day"), ("query", "limit"), ("query", "cursor")} < {
        (one["in"], one["name"]) for one in found["/v1/namespaces/{ns}/runs", "get"]["parameters"]
    }
    run = found["/v1/namespaces/{ns}/apps/{app}/schedules/{name}/run", "post"]
    assert ("header", "Idempotency-Key") in {(one["in"], one["name"]) for one in run["parameters"]}
    assert set(run["responses"]) == {"202", "default"}


def test_a_body_is_required_where_one_of_its_fields_is(document: Any) -> None:
    required = {
        path.rpartition("/")[2]: each["requestBody"]["required"]
        for (path, method), each in operations(document).items()
        if method == "post" and "requestBody" in each
    }
    assert required == {
        **dict.fromkeys(("bulk", "glance", "redrive", "dry-run", "events", "partitions", "skip", "unskip"), True),
        "stop": True,
        **dict.fromkeys(("claim", "heartbeat", "report", "release"), True),
        **dict.fromkeys(("backfills", "reprocess", "pause", "run", "rerun", "approve", "refuse", "start"), False),
    }


def test_each_list_has_the_filters_of_what_it_lists(document: Any) -> None:
    states = {
        path.rpartition("/")[2]: one["schema"]["enum"]
        for (path, _), each in operations(document).items()
        for one in each["parameters"]
        if one["name"] == "state" and "{name}" not in path
    }
    assert states["schedules"] == ["enabled", "hold", "backlog", "drain", "completed", "disabled"]
    assert {"STARTING", "SUCCEEDED", "FAILED"} < set(states["runs"])
    schedules = operations(document)["/v1/namespaces/{ns}/apps/{app}/schedules", "get"]["parameters"]
    named = {one["name"] for one in schedules if one["in"] == "query"}
    assert named == {"tag", "workflow", "state", "limit", "cursor"}


def test_every_union_of_typed_documents_has_its_discriminator(document: Any) -> None:
    """With it generated clients and validators report the errors of the intended type only."""
    schemas = document["components"]["schemas"]
    unions = {
        "trigger": schemas["NewSchedule"]["properties"]["trigger"],
        "inner": schemas["AllTrigger"]["properties"]["triggers"]["items"],
        "of": schemas["QuietTrigger"]["properties"]["of"],
        "constraint": schemas["NewSchedule"]["properties"]["constraints"]["items"],
        "target": schemas["Workflow"]["properties"]["target"],
        "rehearsed": schemas["DryRun"]["properties"]["events"]["items"],
    }
    types = {name: set(union["discriminator"]["mapping"]) for name, union in unions.items()}
    assert types == {
        "trigger": {*LEAF_TYPES, "all", "any", "at_least"},
        "inner": {*LEAF_TYPES, "all", "any", "at_least"},
        "of": set(GATHERING_TYPES),
        "constraint": set(CONSTRAINT_TYPES),
        "target": set(TARGET_TYPES),
        "rehearsed": set(GIVEN_TYPES),
    }
    for union in unions.values():
        assert union["discriminator"]["propertyName"] == "type"
        assert set(union["discriminator"]["mapping"].values()) == {member["$ref"] for member in union["oneOf"]}


def test_errors_have_the_documented_schema(api: Api, document: Any) -> None:
    schema = Draft202012Validator(document["components"]["schemas"]["Error"])
    for method, path in [("GET", "/v1/namespaces/no-such"), ("PUT", "/v1/namespaces/Bad"), ("POST", "/v1/health")]:
        schema.validate(api.send(method, path).json_body)


def test_the_api_page_lists_the_same_routes_and_every_code() -> None:
    page = (
        (Path(__file__).parents[2] / "docs" / "api.md").read_text().replace("{app}/", "/v1/namespaces/{ns}/apps/{app}/")
    )
    page = page.replace("{app}`", "/v1/namespaces/{ns}/apps/{app}`")
    answer = {
        (method, re.sub(r"{\w+}", "{}", path))
        for methods, path in re.findall(r"`((?:[A-Z]+ )+)(/v1[^` ]*)`", page)
        for method in methods.split()
    }
    routes = {(method, re.sub(r"{\w+}", "{}", path)) for path, methods in app.routes.items() for method in methods}
    assert answer == routes
    assert {code for code in STATUS if f"| `{code}` |" not in page} == {"forbidden", "throttled"}
