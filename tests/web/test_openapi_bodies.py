"""GET /v1/openapi.json describes bodies as the API treats them: right ones are accepted, wrong ones are refused."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.examples import constraints_shown
from tests.web.conftest import APP, NS, WEEKDAYS, Api, installation, settle_in
from tests.web.test_openapi import operations
from tests.web.wrong import EMR


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        made.put(f"{APP}/workflows/refine", {"target": EMR})
        made.put(ONE, {"workflow": "refine", "trigger": WEEKDAYS, "enabled": True})
        yield made


@pytest.fixture(scope="module")
def document(api: Api) -> Any:
    return api.get("/v1/openapi.json")


FLIGHTS = {"type": "partition", "dataset": "flights"}
TRIGGERS = [
    WEEKDAYS,
    FLIGHTS | {"count": 2},
    {"type": "size", "dataset": "flights", "bytes": 5},
    {"type": "size", "dataset": "flights", "bytes": "100GB"},
    {"type": "program_status", "workflow": "clean", "statuses": ["FAILED", "KILLED"], "count": 3},
    {"type": "event", "event": "closed", "pattern": {"region": [{"prefix": "eu"}]}, "namespace": "demo", "count": 2},
    {"type": "cloudwatch_alarm", "alarm": "disk full", "state": "OK"},
    {"type": "cloudwatch_alarm", "alarm": "disk full", "state": ["OK", "INSUFFICIENT_DATA"], "count": 2},
    {"type": "quiet", "of": FLIGHTS, "after": "15m"},
    {"type": "elapsed", "after": "4h"},
    {"type": "absent", "of": FLIGHTS, "deadline": "06:00", "days": ["mon"], "zone": "Europe/Paris"},
    {"type": "at_least", "count": 1, "triggers": [FLIGHTS, {"type": "all", "triggers": [FLIGHTS]}], "within": "1d"},
    {"type": "any", "triggers": [FLIGHTS]},
]
CONSTRAINTS = [
    {"type": "concurrency", "max": 1, "group": "heavy", "on_unmet": "cancel_other"},
    {"type": "delay", "after": "5m", "since": "met"},
    {"type": "time_window", "start": "22:00", "end": "06:00", "days": ["sat"], "zone": "Asia/Kolkata"},
    {"type": "since_last_run", "at_least": "1h", "of": "any", "on_unmet": "wait"},
    {"type": "rate", "max": 3, "per": "day"},
    *constraints_shown(),
    {"type": "calendar", "only": ["mon", {"from": "2026-08-01", "to": "2026-08-14"}], "excluding": ["12-25"]},
]
ONE = f"{APP}/schedules/one"
RULES = {"coalesce": False, "zone": "UTC", "pause_after_failures": 3, "on_update": "carry", "enabled": True}
DAY = {"year": "2013", "month": "1", "day": "1"}
PLAYED = [
    FLIGHTS | {"partition": DAY, "at": "2026-11-20T12:00:00Z"},
    {"type": "size", "dataset": "flights", "bytes": "10GB"},
    {"type": "program_status", "workflow": "clean", "status": "FAILED"},
    {"type": "event", "event": "closed", "payload": {"n": 1}, "namespace": "demo"},
    {"type": "cloudwatch_alarm", "alarm": "disk full", "state": "OK"},
    *({"type": kind} for kind in ("time", "elapsed", "absent")),
]
POSTED = {"type": "closed", "id": "7", "payload": {"n": [1]}, "timestamp": "2026-11-20T12:00:00Z"}
APPS = {
    "workflows": {"notify": {"target": {"type": "sqs", "queue_url": "https://sqs.example/q"}}},
    "schedules": {"daily": {"workflow": "notify", "trigger": WEEKDAYS, "timeout": {"after": "2h"}}},
}
RIGHT = [
    ("put", f"{NS}/apps/orders", APPS),
    *(("put", ONE, {"workflow": "refine", "trigger": trigger} | RULES) for trigger in TRIGGERS),
    *(("put", ONE, {"workflow": "refine", "trigger": WEEKDAYS, "constraints": [each]}) for each in CONSTRAINTS),
    ("post", f"{ONE}/pause", {}),
    ("post", f"{ONE}/pause", {"mode": "backlog", "timeouts": "stop"}),
    ("post", f"{ONE}/unskip", {"at": "2100-01-01T05:00:00Z"}),
    *(("post", f"{ONE}/dry-run", {"events": [event]}) for event in PLAYED),
    ("post", f"{NS}/events", {"events": [POSTED, {"type": "closed"}]}),
    ("post", f"{NS}/datasets/flights/partitions", {"partition": DAY | {"day": 2}}),
    ("post", f"{APP}/bulk", {"action": "enable", "tag": "team=a", "workflow": "clean", "state": "hold"}),
]


@pytest.mark.parametrize(("method", "path", "body"), RIGHT)
def test_a_body_valid_by_the_document_is_accepted(api: Api, document: Any, method: str, path: str, body: Any) -> None:
    assert faults(document, method, path, body) == []
    api.put(ONE, {"workflow": "refine", "trigger": WEEKDAYS, "enabled": True})
    api.answer(api.send(method.upper(), path, body), 200, 201, 202)


WRONG = [
    ("put", f"{NS}/apps/orders", {"schedules": {"daily": {"workflow": "notify", "trigger": {"type": "moon"}}}}),
    *(("put", ONE, {"workflow": "refine", "trigger": trigger | {"moon": 1}}) for trigger in TRIGGERS),
    *(("put", ONE, {"workflow": "refine", "trigger": WEEKDAYS, "constraints": [each | {"on_unmet": "moon"}]})
      for each in CONSTRAINTS),
    ("put", ONE, {"workflow": "refine", "trigger": {"type": "quiet", "of": WEEKDAYS, "after": "5m"}}),
    ("put", ONE, {"workflow": "refine", "trigger": FLIGHTS | {"count": 0}}),
    ("post", f"{ONE}/pause", {"mode": "moon"}),
    ("post", f"{ONE}/skip", {}),
    ("post", f"{ONE}/skip", {"at": 7}),
    *(("post", f"{ONE}/dry-run", {"events": [event | {"moon": 1}]}) for event in PLAYED),
    ("post", f"{ONE}/dry-run", {"events": [{"type": "quiet"}]}),
    ("post", f"{ONE}/dry-run", {}),
    ("post", f"{NS}/events", {"events": []}),
    ("post", f"{NS}/events", {"events": [POSTED | {"type": "a b"}]}),
    ("post", f"{NS}/events", {"events": [POSTED | {"id": ""}]}),
    ("post", f"{APP}/bulk", {"action": "moon", "all": True}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body"), WRONG)
def test_a_body_invalid_by_the_document_is_refused(api: Api, document: Any, method: str, path: str, body: Any) -> None:
    assert faults(document, method, path, body)
    api.refused(400, method.upper(), path, body)


def faults(document: Any, method: str, path: str, body: Any) -> list[str]:
    """The errors of a validator that uses only the OpenAPI document."""
    route = re.sub(r"(namespaces|apps|schedules|datasets)/[^/{]+", r"\1/{}", path)
    [found] = [each for (known, how), each in operations(document).items()
               if how == method and re.sub(r"{\w+}", "{}", known) == route]  # fmt: skip
    content = found["requestBody"]["content"]["application/json"]["schema"]
    schema = Draft202012Validator({**content, "components": document["components"]})
    return [fault.message for fault in schema.iter_errors(body)]
