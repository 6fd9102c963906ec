"""W20: a DAG is paused, resumed, disabled and skipped, and has tags and an owner, by each way in: the API, the command
line, and the test kit of apps. The document is written with the builder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from sluice.builder import app, dag, edge, emr_serverless, event, node, time, workflow
from sluice.cli import frame
from sluice.testing import App
from tests.console.test_commands_act import ran
from tests.docs.session import Session, session
from tests.support import dags

NAME = "demo.flights.nightly"
PATH = "/v1/namespaces/demo/apps/flights/dags/{}/{}"
FIRST = "2026-03-02T13:00:00.000Z"


def document(**tags: str) -> dict[str, Any]:
    """Two DAGs of two nodes: one is started by an event, one by the clock."""
    nodes = {"a": node("step"), "b": node("step")}
    parts = [
        dag(name).on(trigger).nodes(nodes).edges(edge("a", "b")).enabled(True).tags(**tags).owner("ann@example.com")
        for name, trigger in (("nightly", event("go")), ("hourly", time("0 * * * *")))
    ]
    return app("demo", "flights").add(workflow("step").target(emr_serverless("s3://code/a.py")), *parts).document()


class Way(Protocol):
    """How a person acts, and what is seen then."""

    def apply(self, document: dict[str, Any]) -> None: ...
    def act(self, action: str, name: str, **fields: str) -> None: ...
    def go(self) -> None: ...
    def pass_by(self, span: str) -> None: ...
    def succeed(self, node: str) -> None: ...
    def states(self, name: str = "nightly") -> list[dict[str, str]]: ...
    def shown(self, name: str = "nightly") -> dict[str, Any]: ...


class Kit:
    """`sluice.testing`."""

    def __init__(self) -> None:
        self.app = App(document())

    def apply(self, document: dict[str, Any]) -> None:
        self.app.apply(document)

    def act(self, action: str, name: str, **fields: str) -> None:
        getattr(self.app, action)(name, **fields)

    def go(self) -> None:
        self.app.event("go")

    def pass_by(self, span: str) -> None:
        self.app.advance(span)

    def succeed(self, node: str) -> None:
        [run] = [run for run in self.app.runs(f"nightly/{node}") if run.state in ("STARTING", "RUNNING")]
        run.succeed()

    def states(self, name: str = "nightly") -> list[dict[str, str]]:
        return [run.states for run in self.app.dag_runs(name)]

    def shown(self, name: str = "nightly") -> dict[str, Any]:
        from chalicelib.flow.dags.actions import dag_view

        return dag_view(self.app.ports, f"demo.flights.{name}")


class Service:
    """The service in memory. A person acts by requests to its API."""

    def __init__(self, reader: Session) -> None:
        self.world = reader.world
        self.apply(document())

    def apply(self, document: dict[str, Any]) -> None:
        frame.connect().put("/v1/namespaces/demo", {})
        body = {name: value for name, value in document.items() if name not in ("namespace", "app")}
        frame.connect().put("/v1/namespaces/demo/apps/flights", body)
        self.world.settle()

    def act(self, action: str, name: str, **fields: str) -> None:
        frame.connect().post(PATH.format(name, action), dict(fields), repeatable=True)
        self.world.settle()

    def go(self) -> None:
        self.world.post("go")
        self.world.settle()

    def pass_by(self, span: str) -> None:
        self.world.pass_by(span)

    def succeed(self, node: str) -> None:
        dags.ends(self.world, node)

    def states(self, name: str = "nightly") -> list[dict[str, str]]:
        return dags.states(self.world, name)

    def shown(self, name: str = "nightly") -> dict[str, Any]:
        return dict(frame.connect().get(f"/v1/namespaces/demo/apps/flights/dags/{name}"))


class Commands(Service):
    """A person acts by commands."""

    def apply(self, document: dict[str, Any]) -> None:
        Path("app.json").write_text(json.dumps(document))
        ran("sluice apply --yes app.json")
        self.world.settle()

    def act(self, action: str, name: str, **fields: str) -> None:
        mode = f" --mode {fields['mode']}" if "mode" in fields else ""
        ran(f"sluice dags {action} demo.flights.{name}{mode} {fields.get('at', '')}")
        self.world.settle()

    def shown(self, name: str = "nightly") -> dict[str, Any]:
        return dict(json.loads(ran(f"sluice get dag demo.flights.{name} --json")))


@pytest.fixture(params=["kit", "api", "cli"])
def way(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Way]:
    if request.param == "kit":
        yield Kit()
        return
    monkeypatch.chdir(tmp_path)
    with session(tmp_path) as reader:
        yield Service(reader) if request.param == "api" else Commands(reader)


@pytest.mark.parametrize("mode", ["hold", "backlog", "drain"])
def test_w20_a_dag_is_paused_and_resumed_in_each_way(way: Way, mode: str) -> None:
    way.go()
    way.act("pause", "nightly", mode=mode)
    assert (way.shown()["state"], way.states()[0]["b"]) == (mode, "PENDING")
    way.succeed("a")
    goes_on = mode == "drain"
    assert way.states()[0]["b"] in (("STARTING", "RUNNING") if goes_on else ("WAITING",)), "a run that has begun"
    way.go()
    assert len(way.states()) == 1, "no other run begins"
    way.act("resume", "nightly")
    assert way.shown()["state"] == "enabled"
    assert len(way.states()) == (1 if goes_on else 2), "what came during a drain does not count"
    way.succeed("b")
    assert {"a": "SUCCEEDED", "b": "SUCCEEDED"} in way.states()


def test_w20_a_dag_is_disabled_and_enabled_in_each_way(way: Way) -> None:
    way.go()
    way.act("disable", "nightly")
    assert way.shown()["state"] == "disabled"
    way.go()
    way.succeed("a")
    way.succeed("b")
    assert way.states() == [{"a": "SUCCEEDED", "b": "SUCCEEDED"}], "the run that has begun goes on, and no other begins"
    way.act("enable", "nightly")
    assert len(way.states()) == 1
    way.go()
    assert (len(way.states()), way.shown()["enabled"]) == (2, True)


def test_w20_an_occurrence_of_a_dag_is_skipped_in_each_way(way: Way) -> None:
    for at in (FIRST, FIRST.replace("13:", "14:")):
        way.act("skip", "hourly", at=at)
    way.act("unskip", "hourly", at=FIRST.replace("13:", "14:"))
    assert way.shown("hourly")["skips"] == [FIRST]
    way.pass_by("1h1m")
    assert way.states("hourly") == []
    way.pass_by("1h")
    assert len(way.states("hourly")) == 1


def test_w20_a_dag_has_tags_and_an_owner_in_each_way(way: Way) -> None:
    way.apply(document(team="blue"))
    view = way.shown()
    assert (view["tags"], view["owner"]) == ({"team": "blue"}, "ann@example.com")
    way.go()
    way.apply(document(team="red"))
    assert way.shown()["tags"] == {"team": "red"}
    way.succeed("a")
    way.succeed("b")
    assert way.states() == [{"a": "SUCCEEDED", "b": "SUCCEEDED"}], "other tags change no run"
