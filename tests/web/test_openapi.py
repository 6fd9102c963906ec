"""GET /v1/openapi.json: every route, as OpenAPI 3.1 tells it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from app import app
from chalicelib.core.errors import STATUS
from tests.web.conftest import APP, NS, WEEKDAYS, Api, installation


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        yield made


@pytest.fixture(scope="module")
def document(api: Api) -> Any:
    return api.get("/v1/openapi.json")


def operations(document: Any) -> dict[tuple[str, str], Any]:
    return {(path, method): each for path, methods in document["paths"].items() for method, each in methods.items()}


def test_it_is_a_valid_document(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    OpenAPIV31SpecValidator(document).validate()


def test_every_route_is_listed_with_a_summary_of_its_own(document: Any) -> None:
    routes = {(path, method.lower()) for path, methods in app.routes.items() for method in methods}
    found = operations(document)
    assert set(found) == routes
    summaries = [each["summary"] for each in found.values()]
    assert all(re.fullmatch(r"[A-Z][^\n]{5,110}[^.]", text) for text in summaries), summaries
    assert len({each["operationId"] for each in found.values()}) == len(found)


def test_every_operation_tells_its_parameters_body_and_errors(document: Any) -> None:
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


def test_bodies_have_the_schemas_of_the_documents(api: Api, document: Any) -> None:
    """What the document says about a body is what the API does with it."""
    body = operations(document)["/v1/namespaces/{ns}/apps/{app}", "put"]["requestBody"]["content"]["application/json"]
    schema = {**body["schema"], "components": document["components"]}
    right = {
        "workflows": {"notify": {"target": {"type": "sqs", "queue_url": "https://sqs.example/q"}}},
        "schedules": {"daily": {"workflow": "notify", "trigger": WEEKDAYS, "timeout": {"after": "2h"}}},
    }
    wrong = {"schedules": {"daily": {"workflow": "notify", "trigger": {"type": "moon"}}}}
    api.put(NS)
    assert list(Draft202012Validator(schema).iter_errors(right)) == []
    api.put(APP, right)
    assert list(Draft202012Validator(schema).iter_errors(wrong))
    api.refused(400, "PUT", APP, wrong)


def test_errors_have_the_schema_that_it_tells(api: Api, document: Any) -> None:
    schema = Draft202012Validator(document["components"]["schemas"]["Error"])
    for method, path in [("GET", "/v1/namespaces/no-such"), ("PUT", "/v1/namespaces/Bad"), ("POST", "/v1/health")]:
        schema.validate(api.send(method, path).json_body)


def test_the_page_for_people_lists_the_same_routes_and_every_code() -> None:
    page = (
        (Path(__file__).parents[2] / "docs" / "api.md").read_text().replace("{app}/", "/v1/namespaces/{ns}/apps/{app}/")
    )
    page = page.replace("{app}`", "/v1/namespaces/{ns}/apps/{app}`")
    told = {
        (method, re.sub(r"{\w+}", "{}", path))
        for methods, path in re.findall(r"`((?:[A-Z]+ )+)(/v1[^` ]*)`", page)
        for method in methods.split()
    }
    routes = {(method, re.sub(r"{\w+}", "{}", path)) for path, methods in app.routes.items() for method in methods}
    assert told == routes
    assert {code for code in STATUS if f"| `{code}` |" not in page} == {"forbidden", "throttled"}
