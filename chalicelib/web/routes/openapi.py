"""The OpenAPI 3.1 document, generated from the table of routes, the docstrings of their functions, and pydantic's
models."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args

from chalice.app import Request
from pydantic import TypeAdapter

from chalicelib.core.access.roles import roles_with
from chalicelib.core.events import cloudevents
from chalicelib.core.rows.run import RecordKind
from chalicelib.core.states import RUN_MOVES, JobKind, JobState
from chalicelib.core.views import View
from chalicelib.flow import requests, views
from chalicelib.flow.backfills import reprocess_view, view
from chalicelib.flow.dags import elements, runs
from chalicelib.flow.deploy import uploaded
from chalicelib.flow.runs import dead_letters, workers
from chalicelib.flow.schedules import bulk
from chalicelib.flow.views import ahead, logs, matrix, schedule_list
from chalicelib.flow.views.present import MAX_ROWS
from chalicelib.web import answers, http, routes
from chalicelib.web.access import SIGNED, Needs
from chalicelib.web.bodies import BODIES
from chalicelib.web.cloudevents import MAX_EVENTS
from chalicelib.web.filters import TARGET_TYPES
from chalicelib.web.http import KEY
from chalicelib.web.paging import DEFAULT_LIMIT, MAX_FIRES, MAX_LIMIT
from chalicelib.web.routes import access
from chalicelib.web.routes import views as routes_of_views
from chalicelib.web.table import IDEMPOTENCY_KEY, IF_MATCH, NS, ROUTES, Route

# Where the views are that answer requests.
PACKAGES = (views, routes)
VIEWS = (http, requests, reprocess_view, view, runs, elements, uploaded, dead_letters, workers, bulk)

Json = dict[str, Any]
SCHEMAS = "#/components/schemas/"
TEXT: Json = {"type": "string"}
COUNT: Json = {"type": "integer", "minimum": 1}
QUERY: dict[str, Json] = {
    "limit": COUNT | {"maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    "cursor": {"type": "string", "description": "`next_cursor` of the previous page"},
    "count": COUNT | {"maximum": MAX_FIRES, "default": 10},
    "day": {"type": "string", "format": "date", "description": "a day in UTC"},
    "dry_run": {"type": "boolean", "default": False, "description": "report what would change; change nothing"},
    "update_schedules": {
        "type": "boolean",
        "description": "if false, keep schedules as they are; the default is a setting of the installation",
    },
    "restart": {
        "type": "boolean",
        "default": False,
        "description": "each schedule that is replaced drops what has gathered and what waits, on record",
    },
    "upload": {"type": "string", "description": "the id of an upload, whose document is deployed instead of a body"},
    "runs": {"type": "string", "enum": ["cancel"], "description": "also cancel the runs that are in progress"},
    "attempt": COUNT | {"description": "the number of the attempt; by default the latest"},
    "lines": COUNT | {"maximum": logs.MAX_LINES, "default": 100},
    "tag": {"type": "string", "description": "`team=a`, or `team` for any value of the tag"},
    "schedule": {"type": "string", "description": "a schedule of the namespace, as `app.name` or as its full name"},
    "workflow": {"type": "string", "description": "the workflow that they run; a short name is one of this app"},
    "app": {"type": "string", "description": "only schedules of this app, by its short name"},
    "q": {"type": "string", "description": "a part of the full name; the case of letters does not matter"},
    "from": {"type": "string", "format": "date-time", "description": "the begin of the span; by default now"},
    "to": {"type": "string", "format": "date-time", "description": "its end, at most 31 days later; by default a day"},
    "name": {"type": "string", "description": "a limit such as `workflow:demo.flights.clean`, or `schedule:app.name`"},
    "rows": COUNT | {"maximum": MAX_ROWS, "default": MAX_ROWS, "description": "rows to read at most"},
    "bucket": {"type": "string", "description": "the name of a bucket; `lake` is that of the installation"},
    "prefix": {"type": "string", "description": "a folder of the bucket, such as `raw/orders/`"},
    "kind": {"type": "string", "enum": list(get_args(JobKind))},
    "state": {"type": "string", "enum": list(RUN_MOVES)},
    "target": {"type": "string", "enum": list(TARGET_TYPES)},
    "late": {"type": "boolean", "description": "only those that missed a deadline, or began after their window"},
    "all": {
        "type": "boolean",
        "default": False,
        "description": "also those that schedules define, used or not",
    },
    "queued_in": {"type": "string", "description": "the limit in whose queue they wait; then in its order"},
}
AT: Json = {"type": "string", "format": "date-time"}
DAY: Json = {"type": "string", "format": "date"}
PART: Json = {"type": "string", "description": "a part of the id, the cause or the reason, in any case"}
STEPS: Json = {"type": "integer", "minimum": 0, "default": routes_of_views.STEPS}


def _span(what: str) -> dict[str, Json]:
    """The ends of a span of rows, by the instant that counts for them."""
    return {
        "from": AT | {"description": f"only those that were {what} at this instant or later"},
        "to": AT | {"description": f"only those that were {what} before this instant"},
    }


# Parameters with another meaning, or other bounds, than elsewhere: by the path of a route, or its last part.
OWN: dict[str, dict[str, Json]] = {
    NS + "/schedules": {
        "limit": COUNT | {"maximum": schedule_list.MAX_LIMIT, "default": routes_of_views.DEFAULT_SCHEDULES}
    },
    "schedules": {"state": {"type": "string", "enum": list(routes_of_views.STATES)}},
    "jobs": _span("created") | {"state": {"type": "string", "enum": list(get_args(JobState))}, "q": PART},
    "runs": _span("claimed") | {"q": PART},
    "records": _span("recorded") | {"kind": {"type": "string", "enum": list(get_args(RecordKind))}, "q": PART},
    "dead-letters": _span("given up") | {"q": PART},
    "fires": {"limit": COUNT | {"maximum": ahead.MAX_FIRES, "default": ahead.MAX_FIRES}},
    "audit": {
        "from": AT | {"description": "the first instant; by default the oldest record, or 31 days before `to` for all"},
        "to": AT | {"description": "the instant at which the span ends; by default now"},
        "who": {"type": "string", "description": "a part of the signer's ARN"},
        "name": {"type": "string", "description": "a full name, or the beginning of one up to a point"},
        "kind": {"type": "string", "description": "such as `schedule`, `job` or `access`"},
        "outcome": {"type": "string", "enum": list(access.OUTCOMES)},
        "limit": COUNT | {"maximum": access.MAX_LISTED, "default": DEFAULT_LIMIT},
    },
    "timeline": {
        "from": AT | {"description": "the first instant; by default an hour before `to`, at most 7 days before it"},
        "to": AT | {"description": "the instant at which the span ends; by default now"},
        "workflow": {"type": "string", "description": "a workflow of the namespace, as `app.name` or as its full name"},
        "limit": COUNT | {"maximum": routes_of_views.MAX_SPANS, "default": routes_of_views.DEFAULT_SPANS},
        "ids": {"type": "boolean", "description": "whether to answer the ids of the runs, too"},
    },
    "partitions": {
        "from": {"type": "string", "description": "the first partition: values of the first keys, joined by `/`"},
        "to": {"type": "string", "description": "the last partition, which is included: values as in `from`"},
        "order": {"type": "string", "enum": ["asc", "desc"], "default": "asc"},
    },
    "partition": {"values": {"type": "string", "description": "the value of each key, joined by `/`"}},
    "graph": {
        "around": {"type": "string", "description": "`schedule:NAME`, `workflow:NAME` or `dataset:NAME`, full names"},
        "up": STEPS | {"maximum": routes_of_views.MAX_STEPS["graph"]},
        "down": STEPS | {"maximum": routes_of_views.MAX_STEPS["graph"]},
        "limit": COUNT | {"maximum": routes_of_views.MAX_NODES, "default": routes_of_views.MAX_NODES},
    },
    "lineage": {
        "up": STEPS | {"maximum": routes_of_views.MAX_STEPS["lineage"]},
        "down": STEPS | {"maximum": routes_of_views.MAX_STEPS["lineage"]},
    },
    NS + "/periods": {
        "from": DAY | {"description": "the first day; by default 30 days before `to`, at most 400 days in all"},
        "to": DAY | {"description": "the last day, which is included; by default today"},
        "zone": {"type": "string", "default": "UTC", "description": "the zone of today, and of the days of fires"},
        "schedules": {"type": "string", "description": "only these: up to 100 names, `app.name` or full, with commas"},
        "state": {"type": "string", "enum": list(routes_of_views.STATES)},
        "limit": COUNT | {"maximum": matrix.MAX_SCHEDULES, "default": matrix.MAX_SCHEDULES},
    },
    "days": {
        "from": DAY | {"description": "the first day; by default 26 weeks before `to`, at most 190 days in all"},
        "to": DAY | {"description": "the last day, which is included; by default today"},
        "zone": {"type": "string", "default": "UTC", "description": "the time zone of the days"},
    },
}
HEADERS: dict[str, Json] = {
    IF_MATCH: {"type": "string", "description": "the expected ETag; the answer is 412 if the version is another"},
    IDEMPOTENCY_KEY: {
        "type": "string",
        "pattern": f"^{KEY}$",
        "description": "repeats of a request with the same key count as one request",
    },
}
NULLABLE: Json = {"type": ["string", "null"]}
# The fields of some pages besides the items and the cursor.
MORE: dict[str, Json] = {
    "at_least": {"type": "boolean"},
    "complete_from": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "from": {"type": "string", "format": "date"},
    "to": {"type": "string", "format": "date"},
}
# The bodies of CloudEvents in structured mode. In binary mode the attributes are headers, and any type is a body.
ONE_CLOUDEVENT: Json = {"$ref": SCHEMAS + "CloudEvent"}
CLOUDEVENTS: Json = {
    cloudevents.STRUCTURED: {"schema": ONE_CLOUDEVENT},
    cloudevents.BATCH: {"schema": {"type": "array", "items": ONE_CLOUDEVENT, "maxItems": MAX_EVENTS}},
}
FAULT = "An error: what was expected, what was received, and what to do."
PROBLEM: Json = {
    "type": "object",
    "required": ["code", "message", "field", "hint"],
    "properties": {"code": TEXT, "message": TEXT, "field": NULLABLE, "hint": NULLABLE},
}
ERROR: Json = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            **PROBLEM,
            "properties": {
                **PROBLEM["properties"],
                "problems": {
                    "type": "array",
                    "items": {"$ref": SCHEMAS + "Problem"},
                    "minItems": 2,
                    "description": "every problem of the request, if there are several; the first is the error itself",
                },
            },
        }
    },
}


class OpenApiDocumentView(View):
    """A document of OpenAPI 3.1."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]
    components: dict[str, Any]
    security: list[dict[str, Any]]


def openapi(request: Request) -> Json:
    """Describe this API."""
    return describe()


def describe() -> Json:
    """The OpenAPI document of the routes of the table."""
    paths: Json = {}
    for route in sorted(ROUTES, key=lambda route: (route.path, route.method)):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sluice", "version": "1", "description": "A serverless scheduler for data workflows on AWS."},
        "paths": paths,
        "components": {
            "schemas": _schemas() | {"Error": ERROR, "Problem": PROBLEM},
            "responses": {"Error": {"description": FAULT, **_content(SCHEMAS + "Error")}},
            "securitySchemes": {
                "sigv4": {"type": "apiKey", "in": "header", "name": "Authorization", "description": "AWS Signature 4"}
            },
        },
        "security": [{"sigv4": []}],
    }


def _operation(route: Route) -> Json:
    path = route.path
    summary, _, rest = route.description.replace("``", "`").partition(". ")
    good = {str(status): {"description": "Done.", **_answer(route, status)} for status in route.status}
    operation: Json = {
        "operationId": route.name,
        "summary": summary.rstrip("."),
        "tags": [_tag(path)],
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": TEXT} for name in re.findall(r"{(\w+)}", path)),
            *({"name": name, "in": "query", "schema": _query(name, path)} for name in route.query),
            *({"name": name, "in": "header", "schema": HEADERS[name]} for name in route.headers),
        ],
        "responses": good | {"default": {"$ref": "#/components/responses/Error"}},
    }
    operation["description"] = " ".join([*rest.split(), *_needs(route.needs)])
    operation["x-needs"] = route.needs
    if route.body:
        operation["requestBody"] = {
            "required": route.method == "PUT" or _needs_a_field(route.body),
            **_content(SCHEMAS + route.body),
        }
    if route.cloudevents:
        operation["requestBody"]["content"] |= CLOUDEVENTS
    return operation


def _answer(route: Route, status: int) -> Json:
    """The content of an answer."""
    if status == 204:
        return {}
    name = route.begun if route.begun is not None and status != 200 else route.answer
    if not route.paged:
        return _content(f"{SCHEMAS}{name}")
    items = {"type": "array", "items": {"$ref": f"{SCHEMAS}{name}"}}
    properties = {"items": items, "next_cursor": NULLABLE, **{field: MORE[field] for field in route.more}}
    page = {"type": "object", "required": list(properties), "properties": properties}
    return {"content": {"application/json": {"schema": page}}}


def _needs(needs: Needs) -> list[str]:
    """The sentence about the right that an operation needs."""
    if needs == SIGNED:
        return ["Every signer may send it."]
    if not roles_with(needs):
        return ["Needs an administrator of the installation."]
    roles = " or ".join(roles_with(needs))
    return [f"Needs the role {roles}."]


def _tag(path: str) -> str:
    """The collection that a path belongs to: the last fixed part of the path that a parameter follows."""
    named = re.findall(r"/([a-z.]+)/{", path)
    return str(named[-1]) if named else path.rpartition("/")[2].removesuffix(".json")


def _query(name: str, path: str) -> Json:
    known = (OWN.get(path, {}), OWN.get(path.rpartition("/")[2], {}), QUERY)
    return next(schemas[name] for schemas in known if name in schemas)


def _needs_a_field(body: str) -> bool:
    return any(field.is_required() for field in BODIES[body].model_fields.values())


def _schemas() -> Json:
    """The JSON Schemas of the bodies, the answers, and all documents within them."""
    bodies = {route.body for route in ROUTES if route.body is not None}
    bodies |= {"CloudEvent" for route in ROUTES if route.cloudevents}
    named = {name for route in ROUTES for name in (route.answer, route.begun) if name is not None}
    # Both by the schema of what is read: a default is no required field, and each part has one name for both.
    models = [*(BODIES[name] for name in sorted(bodies)), *(_named(name) for name in sorted(named))]
    read: Any = [(number, "validation", TypeAdapter(model)) for number, model in enumerate(models)]
    _, found = TypeAdapter.json_schemas(read, ref_template=SCHEMAS + "{model}")
    schemas: Json = {
        name: _open(schema) if name.endswith("View") else schema for name, schema in found["$defs"].items()
    }
    text = re.sub(r'View"', '"', json.dumps(schemas))
    # What only stored documents have is in no union that they refer to.
    schemas = {name: each for name, each in json.loads(text).items()
               if name in bodies | named or f'"{SCHEMAS}{name}"' in text}  # fmt: skip
    _distinguish(schemas, schemas)
    return schemas


@cache
def _views() -> Json:
    """The views that answer requests, by their names."""
    names = (f"{package.__name__}.{each.name}" for package in PACKAGES for each in iter_modules(package.__path__))
    modules = (*VIEWS, *map(import_module, names))
    return {name: each for module in modules for name, each in vars(module).items() if name.endswith("View")}


def _named(name: str) -> Any:
    """The model or view of an answer, by the name that its schema has."""
    return getattr(answers, name, None) or _views()[f"{name}View"]


def _open(schema: Json) -> Json:
    """The schema of a view, which may have more fields than it lists."""
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        if name not in required and not field.keys() & {"type", "$ref"}:  # it may be null
            field["default"] = None
    return {**schema, "additionalProperties": True}


def _distinguish(part: Any, schemas: Json) -> None:
    """Give each union of documents that differ in ``type`` a discriminator, by which generated clients choose."""
    children = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for child in children:
        _distinguish(child, schemas)
    refs = [variant.get("$ref", "") for variant in part.get("oneOf", ())] if isinstance(part, dict) else []
    types = {word: ref for ref in refs for word in _types(schemas.get(ref.removeprefix(SCHEMAS), {}))}
    if set(types.values()) == set(refs) and refs:
        part["discriminator"] = {"propertyName": "type", "mapping": types}


def _types(schema: Json) -> list[str]:
    """The values of ``type`` that a document accepts."""
    type_schema = schema.get("properties", {}).get("type", {})
    return [type_schema["const"]] if "const" in type_schema else type_schema.get("enum", [])


def _content(ref: str) -> Json:
    return {"content": {"application/json": {"schema": {"$ref": ref}}}}
