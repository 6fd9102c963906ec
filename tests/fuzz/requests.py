"""Random requests to the API, made from its OpenAPI document: sound ones, and ones with damaged parts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from app import app
from tests.fuzz.values import DURATIONS, EXPRESSIONS, INSTANTS, get, places, replaced, texts, values, without

DOCUMENT: Mapping[str, Any] = json.loads((Path(__file__).parents[2] / "docs/openapi.json").read_text())
Operation = tuple[str, str, Any]  # method, path, and what the document says
OPERATIONS: list[Operation] = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if method in ("get", "put", "post", "delete", "patch")
]
SIZES = (10_000, 100_000, 950_000)  # bytes of a large body; the API accepts 1,000,000
DEPTH = 4  # levels of a body below which optional parts are left out
# What exists in the world of the fuzz, by the name of the parameter.
KNOWN = {
    "ns": ["demo", "other"], "app": ["flights"], "name": ["each", "timed", "held", "clean", "landing", "p"],
    "pool": ["p"], "job_id": ["demo.flights.each.x.y"], "run_id": ["demo.flights.each.x.y"],
}  # fmt: skip
# Values that pass the checks of a field's text, by the name of the field.
SAMPLES: Mapping[str, tuple[Any, ...]] = {
    "expression": EXPRESSIONS, "workflow": ("clean", "demo.flights.clean", "demo.other.x"),
    "dataset": ("landing", "demo.landing", "other.x"), "entry_point": ("s3://code/job.py",), "bucket": ("lake",),
    "prefix": ("raw/landing/", "raw/x/"), "at": INSTANTS, "from": INSTANTS, "to": INSTANTS, "timestamp": INSTANTS,
    "after": DURATIONS, "within": DURATIONS, "deadline": DURATIONS, "zone": ("UTC", "Europe/Berlin", "Asia/Nowhere"),
    "queue_url": ("https://sqs.us-east-1.amazonaws.com/123456789012/sluice-target-q",),
    "url": ("https://example.com/hook", "http://169.254.169.254/latest"), "event": ("closed", "sales.opened"),
    "member": ("arn:aws:iam::123456789012:role/a-*",), "start": ("22:00", "06:00"), "end": ("06:00", "24:00"),
    "cursor": ("x", "[0, null]", "eyJhIjogMX0="), "limit": ("1", "100", "0", "x", "99999999999999999999"),
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A request: its body is what is sent, as text."""

    method: str
    path: str
    resource: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    signer: str | None = "arn:aws:sts::123456789012:assumed-role/data/ada"

    @property
    def text(self) -> str:
        """Everything that the request says."""
        return json.dumps([self.path, dict(self.parameters), dict(self.query), dict(self.headers), self.body])

    def send(self) -> tuple[int, Any]:
        """The status and the content of the answer, as API Gateway gets it from the Lambda."""
        event = {
            "httpMethod": self.method,
            "path": self.path,
            "headers": {"content-type": "application/json", **self.headers},
            "multiValueHeaders": {},
            "multiValueQueryStringParameters": {name: [value] for name, value in self.query.items()} or None,
            "pathParameters": dict(self.parameters) or None,
            "stageVariables": None,
            "body": self.body,
            "isBase64Encoded": False,
            "requestContext": {
                "httpMethod": self.method,
                "path": self.path,
                "resourcePath": self.resource,
                "requestId": "r1",
                "identity": {"userArn": self.signer, "sourceIp": "192.0.2.7"},
            },
        }
        answer = app(event, SimpleNamespace(aws_request_id="r1", function_name="api", memory_limit_in_mb="512"))
        return answer["statusCode"], json.loads(answer["body"]) if answer["body"] else None


@st.composite
def requests(draw: st.DrawFn, operation: Operation) -> Asked:
    """A request to an operation. In half of them, parts of the body and texts are damaged."""
    return draw(_of_operation(operation, draw(st.booleans())))


def names_changed(asked: Asked, names: Mapping[str, str]) -> Asked:
    """The same request with other names, in its path and its body."""

    def changed(text: str) -> str:
        return names.get(text, text)

    parameters = {name: changed(value) for name, value in asked.parameters.items()}
    path = re.sub(r"\{(\w+)\}", lambda found: quote(parameters[found[1]], safe=""), asked.resource)
    body = asked.body
    for old, new in names.items() if body is not None else ():
        body = body.replace(json.dumps(old), json.dumps(new)) if body is not None else None
    return replace(asked, parameters=parameters, path=path, body=body)


@st.composite
def large_requests(draw: st.DrawFn, operation: Operation) -> Asked:
    """A request whose body has one list or mapping with as many entries as 1 MB holds."""
    asked = draw(_of_operation(operation, False))
    body = json.loads(asked.body or "{}")
    wide = [path for path in places(body) if isinstance(get(body, path), dict | list) and get(body, path)]
    if wide:
        path = draw(st.sampled_from(wide))
        body = replaced(body, path, _enlarged(get(body, path), draw(st.sampled_from(SIZES))))
    return replace(asked, body=json.dumps(body))


def _enlarged(value: Any, size: int) -> Any:
    """The list or mapping with copies of its entries, up to about so many bytes."""
    entries = list(value.items()) if isinstance(value, dict) else value
    times = max(1, size // (len(json.dumps(value)) + 8 * len(entries)))
    if isinstance(value, list):
        return value * times
    return {f"{key}{number or ''}": each for number in range(times) for key, each in entries}


@st.composite
def _of_operation(draw: st.DrawFn, operation: Operation, may_damage: bool) -> Asked:
    method, resource, described = operation
    parameters: dict[str, str] = {}
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    for each in described.get("parameters", ()):
        parameter = _resolved(each)
        name, place = parameter["name"], parameter["in"]
        if place == "path":
            known = KNOWN.get(name, ["x"])
            parameters[name] = draw(st.sampled_from(known) if not may_damage or draw(st.integers(0, 5)) else texts())
        elif draw(st.booleans()):
            target = query if place == "query" else headers
            target[name] = draw(st.one_of(st.sampled_from(SAMPLES.get(name, ("1", "true", "x"))), texts()))
    body = None
    if "requestBody" in described:
        schema = described["requestBody"]["content"]["application/json"]["schema"]
        document = draw(of_schema(schema))
        if may_damage:
            for _ in range(draw(st.integers(0, 2))):
                path = draw(st.sampled_from(sorted(places(document), key=repr)))
                remove = path and draw(st.booleans())
                document = without(document, path) if remove else replaced(document, path, draw(values()))
        body = json.dumps(document)
        if may_damage and not draw(st.integers(0, 30)):
            body = draw(st.one_of(st.just(body[:-1]), st.just("[" * 50_000), st.just(f"{body}{body}"), texts()))
    path = re.sub(r"\{(\w+)\}", lambda found: quote(parameters[found[1]].encode(errors="replace"), safe=""), resource)
    clean = {name: value.encode(errors="replace").decode() for name, value in parameters.items()}
    return Asked(method, path, resource, clean, query, headers, body)


@st.composite
def of_schema(draw: st.DrawFn, schema: Any, name: str = "", depth: int = 0) -> Any:
    """A value that mostly follows a schema. Texts that have a pattern are samples by the name of their field."""
    schema = _resolved(schema)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    for kind in ("anyOf", "oneOf", "allOf"):
        if kind in schema:
            options = [each for each in schema[kind] if depth < DEPTH or not _is_nested(each)] or schema[kind]
            return draw(of_schema(draw(st.sampled_from(options)), name, depth + 1))
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = draw(st.sampled_from(kind))
    if kind == "object" or "properties" in schema:
        return draw(_object(schema, depth))
    if kind == "array":
        least, most = schema.get("minItems", 0), min(schema.get("maxItems", 3), 3)
        count = draw(st.integers(least, max(least, most if depth < DEPTH else least)))
        return [draw(of_schema(schema.get("items", {}), name, depth + 1)) for _ in range(count)]
    if kind == "string":
        return draw(st.one_of(st.sampled_from(SAMPLES.get(name, ("x", "a1", "5m"))), texts()))
    if kind in ("integer", "number"):
        least, most = schema.get("minimum", 0), schema.get("maximum", 10_000)
        return draw(st.integers(int(least), max(int(least), int(most))))
    if kind == "boolean":
        return draw(st.booleans())
    return None if kind == "null" else draw(values())


@st.composite
def _object(draw: st.DrawFn, schema: Any, depth: int) -> dict[str, Any]:
    known, required = schema.get("properties", {}), schema.get("required", ())
    optional = [name for name in known if name not in required]
    chosen = draw(st.lists(st.sampled_from(optional), max_size=3, unique=True)) if optional and depth < DEPTH else []
    made = {key: draw(of_schema(known[key], key, depth + 1)) for key in (*required, *chosen) if key in known}
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        for _ in range(draw(st.integers(0, 2))):
            made[draw(st.sampled_from(("a", "b", "clean", "each")))] = draw(of_schema(more, "", depth + 1))
    return made


def _is_nested(schema: Any) -> bool:
    found = _resolved(schema)
    return found.get("type") in ("object", "array") or any(kind in found for kind in ("anyOf", "oneOf", "allOf"))


def _resolved(schema: Any) -> Any:
    while "$ref" in schema:
        found: Any = DOCUMENT
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema
