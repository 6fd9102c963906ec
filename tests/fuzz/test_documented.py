"""schemathesis makes requests of each operation of the OpenAPI document, with sound bodies and ids that exist.

It draws every part of a request from the schemas. A schema cannot say which names exist, so parameters of paths are
those of the stage, and a body is a sound document of its kind, half of them with one of the drawn fields. More than
half of the answers must be 2xx, none 500, and each as the document says. `pytest -s` prints their numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from tests.attacker import cast
from tests.attacker.draw import Draw, Known
from tests.attacker.play import ids_of
from tests.attacker.stage import Answer, Asked, Stage, installed
from tests.fuzz.requests import DOCUMENT

load_all_checks()
CONFORMS = CHECKS.get_by_names(
    ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"]
)
SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(DOCUMENT)))
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]
# They take a person with the duty to approve; all others take an administrator.
APPROVALS = ("approve_job", "refuse_job")
# Texts of queries, which the schemas do not describe any further.
SOUND = {
    "values": "2026/03/01", "app": "{app}", "workflow": "{app}.clean-{mark}", "schedule": "{app}.fed-{mark}",
    "q": "{mark}", "tag": "team", "name": "workflow:{ns}.{app}.clean-{mark}", "zone": "Europe/Paris", "who": "ada",
    "around": "workflow:{ns}.{app}.clean-{mark}", "queued_in": "workflow:{ns}.{app}.clean-{mark}", "kind": "schedule",
}  # fmt: skip


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        installed(patch)
        yield Stage(cast.CASTS[0])


def filled(stage: Stage, case: Case, number: int) -> Asked:
    """The drawn request with ids and names that exist."""
    described = case.operation.definition.raw
    space = stage.spaces[0]
    draw = Draw(Random(f"{case.operation.label}-{number}"), stage.spaces, Known(ids_of(stage)), 0)
    draw.own = space
    parameters, _, _ = draw.inputs(case.operation.path, described, space)
    approver = cast.Person(cast.session(space.word("approver"), "cyd"), "approver")
    person = approver if described["operationId"] in APPROVALS else cast.ADMINISTRATOR
    words = {"app": space.app, "mark": space.mark, "ns": space.name}
    query = {
        each["name"]: SOUND[each["name"]].format(**words) if each["name"] in SOUND else _text(case.query[each["name"]])
        for each in described.get("parameters", ())
        if each["name"] in (case.query or {}) and each["name"] not in ("cursor", "upload")
    }
    body = None
    if "requestBody" in described:
        body = json.dumps(_body(draw, described, case.body))
    return Asked(person, case.method, case.operation.path, parameters, query, {}, body)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _body(draw: Draw, described: Any, drawn: Any) -> Any:
    """A sound body with at most one of the drawn fields that it does not have."""
    sound = draw.body(described["requestBody"]["content"]["application/json"])
    more = [name for name in drawn if name not in sound] if isinstance(drawn, dict) else []
    return sound | ({name: drawn[name] for name in [draw.rng.choice(more)]} if more and draw.rng.random() < 0.5 else {})


def conforms(case: Case, asked: Asked, answer: Answer) -> None:
    request = requests.Request(asked.method, f"https://sluice.example{asked.path}").prepare()
    headers = {name: [str(value)] for name, value in answer.headers.items()}
    content = answer.text.encode()
    case.validate_response(schemathesis.Response(answer.status, headers, content, request, 0.0, False), checks=CONFORMS)


def play(stage: Stage, examples: int) -> Counter[str]:
    """Send so many requests to each operation. Returns the number of answers by class."""
    counts: Counter[str] = Counter()

    def send(case: Case) -> None:
        stage.begin()
        asked = filled(stage, case, counts.total())
        answer = stage.send(asked)
        conforms(case, asked, answer)
        counts[f"{answer.status // 100}xx"] += 1

    settings = hypothesis.settings(
        max_examples=examples, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    for operation in OPERATIONS:
        settings(hypothesis.given(operation.as_strategy(generation_mode=GenerationMode.POSITIVE))(send))()
    print(f"{len(OPERATIONS)} operations: {dict(counts)}")
    return counts


def test_answers_to_sound_requests_are_as_documented(stage: Stage) -> None:
    counts = play(stage, 3)
    assert counts["2xx"] > counts.total() / 2, dict(counts)


@pytest.mark.long
def test_answers_to_many_sound_requests_are_as_documented(stage: Stage) -> None:
    counts = play(stage, 50)
    assert counts["2xx"] > counts.total() / 2, dict(counts)
