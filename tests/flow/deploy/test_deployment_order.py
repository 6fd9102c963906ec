"""Deployments of an app have an order, and an upload that is worked off undoes nothing acknowledged since (L8).

A slice puts two schedules here. Between any two slices, and before any write of one, another request is acknowledged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import pytest

from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.runs import metrics
from chalicelib.core.writes import PutState
from chalicelib.flow.dags import actions as dags
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy, uploaded
from chalicelib.flow.schedules import together
from chalicelib.flow.system import sweep
from tests.flow.stored import living, note, rows, send, workflows
from tests.support.crash import Crash, lost
from tests.support.ledgers import LedgerBetween
from tests.support.schedules import at
from tests.support.snapshot import Start
from tests.support.world import EMR, SQS, World

APP = "demo.flights"
FIRST, SECOND = "a" * 32, "b" * 32
DAG = {"nodes": {"load": {"workflow": "clean"}}, "trigger": {"type": "time", "expression": "0 5 * * *"}}


def document(word: str, names: str = "abcdef", **fields: Any) -> dict[str, Any]:
    """A document whose schedules have a property with this word; each schedule has one letter."""
    daily = {**at("0 5 * * *", "notify"), "properties": {"word": word}}
    schedules = {name: {**daily, "description": f"{name} of {word}"} for name in names}
    return {"workflows": {"notify": {"target": SQS}, "clean": {"target": EMR}}, "schedules": schedules, **fields}


OLD = document("old", "abcdez", dags={"graph": {**DAG, "enabled": True}})
OLD["workflows"]["gone"] = {"target": SQS}
NEW = document("new", "abcdef", dags={"graph": {**DAG, "enabled": True, "description": "new"}})
NEWER = document("newer", "abcefg", dags={"graph": {**DAG, "enabled": True, "description": "newer"}})


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "BATCH_SIZE", 2)
    monkeypatch.setattr(deploy, "SLICE", 2)


def begin(world: World, sent: dict[str, Any], upload: str, by: str = "tester") -> Deployment:
    """The request of an upload, up to its answer."""
    content = json.dumps(sent).encode()
    world.payloads.uploads[APP, upload] = content
    plan = deploy.checked(world.ports, "demo", "flights", App.model_validate(sent), None)
    return uploaded.begin(world.ports, plan, upload, content, by)


def row(world: World, upload: str) -> Deployment:
    return uploaded.existing(world.ports, APP, upload)


def state(world: World, upload: str) -> str:
    return uploaded.state_of(row(world, upload))


def work(world: World, upload: str) -> bool:
    """One short slice. Returns whether the deployment goes on."""
    world.clock.pass_by("1s")
    uploaded.advance(replace(world.ports, ends_at=world.clock.now()), APP, upload)
    return row(world, upload).state == "RUNNING"


def finish(world: World, *uploads: str) -> None:
    for upload in uploads:
        for _ in range(40):
            if not work(world, upload):
                break
        else:
            raise AssertionError(f"{upload} does not end: {row(world, upload)}")


def words(world: World) -> dict[str, str]:
    """The word of each schedule that exists."""
    found = {}
    for name in living(world):
        state = world.ports.rows.get(ScheduleState, f"{APP}.{name}")
        if state is not None and "~" not in name:
            version = world.ports.rows.get(Version, state.schedule, state.version)
            found[name] = str(version.definition["properties"]["word"]) if version else ""
    return found


def deployed(sent: dict[str, Any]) -> dict[str, str]:
    return {name: schedule["properties"]["word"] for name, schedule in sent["schedules"].items()}


def _with_old(make_world: Callable[..., World]) -> Start:
    """The old document, deployed. It is built once for all tests whose tables are in memory."""
    start = _old_in_memory() if make_world is World else Start(partial(_old, make_world))
    vars(start.again().payloads).pop("upload", None)  # what another test put in its place
    return start


@cache
def _old_in_memory() -> Start:
    return Start(partial(_old, World))


def _old(make_world: Callable[..., World]) -> World:
    world = make_world(wake_shards=1, history_shards=1)
    send(world, OLD)
    world.clock.pass_by("1m")
    return world


def count_of_slices(world: World) -> int:
    begin(world, NEW, FIRST)
    finish(world, FIRST)
    return row(world, FIRST).slices


def test_l8_of_two_uploads_the_later_one_holds(make_world: Callable[..., World]) -> None:
    start = _with_old(make_world)
    slices = count_of_slices(start.again())
    assert slices >= 3
    for before in range(slices):
        for order in product((FIRST, SECOND), repeat=3):
            world = start.again()
            begin(world, NEW, FIRST, "ann")
            for _ in range(before):
                work(world, FIRST)
            begin(world, NEWER, SECOND, "bob")
            for upload in order:
                work(world, upload)
            finish(world, FIRST, SECOND)
            case = (before, order)
            first = row(world, FIRST)
            assert (state(world, FIRST), state(world, SECOND)) == ("SUPERSEDED", "DONE"), case
            assert first.superseded_by.startswith("a request of bob at 20"), case
            assert words(world) == deployed(NEWER), case
            assert (workflows(world), row(world, SECOND).left) == (["clean", "notify"], ()), case
            assert store.get(world.ports, "dag", f"{APP}.graph").document["description"] == "newer", case


def test_l8_an_upload_that_has_ended_is_not_superseded(make_world: Callable[..., World]) -> None:
    world = _with_old(make_world).again()
    begin(world, NEW, FIRST)
    finish(world, FIRST)
    begin(world, NEWER, SECOND)
    finish(world, SECOND)
    assert [row(world, upload).state for upload in (FIRST, SECOND)] == ["DONE", "DONE"]
    assert words(world) == deployed(NEWER)


REQUESTS: dict[str, Callable[[World], object]] = {
    "another document": lambda world: send(world, NEWER),
    "the document that is stored": lambda world: send(world, OLD),
    "one that does not update schedules": lambda world: send(world, OLD, update_schedules=False),
    "the deletion of the app": lambda world: deploy.delete_app(world.ports, APP, "tester"),
    "the deletion of the app, and another document": lambda world: (
        deploy.delete_app(world.ports, APP, "tester"), send(world, NEWER)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_l8_an_upload_undoes_no_later_request_of_its_app(name: str, make_world: Callable[..., World]) -> None:
    start = _with_old(make_world)
    slices = count_of_slices(start.again())
    for before in range(slices):
        world = start.again()
        begin(world, NEW, FIRST)
        for _ in range(before):
            work(world, FIRST)
        REQUESTS[name](world)
        acknowledged = rows(world, "catalog")
        finish(world, FIRST)
        assert state(world, FIRST) == "SUPERSEDED", before
        assert rows(world, "catalog") == acknowledged, before


def test_l8_an_unchanged_document_takes_no_turn(make_world: Callable[..., World]) -> None:
    world = _with_old(make_world).again()
    before = rows(world)
    send(world, OLD)
    assert rows(world) == before


@pytest.mark.parametrize("first", [NEW, NEWER, document("old", "abcz")], ids=["new", "newer", "fewer"])
@pytest.mark.parametrize("is_upload", [False, True], ids=["request", "upload"])
def test_l8_of_two_requests_one_document_holds(
    is_upload: bool, first: dict[str, Any], make_world: Callable[..., World]
) -> None:
    """A second request comes before any write of the first. If that has the turn, it ends with its next write; else it
    plans again."""
    start, number, outcomes = _with_old(make_world), 0, set()
    while True:
        number += 1
        world = start.again()
        plain = world.ports

        def second(world: World = world) -> None:
            if is_upload:
                begin(world, NEWER, SECOND)
            else:
                send(world, NEWER)

        acting = Acting(plain.ledger, second, number)
        world.ports, acting.owner = world.with_ports(ledger=acting), world
        try:
            send(world, first)
            outcome = "deployed"
        except SluiceError as error:
            outcome = error.code
        world.ports = plain
        if acting.left > 0:
            break
        if is_upload:
            finish(world, SECOND)
        assert words(world) == deployed(first if outcome == "deployed" else NEWER), (number, outcome)
        outcomes.add(outcome)
    assert outcomes == {"deployed", "changed_meanwhile"}
    assert number > 8


class Acting(LedgerBetween):
    """Runs an action before the n-th commit that changes a definition or a schedule, with the plain ledger."""

    def __init__(self, inner: Any, act: Callable[[], object], number: int) -> None:
        super().__init__(inner)
        self._act, self.left, self.owner = act, number, None

    def before(self, writes: Any) -> None:
        self.left -= 1
        if self.left == 0 and self.owner is not None:
            owner, kept = self.owner, self.owner.ports
            owner.ports = owner.with_ports(ledger=self.inner)
            self._act()
            owner.ports = kept


def disabled(world: World, name: str) -> None:
    world.disable(name)


def paused(world: World, name: str) -> None:
    world.pause(name)


def deleted(world: World, name: str) -> None:
    world.delete(name)


def put(world: World, name: str) -> None:
    world.put(name, {**at("0 5 * * *", f"{APP}.notify"), "properties": {"word": "mine"}, "enabled": True})


def put_disabled(world: World, name: str) -> None:
    world.put(name, {**at("0 5 * * *", f"{APP}.notify"), "properties": {"word": "mine"}, "enabled": False})


def put_and_deleted(world: World, name: str) -> None:
    put(world, name)
    world.delete(name)


def facts(world: World, name: str) -> tuple[Any, ...]:
    state = world.ports.rows.get(ScheduleState, f"{APP}.{name}")
    return (state.version, state.mode) if state is not None else ()


NEED_ONE = (disabled, paused, deleted)
CHANGES = (disabled, paused, deleted, put, put_disabled, put_and_deleted)
CASES = [(change, name) for change in CHANGES for name in "aefzn" if name != "n" or change not in NEED_ONE]


@pytest.mark.parametrize(("change", "name"), CASES, ids=lambda each: getattr(each, "__name__", each))
def test_l8_an_upload_undoes_no_later_change_of_a_schedule(
    change: Callable[[World, str], None], name: str, make_world: Callable[..., World]
) -> None:
    """``a`` and ``e`` are replaced, ``f`` and ``n`` new, ``n`` by hand alone; ``z`` goes."""
    start = _with_old(make_world)
    slices = count_of_slices(start.again())
    for before in range(slices):
        world = start.again()
        begin(world, NEW, FIRST)
        for _ in range(before):
            work(world, FIRST)
        found = world.ports.rows.get(ScheduleState, f"{APP}.{name}")
        if change in NEED_ONE and (found is None or not found.exists):
            continue  # `z` is deleted by now, `f` not created yet
        due = words(world).get(name) == ("old" if name in "aez" else None) and name != "n"
        world.clock._now -= 1000  # the clock of another Lambda
        change(world, name)
        acknowledged = facts(world, name)
        finish(world, FIRST)
        case = (before, due)
        assert facts(world, name) == acknowledged, case
        assert row(world, FIRST).state == "DONE", case
        others = {other: word for other, word in words(world).items() if other != name}
        assert others == {other: "new" for other in "abcdef" if other != name}, case
        kept = acknowledged[1:] == ("deleted",) and name in "zn"
        kept = kept or (change is paused and not due)  # what is paused is as in the document
        assert (f"schedule {name}" in [each.replace(f"{APP}.", "") for each in row(world, FIRST).left]) == (not kept), (
            case
        )


@pytest.mark.parametrize("change", [disabled, paused, deleted, put])
@pytest.mark.parametrize("name", ["a", "b", "z"])
def test_l8_a_change_before_any_write_of_a_slice_stays(
    change: Callable[[World, str], None], name: str, make_world: Callable[..., World]
) -> None:
    start = _with_old(make_world)
    number = 0
    while True:
        number += 1
        world = start.again()
        begin(world, NEW, FIRST)
        found: list[tuple[Any, ...]] = []

        def act(world: World = world, found: list[tuple[Any, ...]] = found) -> None:
            state = world.ports.rows.get(ScheduleState, f"{APP}.{name}")
            if change is put or (state is not None and state.exists):
                change(world, name)
            found.append(facts(world, name))

        acting = Acting(world.ports.ledger, act, number)
        acting.owner = world
        uploaded.advance(world.with_ports(ledger=acting), APP, FIRST)
        if acting.left > 0:
            break
        world.settle()
        finish(world, FIRST)
        assert facts(world, name) == found[0], number
        assert row(world, FIRST).state == "DONE", number
    assert number > 8


def test_l8_a_schedule_that_sluice_holds_gets_its_new_document(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule whose runs fail is held by Sluice between the acceptance and the slice: its new document is put."""
    start = _with_old(make_world)
    world = start.again()
    begin(world, NEW, FIRST)
    state = world.ports.rows.get(ScheduleState, f"{APP}.a")
    assert state is not None
    held = replace(state, mode="hold", by="sluice", rev=state.rev + 1, updated_at=world.clock.now())
    world.ports.ledger.commit([PutState(held, state)])
    finish(world, FIRST)
    assert (words(world), living(world)["a"]) == (deployed(NEW), "hold")
    assert row(world, FIRST).left == ()


def test_l8_a_dag_and_its_start_that_changed_stay(make_world: Callable[..., World]) -> None:
    start = _with_old(make_world)
    for change in (
        lambda world: dags.put(
            world.ports, f"{APP}.graph", NewDag.model_validate({**_full(DAG), "description": "mine"}), "x"
        ),
        lambda world: dags.delete(world.ports, f"{APP}.graph", "x"),
        lambda world: world.disable("graph~"),
    ):
        world = start.again()
        begin(world, NEW, FIRST)
        work(world, FIRST)
        change(world)
        before = {name: facts(world, name) for name in living(world) if name.startswith("graph~")}
        finish(world, FIRST)
        assert row(world, FIRST).state == "DONE"
        assert f"dag {APP}.graph" in row(world, FIRST).left
        assert {name: facts(world, name) for name in living(world) if name.startswith("graph~")} == before


def test_l8_a_dag_that_is_disabled_before_any_write_stays(make_world: Callable[..., World]) -> None:
    start, number = _with_old(make_world), 0
    while True:
        number += 1
        world = start.again()
        begin(world, NEW, FIRST)
        found: list[tuple[Any, ...]] = []

        def act(world: World = world, found: list[tuple[Any, ...]] = found) -> None:
            world.disable("graph~")
            found.append(facts(world, "graph~"))

        acting = Acting(world.ports.ledger, act, number)
        acting.owner = world
        _quiet(partial(uploaded.advance, world.with_ports(ledger=acting), APP, FIRST))
        if acting.left > 0:
            break
        world.clock.pass_by("5m")
        finish(world, FIRST)
        assert facts(world, "graph~") == found[0], number
        assert row(world, FIRST).state == "DONE", number
    assert number > 8


def _full(dag: dict[str, Any]) -> dict[str, Any]:
    return {**dag, "nodes": {"load": {"workflow": f"{APP}.clean"}}}


def test_l8_definitions_that_changed_after_the_acceptance_stay(make_world: Callable[..., World]) -> None:
    world = _with_old(make_world).again()
    begin(world, NEW, FIRST)
    work(world, FIRST)
    store.put(world.ports, "workflow", f"{APP}.notify", {"target": SQS, "description": "mine"}, "x")
    store.put(world.ports, "workflow", f"{APP}.gone", {"target": SQS, "description": "mine"}, "x")
    finish(world, FIRST)
    assert row(world, FIRST).state == "DONE"
    assert set(row(world, FIRST).left) == {f"workflow {APP}.notify", f"workflow {APP}.gone"}
    assert store.get(world.ports, "workflow", f"{APP}.notify").document["description"] == "mine"
    assert workflows(world) == ["clean", "gone", "notify"]


def test_l8_a_workflow_that_a_later_schedule_needs_stays(make_world: Callable[..., World]) -> None:
    world = _with_old(make_world).again()
    begin(world, NEW, FIRST)
    world.put("mine", {**at("0 5 * * *", f"{APP}.gone"), "enabled": True})
    finish(world, FIRST)
    assert row(world, FIRST).state == "DONE"
    assert row(world, FIRST).left == (f"schedule {APP}.mine", f"workflow {APP}.gone")
    assert living(world)["mine"] == "enabled"
    assert note(world)["counts"]["schedules"] == 6


class Dying(LedgerBetween):
    """Kills the invocation after its n-th commit."""

    def __init__(self, inner: Any, number: int) -> None:
        super().__init__(inner)
        self.left = number

    def after(self, writes: Any, conflict: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash


def deaths(start: Start, play: Callable[[World], None]) -> Iterator[tuple[int, World]]:
    """The world after a death at each commit of what is played."""
    for number in range(1, 100):
        world = start.again()
        plain = world.ports
        dying = Dying(plain.ledger, number)
        world.ports = world.with_ports(ledger=dying)
        if not lost(partial(play, world)):
            assert number > 2
            return
        world.ports = plain
        yield number, world


def recover(world: World) -> None:
    for _ in range(8):
        world.clock.pass_by("1m")
        world.tick()
        world.settle()


def test_l8_the_order_holds_after_deaths_of_the_later_request(make_world: Callable[..., World]) -> None:
    def build() -> World:
        world = make_world(wake_shards=1, history_shards=1)
        send(world, OLD)
        world.clock.pass_by("1m")
        begin(world, NEW, FIRST)
        work(world, FIRST)
        return world

    for number, world in deaths(Start(build), lambda world: begin(world, NEWER, SECOND) and None):
        begin(world, NEWER, SECOND)  # the client repeats its request
        recover(world)
        assert (state(world, FIRST), state(world, SECOND)) == ("SUPERSEDED", "DONE"), number
        assert words(world) == deployed(NEWER), number


def test_l8_a_death_at_any_write_of_a_slice_keeps_later_changes(make_world: Callable[..., World]) -> None:
    def build() -> World:
        world = make_world(wake_shards=1, history_shards=1)
        send(world, OLD)
        world.clock.pass_by("1m")
        begin(world, NEW, FIRST)
        world.hints.sent.clear()
        return world

    for number, world in deaths(Start(build), lambda world: uploaded.advance(world.ports, APP, FIRST)):
        world.disable("a")
        world.delete("e")
        acknowledged = facts(world, "a"), facts(world, "e")
        recover(world)
        assert row(world, FIRST).state == "DONE", number
        assert (facts(world, "a"), facts(world, "e")) == acknowledged, number
        assert {name: word for name, word in words(world).items() if name != "a"} == dict.fromkeys("bcdf", "new"), (
            number
        )


class Denied(RuntimeError):
    """An error of S3, as boto3 raises it."""


@contextmanager
def failing(world: World, error: BaseException) -> Iterator[None]:
    """Let each read of an upload fail. The store of uploads is that of the other tests, too."""

    def upload(*_: Any) -> bytes:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.payloads, "upload", upload)
        yield


DENIED = Denied("AccessDenied: not authorized to perform s3:GetObject")


def test_l8_an_upload_that_always_meets_an_error_fails(make_world: Callable[..., World]) -> None:
    world = _with_old(make_world).again()
    begin(world, NEW, FIRST)
    with failing(world, DENIED):
        for _ in range(24 * 60):
            world.clock.pass_by("1m")
            _quiet(world.tick)
            world.settle(_quiet)
            if row(world, FIRST).state != "RUNNING":
                break
    found = row(world, FIRST)
    assert (found.state, found.error["code"], found.wake_at) == ("FAILED", "internal", None)
    assert "AccessDenied" in found.error["message"]
    assert found.slices == uploaded.MAX_TRIES
    assert found.ended_at is not None
    assert found.ended_at - found.created_at > 5 * HOUR  # it outlasts an outage of some hours
    assert sum(world.metrics.of(metrics.ROWS_PARKED)) == 1
    send(world, OLD)
    before = rows(world)
    send(world, OLD)  # nothing is in progress any more
    assert rows(world) == before


def _quiet(act: Callable[[], object]) -> bool:
    try:
        act()
    except Exception:
        return True
    return False


def test_l8_an_upload_goes_on_after_errors(make_world: Callable[..., World]) -> None:
    world = _with_old(make_world).again()
    begin(world, NEW, FIRST)
    with failing(world, DENIED):
        for _ in range(3):
            with pytest.raises(Denied):
                uploaded.advance(world.ports, APP, FIRST)
            uploaded.advance(world.ports, APP, FIRST)  # it rests: a repeated hint does nothing
            world.clock.pass_by("10m")
    assert (row(world, FIRST).slices, row(world, FIRST).tries) == (3, 3)
    work(world, FIRST)
    assert row(world, FIRST).tries == 0
    finish(world, FIRST)
    assert words(world) == deployed(NEW)


def test_l8_an_upload_whose_slices_all_die_fails_on_record(make_world: Callable[..., World]) -> None:
    world = _with_old(make_world).again()
    begin(world, NEW, FIRST)
    with failing(world, Crash()):
        for _ in range(120):
            world.clock.pass_by("1m")
            lost(world.tick)
            world.settle(lost)
    found = row(world, FIRST)
    assert (found.state, found.slices, found.error["code"]) == ("FAILED", uploaded.MAX_TRIES + 1, "internal")


def test_l8_a_slow_slice_does_not_end_what_another_works_on(make_world: Callable[..., World]) -> None:
    """The lease of a slice ends while it works, and another invocation takes the deployment: its state counts."""
    world = _with_old(make_world).again()
    begin(world, NEW, FIRST)

    def successor() -> None:
        world.clock.pass_by("4m")
        later = Acting(world.ports.ledger, lambda: None, 0)
        with failing(world, Crash()):
            assert lost(lambda: uploaded.advance(world.with_ports(ledger=later), APP, FIRST))

    acting = Acting(world.ports.ledger, successor, 3)
    acting.owner = world
    uploaded.advance(world.with_ports(ledger=acting), APP, FIRST)
    found = row(world, FIRST)
    assert (found.state, found.slices) == ("RUNNING", 2)
    world.clock.pass_by("4m")
    finish(world, FIRST)
    assert words(world) == deployed(NEW)


def test_l8_the_sweep_that_leases_a_slow_slice_delays_nothing(make_world: Callable[..., World]) -> None:
    world = _with_old(make_world).again()
    begin(world, NEW, FIRST)

    def swept() -> None:
        world.clock.pass_by("4m")
        sweep.sweep_all(world.ports)

    acting = Acting(world.ports.ledger, swept, 3)
    acting.owner = world
    uploaded.advance(replace(world.with_ports(ledger=acting), ends_at=world.clock.now()), APP, FIRST)
    assert row(world, FIRST).busy_until == 0
