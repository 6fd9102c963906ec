"""Answers of the API against the OpenAPI document: their form, and the fields that it does not describe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from chalicelib.web.routes import openapi

SCHEMAS = "#/components/schemas/"


@cache
def document() -> dict[str, Any]:
    return openapi.describe()


@cache
def _routes() -> list[tuple[re.Pattern[str], str]]:
    """The routes, those with more fixed parts first: ``/v1/.../backfills/{id}`` before ``{name}``."""
    paths = sorted(document()["paths"], key=lambda path: (path.count("{"), path))
    return [(re.compile(re.sub(r"{\w+}", "[^/]+", path)), path) for path in paths]


def operation(method: str, path: str) -> tuple[str, dict[str, Any]] | None:
    """The route of a request and its operation; None if the API has none."""
    for pattern, route in _routes():
        if pattern.fullmatch(path.partition("?")[0]) and method.lower() in document()["paths"][route]:
            return route, document()["paths"][route][method.lower()]
    return None


@cache
def _schema(method: str, route: str, status: str) -> dict[str, Any] | None:
    answer = document()["paths"][route][method]["responses"][status]
    return answer["content"]["application/json"]["schema"] if "content" in answer else None


@cache
def _validator(method: str, route: str, status: str) -> Draft202012Validator:
    return Draft202012Validator({**(_schema(method, route, status) or {}), "components": document()["components"]})


def check(method: str, path: str, status: int, body: Any) -> None:
    """Fail if an answer is not as the document says. Errors are checked by those who expect them."""
    found = operation(method, path)
    if found is None or status >= 300:
        return
    route, described = found
    assert str(status) in described["responses"], f"{method} {route} answers {status}, which is not described"
    if _schema(method.lower(), route, str(status)) is None:
        assert not body, f"{method} {route} answers {status} with a body"
        return
    faults = [f"{fault.json_path}: {fault.message[:200]}"
              for fault in _validator(method.lower(), route, str(status)).iter_errors(body)]  # fmt: skip
    assert not faults, f"{method} {route} {status}: correct the class of its view: {faults[:5]}"


def undescribed(method: str, path: str, status: int, body: Any) -> Iterator[str]:
    """The fields of an answer that the document does not describe."""
    found = operation(method, path)
    if found is not None and status < 300:
        schema = _schema(method.lower(), found[0], str(status))
        yield from (f"{method} {found[0]} {field}" for field in _beyond(body, schema or {}, ""))


def _beyond(value: Any, schema: dict[str, Any], at: str) -> Iterator[str]:
    options = [_resolved(each) for each in (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ()))]
    if isinstance(value, list):
        items = next((each["items"] for each in options if "items" in each), {})
        for each in value:
            yield from _beyond(each, items, f"{at}[]")
    elif isinstance(value, dict):
        known = [each for each in options if "properties" in each]
        members = next((each.get("additionalProperties") for each in options if each.get("type") == "object"), None)
        for key, each in value.items():
            inside = [one["properties"][key] for one in known if key in one["properties"]]
            if known and not inside:
                yield f"{at}.{key}"
            elif inside:
                yield from _beyond(each, inside[0], f"{at}.{key}")
            elif isinstance(members, dict):
                yield from _beyond(each, members, f"{at}.*")


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    ref = schema.get("$ref")
    found: dict[str, Any] = document()["components"]["schemas"][ref.removeprefix(SCHEMAS)] if ref else schema
    return found
