"""What comes from outside and is not as it should be is refused: nothing hangs, and no other error is raised.

A refusal of a message is `SluiceError`, or KeyError, TypeError or ValueError where the handler says so: then it sets
the message aside at once instead of trying again for hours.
"""

from __future__ import annotations

import contextlib
import copy
import json
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chalicelib import handlers
from chalicelib.aws import alarm_events, hints
from chalicelib.aws.s3 import history, notifications
from chalicelib.aws.tables import items
from chalicelib.core import instants, sizes
from chalicelib.core.errors import SluiceError
from chalicelib.core.events import manifests
from chalicelib.core.events.manifests import BadManifest
from chalicelib.core.targets import registry
from chalicelib.core.time import expressions
from chalicelib.core.triggers import patterns
from chalicelib.web import bodies
from tests.fuzz.values import (
    DURATIONS,
    EXPRESSIONS,
    INSTANTS,
    ZONES,
    bounded,
    damaged,
    documents,
    no_hang,
    texts,
    values,
)
from tests.support import rows
from tests.support.clock import NOON

AT = "2026-03-02T12:00:00Z"
OF_S3 = {
    "Records": [
        {
            "eventName": "ObjectCreated:Put",
            "eventTime": AT,
            "s3": {"bucket": {"name": "lake"}, "object": {"key": "raw/day%3D1/a+b", "size": 7, "eTag": "x"}},
        }
    ]
}
OF_EVENTBRIDGE = {
    "source": "aws.s3", "detail-type": "Object Created", "time": AT,
    "detail": {"bucket": {"name": "lake"}, "object": {"key": "raw/day=1/a", "size": 7, "etag": "x"}},
}  # fmt: skip
OF_INVENTORY = {"destinationBucket": "arn:aws:s3:::lake", "files": [{"key": "data/x.csv.gz", "size": 5}]}
OF_REDSHIFT = {"entries": [{"url": "s3://lake/raw/day=1/x", "mandatory": True}, "y"]}
OF_ALARM = {
    "source": "aws.cloudwatch", "detail-type": "CloudWatch Alarm State Change",
    "resources": ["arn:aws:cloudwatch:us-east-1:123456789012:alarm:full"],
    "detail": {"alarmName": "full", "state": {"value": "ALARM", "reason": "r", "timestamp": AT},
               "previousState": {"value": "OK"}},
}  # fmt: skip
OF_BUS = {"source": "sluice/demo", "detail-type": "closed", "id": "e1", "time": AT, "detail": {"n": [1, {"a": None}]}}
OF_EMR = {
    "source": "aws.emr-serverless", "detail-type": "EMR Serverless Job Run State Change", "time": AT,
    "detail": {"applicationId": "00app", "jobRunId": "j1", "state": "SUCCESS"},
}  # fmt: skip
OF_EXECUTION = {
    "source": "aws.states", "detail-type": "Step Functions Execution Status Change", "time": AT,
    "detail": {"executionArn": "arn:aws:states:us-east-1:123456789012:execution:m:sluice-x", "status": "FAILED",
               "name": "sluice-x", "startDate": 1, "stopDate": 2, "input": "{}", "error": "E", "cause": "c"},
}  # fmt: skip
HINT = {"due": 5, "refs": [["job", "demo.flights.clean", "7", "GATHERING"], ["timer", "demo.flights.clean"]]}
ROWS = [rows.run("demo.flights.clean.7.x", state="SUCCEEDED", ended_at=NOON, wake_at=None)]
STREAMED = [
    {
        "eventName": "INSERT",
        "dynamodb": {"SequenceNumber": "1", "NewImage": {
            name: {kind: content.hex() if isinstance(content, bytes) else content for kind, content in value.items()}
            for name, value in items.to_item(row, 4, 4).items()
        }},
    }
    for row in ROWS
]  # fmt: skip
PATTERN = {"region": [{"prefix": "eu"}, {"anything-but": ["x"]}], "n": [{"numeric": [">", 0, "<=", 5]}],
           "$or": [{"a": [{"exists": False}]}, {"b": {"c": [{"wildcard": "a*b*c"}]}}]}  # fmt: skip
PAYLOAD = {"region": "eu-1", "n": 3, "b": {"c": "axbxc"}}

Parser = Callable[[Any], object]
MALFORMED = (KeyError, TypeError, ValueError)
# A row of the stream is one that Sluice has written, with packed attributes and numbers of any size.
OF_ROWS = (*MALFORMED, AttributeError, ArithmeticError, zlib.error)


def _as_text(parse: Callable[[str], object]) -> Parser:
    return lambda value: parse(value if isinstance(value, str) else json.dumps(value))


def _record_by_record(body: str) -> object:
    return [notifications.objects_of(part) for part in notifications.parts_of(body)]


def _manifest(text: str) -> object:
    return manifests.keys_of(text.encode(errors="surrogatepass"), "lake", "raw/day=1/")


def _of_target(event: Any) -> object:
    return registry.of_event(event).read_event(event)


def _streamed(record: Any) -> object:
    return history.change_of(record), history.audit_record_of(record)


def _pattern(value: Any) -> object:
    if not isinstance(value, dict):
        raise SluiceError("invalid", "the body of a request is checked to be an object")
    patterns.check_pattern(value, "pattern")
    return patterns.Matcher(value).matches(patterns.Flattened(PAYLOAD)), patterns.describe(value)


def _next_fires(text: Any) -> object:
    normal = expressions.normalise(text)
    expressions.parse(normal)
    at: int | None = NOON
    for _ in range(20):
        at = expressions.next_fire(normal, "Europe/Berlin", NOON, at) if at is not None else None
    return expressions.fires_per_day(normal)


# The name of each parser, what it reads, a sound input, and what it may raise besides SluiceError.
PARSERS: dict[str, tuple[Parser, Any, tuple[type[Exception], ...]]] = {
    "objects of S3": (_as_text(notifications.objects_of), st.sampled_from([OF_S3, OF_EVENTBRIDGE]), ()),
    "objects one by one": (_as_text(_record_by_record), st.sampled_from([OF_S3, OF_EVENTBRIDGE]), ()),
    "manifests": (_as_text(_manifest), st.sampled_from([OF_INVENTORY, OF_REDSHIFT]), (BadManifest,)),
    "hints": (_as_text(hints.decode), st.just(HINT), ()),
    "alarms": (alarm_events.change_of, st.just(OF_ALARM), ()),
    "events of the bus": (handlers._read_of_bus, st.sampled_from([OF_BUS, OF_ALARM]), MALFORMED),
    "states of runs": (_of_target, st.sampled_from([OF_EMR, OF_EXECUTION]), (*MALFORMED, AttributeError)),
    "changes of the stream": (_streamed, st.sampled_from(STREAMED), OF_ROWS),
    "patterns": (_pattern, st.just(PATTERN), ()),
    "expressions": (_next_fires, st.one_of(st.sampled_from(EXPRESSIONS), texts()), ()),
    "durations": (instants.duration, st.one_of(st.sampled_from(DURATIONS), texts()), ()),
    "instants": (lambda text: instants.parse_when(text, NOON), st.one_of(st.sampled_from(INSTANTS), texts()), ()),
    "zones": (instants.zone, st.one_of(st.sampled_from(ZONES), texts()), ()),
    "sizes": (
        lambda text: sizes.parse_bytes(text, "bytes"),
        st.one_of(st.sampled_from(("5", "10GB", "1.5 MiB")), texts()),
        (),
    ),
}
# A user's value is text: the models of bodies check that.
OF_TEXT = {"durations", "instants", "zones", "sizes", "expressions"}


def play(name: str, value: Any, counts: Counter[str], long: bool) -> None:
    parse, _, may_raise = PARSERS[name]
    with bounded(documents(value)) if long else no_hang():
        try:
            parse(copy.deepcopy(value))
            counts["read"] += 1
        except (SluiceError, *may_raise):
            counts["refused"] += 1


def fuzz(name: str, examples: int, derandomize: bool) -> Counter[str]:
    counts: Counter[str] = Counter()
    sound = PARSERS[name][1]

    @settings(
        max_examples=examples, derandomize=derandomize, database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(sound if name in OF_TEXT else st.one_of(damaged(sound), damaged(sound), damaged(sound), values()))
    def each(value: Any) -> None:
        play(name, value, counts, long=not derandomize)

    each()
    print(f"{name}: {dict(counts)}")
    return counts


@pytest.mark.parametrize("name", PARSERS)
def test_what_comes_from_outside_is_read_or_refused(name: str) -> None:
    counts = fuzz(name, 75, derandomize=True)
    assert counts["read"] and counts["refused"], f"the fuzz tries one kind of input only: {dict(counts)}"


@pytest.mark.long
@pytest.mark.parametrize("name", PARSERS)
def test_much_that_comes_from_outside_is_read_or_refused(name: str) -> None:
    fuzz(name, 20_000, derandomize=False)


@pytest.mark.parametrize("name", ["objects of S3", "hints"])
def test_a_message_deeper_than_the_stack_is_refused(name: str) -> None:
    with no_hang(), pytest.raises(SluiceError):
        PARSERS[name][0]("[" * 100_000 + "]" * 100_000)


def test_a_model_of_a_body_refuses_any_value_as_invalid() -> None:
    @settings(max_examples=200, derandomize=True, database=None, deadline=None)
    @given(values())
    def each(value: Any) -> None:
        with no_hang(), contextlib.suppress(ValueError):
            bodies.NewEvent.model_validate(value)

    each()
