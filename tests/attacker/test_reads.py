"""No read writes: every GET, every request that needs only the right to read, and every dry run (O5).

Requests are drawn for each operation of the table of routes, so a new one is drawn without a change of this file. Each
is sent to the app with ports that refuse every effect, then to the ordinary app. Both answer the same. The signer is an
administrator: a request that is refused for want of a right leaves an audit record, which is deliberate.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product, repeat
from random import Random
from typing import Any

import pytest

from app import app
from chalicelib.core.limits import names
from chalicelib.core.limits.writes import NewEdition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.writes import PutState
from chalicelib.flow import lookup
from chalicelib.ports import Ports
from tests.attacker import cast
from tests.attacker.cast import ADMINISTRATOR
from tests.attacker.draw import NOUNS, Draw, Known
from tests.attacker.play import ids_of
from tests.attacker.stage import Answer, Asked, Stage, installed
from tests.fuzz.requests import DOCUMENT, OPERATIONS, Operation
from tests.support.read_only import Effect, read_only
from tests.web import large_fires

DRAWN = 6  # requests of each operation with drawn queries, for each namespace
REPORT = "history_report/json/day=2026-03-01/as_of=20260302T011500.000Z/"


def _content(operation: Operation) -> Any:
    return operation[2].get("requestBody", {}).get("content", {}).get("application/json")


def _reads(operation: Operation) -> bool:
    return operation[0] == "GET" or operation[2].get("x-needs") == "read"


def _dry_run_in(operation: Operation) -> str | None:
    """Where an operation takes ``dry_run``: in its query, in its body, or nowhere."""
    if any(each["name"] == "dry_run" for each in operation[2].get("parameters", ())):
        return "query"
    kind = _content(operation)["schema"]["$ref"].rpartition("/")[2] if _content(operation) else ""
    return "body" if "dry_run" in DOCUMENT["components"]["schemas"].get(kind, {}).get("properties", {}) else None


PLAYED = {f"{each[0]} {each[1]}": each for each in OPERATIONS if _reads(each) or _dry_run_in(each)}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Jobs and runs of each kind, and what a crash or a restore has left undone."""
    with pytest.MonkeyPatch.context() as patch:
        installed(patch)
        made = Stage(cast.CASTS[0])
        for space in made.spaces[:2]:
            _more(made, space)
        yield made


def _more(stage: Stage, space: cast.Space) -> None:
    world, ports, slow = stage.world, stage.ports, space.full("slow")
    [upload] = ids_of(stage)["upload"][space.name]
    place = {"ns": space.name, "app": space.app}
    query = {"upload": upload, "update_schedules": "true"}
    answer = stage.send(Asked(ADMINISTRATOR, "PUT", "/v1/namespaces/{ns}/apps/{app}", place, query))
    assert answer.status == 202, answer.text
    world.settle()
    world.lake.objects |= {(ports.settings.lake_bucket, f"{REPORT}{name}"): "" for name in ("_SUCCESS", "x.json")}
    started = [run for run in world.targets.emr.runs.values() if run.name.startswith(f"{space.name}.")]
    large_fires.put(slow, events=300, failed=(7,), workflow=space.full("clean"), into=ports)
    failing = next(run for run in started if run.state == "SUBMITTED")
    world.emr_says(failing.id, "FAILED", "exit code 1")
    folder = f"logs/{space.name}/applications/00app/jobs/{failing.id}/SPARK_DRIVER"
    world.payloads.logs[f"{folder}/stderr.gz"] = "ValueError: the file is empty\n"
    before = ports.rows.get(ScheduleState, slow)
    assert before is not None
    left = PutState(replace(before, uncounted=True, rev=before.rev + 1), before)
    assert ports.ledger.commit([left, NewEdition(names.workflow_limit(space.full("clean")), 99)]) is None


def _asked(stage: Stage, name: str) -> Iterator[Asked]:
    """Requests of an operation: for everything in two namespaces that its path may name, with a drawn query and without
    one, and with drawn paths."""
    inputs = PLAYED[name][2].get("parameters", ())
    draw = Draw(Random(name), stage.spaces, Known(ids_of(stage)), odd=0)
    for draw.own in stage.spaces[:2]:
        names = [each["name"] for each in inputs if each["in"] == "path"]
        named = product(*(_named(draw, PLAYED[name][1], each) for each in names))
        for segments in [*named, *repeat((), DRAWN if inputs else 0)]:
            drawn = _drawn(draw, PLAYED[name], dict(zip(names, segments, strict=bool(segments))))
            yield drawn
            if segments and drawn.method == "GET":
                yield replace(drawn, query={})  # two drawn filters may exclude each other


def _named(draw: Draw, path: str, parameter: str) -> list[str]:
    """All that a parameter of a path may name in the draw's own namespace."""
    if parameter == "name":
        return [draw.own.word(noun) for noun in NOUNS[path.split("/{name}")[0].rpartition("/")[2]]]
    parts = {"/dags/": "dag_run", "/dead-letters/": "dead_letter"} if parameter == "run_id" else {}
    kind = next((kind for part, kind in parts.items() if part in path), parameter)
    known = {"ns": [draw.own.name], "app": [draw.own.app], "node": [draw.own.word("last")]}
    return known.get(kind) or draw.known.ids.get(kind, {}).get(draw.own.name, [])


def _drawn(draw: Draw, operation: Operation, segments: dict[str, str]) -> Asked:
    """A request with drawn inputs, but for these parts of its path. A request that writes is a dry run."""
    method, path, described = operation
    parameters, query, headers = draw.inputs(path, described, draw.own)
    body = draw.body(_content(operation)) if _content(operation) else None
    place = None if _reads(operation) else _dry_run_in(operation)
    if place == "query":
        query |= {"dry_run": "true"}
    elif place == "body":
        body |= {"dry_run": True}
    text = None if body is None else json.dumps(body)
    return Asked(ADMINISTRATOR, method, path, parameters | segments, query, {} if place else headers, text)


def _without_effects(stage: Stage, asked: Asked) -> Answer:
    ordinary = stage.ports
    stage.ports = read_only(ordinary)
    try:
        return stage.send(asked)
    finally:
        stage.ports = ordinary


def test_every_get_of_the_table_of_routes_is_played() -> None:
    table = {f"{method} {path}" for path, methods in app.routes.items() for method in methods}
    assert {route for route in table if route.startswith("GET ")} <= set(PLAYED) <= table


@pytest.mark.parametrize("name", PLAYED)
def test_o5_a_read_writes_nothing(stage: Stage, name: str) -> None:
    with stage.notes() as changes:
        answers = [(_without_effects(stage, each), stage.send(each), each) for each in _asked(stage, name)]
    for refusing, ordinary, each in answers:
        assert (refusing.status, refusing.content) == (ordinary.status, ordinary.content), each
    assert changes == []
    assert any(ordinary.status < 300 for _, ordinary, _ in answers), "no request succeeds, so this shows nothing"


def _commits(ports: Ports) -> None:
    ports.ledger.commit([])


def _hints(ports: Ports) -> None:
    ports.hints.send([], 0, 0)


def _puts(ports: Ports) -> None:
    ports.payloads.put_context("x", {})


def _cancels(ports: Ports) -> None:
    ports.targets.of("sqs")


@pytest.mark.parametrize("effect", [_commits, _hints, _puts, _cancels])
def test_an_effect_that_is_planted_in_a_read_is_found(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, effect: Any
) -> None:
    find = lookup.find_run

    def careless(ports: Ports, run_id: str) -> Any:
        effect(ports)
        return find(ports, run_id)

    monkeypatch.setattr(lookup, "find_run", careless)
    run_id = ids_of(stage)["run_id"][stage.spaces[0].name][0]
    with pytest.raises(Effect):
        _without_effects(stage, Asked(ADMINISTRATOR, "GET", "/v1/runs/{run_id}", {"run_id": run_id}))
