"""docs/openapi.json is the OpenAPI document of the code, with a valid example of every body and answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chalicelib.web.bodies import BODIES
from chalicelib.web.routes import openapi
from tests.web import openapi_page

HOW = "run: python -m tests.web.openapi_page"


@pytest.fixture(scope="module")
def page() -> Any:
    return json.loads(openapi_page.PAGE.read_text())


def test_the_openapi_file_is_that_of_the_code(page: Any) -> None:
    assert openapi_page.without_examples(page) == json.loads(json.dumps(openapi.describe())), HOW


def test_o8_every_operation_has_valid_examples(page: Any) -> None:
    assert openapi_page.faults(page) == {}, HOW
    operations = {each["operationId"] for methods in page["paths"].values() for each in methods.values()}
    without_answer = {"204"}
    shown = {place.partition(" ")[0] for place in openapi_page.examples_of(page)}
    silent = {
        each["operationId"]
        for methods in page["paths"].values()
        for each in methods.values()
        if set(each["responses"]) - {"default"} == without_answer
    }
    assert operations - silent == shown - silent


def test_the_examples_of_bodies_are_accepted(page: Any) -> None:
    for place, content in openapi_page.contents(page):
        if place.endswith(" body"):
            model = BODIES[content["schema"]["$ref"].rpartition("/")[2]]
            model.model_validate(content["example"])


def test_a_missing_or_wrong_example_is_noticed(page: Any) -> None:
    examples = openapi_page.examples_of(page)
    del examples["whoami 200"]
    examples["show_now 200"] = {"at": "2026-11-22T00:00:00.000Z"}

    assert set(openapi_page.faults(openapi_page.documented(examples))) == {"whoami 200", "show_now 200"}


def test_the_openapi_file_has_a_line_for_each_schema(page: Any) -> None:
    text = openapi_page.PAGE.read_text()
    assert text == openapi_page.written(page) + "\n", HOW
    assert all(f'\n   "{name}": {{"' in text for name in page["components"]["schemas"])
