"""A deployment of an uploaded document is worked off after its answer, in slices that any invocation continues (L8)."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.audit.author import Author
from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy, uploaded
from chalicelib.ports import Ports
from tests.flow.deploy.test_deploy_many import Plans, many
from tests.flow.stored import living, note, rows, send
from tests.support.crash import Crash, lost
from tests.support.ledgers import Before, LedgerBetween, has_kind
from tests.support.world import World

MakeWorld = Callable[..., World]
SMALL = {"wake_shards": 1, "history_shards": 1}
DOCUMENT = many(250)


def begun(world: World, document: dict[str, Any] = DOCUMENT, upload: str = "u1", by: str = "tester") -> Deployment:
    store.put(world.ports, "namespace", "demo", {}, "tester")
    sent = json.dumps(document).encode()
    world.payloads.uploads["demo.flights", upload] = sent
    plan = deploy.checked(world.ports, "demo", "flights", App.model_validate(document), None)
    return uploaded.begin(world.ports, plan, upload, sent, by)


def row(world: World, upload: str = "u1") -> Deployment:
    return uploaded.existing(world.ports, "demo.flights", upload)


def short_of_time(world: World) -> Ports:
    """The ports of an invocation that ends soon."""
    return replace(world.ports, ends_at=world.clock.now())


def test_l8_an_uploaded_document_is_deployed_after_the_answer(make_world: MakeWorld) -> None:
    world, inline = make_world(**SMALL), make_world(**SMALL)
    send(inline, DOCUMENT)

    first = begun(world)
    assert (first.state, first.counts["created"]) == ("RUNNING", 256)
    assert (living(world), note(world)) == ({}, None)
    world.settle()

    assert (row(world).state, row(world).wake_at) == ("DONE", None)
    assert rows(world, "catalog") == rows(inline, "catalog")
    assert world.payloads.deployments == inline.payloads.deployments


def test_l8_a_slice_ends_with_its_time_and_the_next_continues(world: World) -> None:
    begun(world)
    for count in (100, 200, 250):
        uploaded.advance(short_of_time(world), "demo.flights", "u1")
        assert len(living(world)) == count
    assert (row(world).state, row(world).slices) == ("DONE", 3)


def test_l8_a_doubled_hint_does_nothing_while_a_slice_runs(world: World) -> None:
    begun(world)
    inner = world.ports
    doubled = Before(
        inner.ledger, lambda: uploaded.advance(inner, "demo.flights", "u1"), has_kind("PutState")
    )  # fmt: skip
    watched = Plans(doubled)
    uploaded.advance(world.with_ports(ledger=watched), "demo.flights", "u1")

    assert doubled.acted
    assert sorted(name for names in watched.puts for name in names) == sorted(
        f"demo.flights.{name}" for name in DOCUMENT["schedules"]
    )
    assert (row(world).state, row(world).slices) == ("DONE", 1)
    uploaded.advance(world.ports, "demo.flights", "u1")
    assert row(world).slices == 1


class Dying(LedgerBetween):
    """Kills the invocation after so many commits."""

    def __init__(self, inner: Any, commits: int) -> None:
        super().__init__(inner)
        self.left = commits

    def after(self, writes: Any, conflict: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash


@pytest.mark.parametrize("commits", [1, 2, 7, 14])
def test_l8_a_tick_continues_a_deployment_whose_slice_died(make_world: MakeWorld, commits: int) -> None:
    world, inline = make_world(**SMALL), make_world(**SMALL)
    send(inline, DOCUMENT)
    begun(world)
    world.hints.sent.clear()

    dying = world.with_ports(ledger=Dying(world.ports.ledger, commits))
    assert lost(lambda: uploaded.advance(dying, "demo.flights", "u1"))
    assert row(world).state == "RUNNING"
    for _ in range(5):
        world.clock.pass_by("1m")
        world.tick()
        world.settle()

    assert row(world).state == "DONE"
    names = set(living(inline))
    assert set(living(world)) == names
    assert {state.version for name in names if (state := _state(world, name)) is not None} == {1}
    assert note(world)["counts"] == note(inline)["counts"]


def _state(world: World, name: str) -> Any:
    return world.ports.rows.get(ScheduleState, f"demo.flights.{name}")


def test_l8_an_upload_that_was_replaced_is_not_deployed(world: World) -> None:
    begun(world)
    world.payloads.uploads["demo.flights", "u1"] = json.dumps(many(3)).encode()
    world.settle()
    assert (row(world).state, row(world).error["code"], living(world)) == ("FAILED", "conflict", {})
    with pytest.raises(SluiceError) as caught:
        begun(world, many(3))
    assert caught.value.code == "conflict"


def test_l8_a_document_that_became_wrong_fails_with_its_error(world: World) -> None:
    send(world, {"workflows": {"far": DOCUMENT["workflows"]["notify"]}}, app="demo.other")
    document = many(2)
    document["schedules"]["s000"] = {**document["schedules"]["s000"], "workflow": "demo.other.far"}
    begun(world, document)
    send(world, {"workflows": {}}, app="demo.other")
    world.settle()
    assert row(world).state == "FAILED"
    assert row(world).error["code"] == "unknown_reference"
    assert row(world).error["field"] == "schedules.s000.workflow"


def test_l8_a_repeated_request_begins_one_deployment(world: World) -> None:
    first = begun(world)
    assert begun(world) == first
    world.settle()
    assert begun(world).state == "DONE"
    assert row(world).slices == 1


def test_o5_a_slice_acts_in_the_name_of_the_signer(world: World) -> None:
    acted: list[Author] = []

    def acting(author: Author) -> AbstractContextManager[None]:
        acted.append(author)
        return nullcontext()

    begun(world, many(2))
    world.ports = world.with_ports(acting=acting)
    world.settle()
    assert [(author.operation, author.principal) for author in acted] == [("deploy_app", None)]


def test_l8_a_finished_deployment_expires(world: World) -> None:
    begun(world, many(2))
    world.settle()
    ended = row(world)
    assert ended.ended_at is not None
    assert ended.expires_at == ended.ended_at + uploaded.KEPT
