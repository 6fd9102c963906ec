"""What the row of an uploaded deployment says after each slice, and after what stops one (L8)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.access.principal import Principal
from chalicelib.core.audit.author import Author
from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, MINUTE, Instant, Millis, iso
from chalicelib.core.rows import kinds
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.deployment import Deployment
from chalicelib.core.rows.ref import Ref
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.runs import metrics
from chalicelib.core.why import mention, plain
from chalicelib.core.writes import Delete, Replace
from chalicelib.flow.deploy import deploy, turns, uploaded
from sluice.testing.memory import MemoryHints, MemoryPayloads
from tests.flow.deploy.test_deploy_many import many
from tests.flow.deploy.test_uploaded import begun, row, short_of_time
from tests.flow.stored import living, send
from tests.support.ledgers import Before, has_kind
from tests.support.world import World

APP, UPLOAD = "demo.flights", "u1"
REF = kinds.ref(Deployment, APP, UPLOAD)
MAX_FEW = many(2)


def work(world: World) -> None:
    uploaded.advance(world.ports, APP, UPLOAD)


def stored(world: World, **fields: Any) -> Deployment:
    """The row of the deployment, after a change of it."""
    after = replace(row(world), rev=row(world).rev + 1, **fields)
    assert world.ports.ledger.commit([Replace(after)]) is None
    return after


# -- the upload --------------------------------------------------------------------------------------------------------


class Measured(MemoryPayloads):
    """Keeps how many bytes of uploads were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.most: list[int] = []

    def upload(self, app: str, upload: str, most: int) -> bytes | None:
        self.most.append(most)
        return super().upload(app, upload, most)


def test_l8_an_upload_has_at_most_20_mb(world: World) -> None:
    payloads = Measured()
    ports = world.with_ports(payloads=payloads)
    payloads.uploads[APP, UPLOAD] = b"x" * 20_000_000
    assert len(uploaded.content(ports, APP, UPLOAD)) == 20_000_000
    payloads.uploads[APP, UPLOAD] += b"x"
    with pytest.raises(SluiceError) as refused:
        uploaded.content(ports, APP, UPLOAD)
    assert refused.value.to_dict()["error"] == {
        "code": "too_large",
        "message": "expected a document of at most 20000000 bytes, got more",
        "field": "upload",
        "hint": "divide it into several apps",
    }
    assert payloads.most == [20_000_000] * 2


def test_l8_an_upload_that_is_not_there_is_named(world: World) -> None:
    with pytest.raises(SluiceError) as refused:
        uploaded.content(world.ports, APP, UPLOAD)
    found, begin = refused.value, "begin one: POST /v1/namespaces/NS/apps/APP/uploads for demo.flights"
    assert (found.code, found.hint) == ("not_found", begin)
    assert found.message == "no upload named 'u1'"
    with pytest.raises(SluiceError) as refused:
        uploaded.existing(world.ports, APP, UPLOAD)
    found = refused.value
    assert (found.code, found.hint) == ("not_found", "a deployment is known for 30 days by the id of its upload")
    assert found.message == "no deployment named 'u1'"


def test_l8_two_uploads_with_the_same_bytes_have_one_digest() -> None:
    assert uploaded.digest_of(b"\x00a") == uploaded.digest_of(b"\x00a")
    assert len({uploaded.digest_of(sent) for sent in (b"", b"a", b"b", b"\x00a")}) == 4
    assert len(uploaded.digest_of(b"a")) == 40


# -- the beginning -----------------------------------------------------------------------------------------------------


def test_l8_a_deployment_that_begins_says_what_it_will_do(world: World) -> None:
    now = world.clock.now()
    first = begun(world, MAX_FEW, by="ann")
    assert first == row(world)
    assert (first.app, first.id, first.state, first.by) == (APP, UPLOAD, "RUNNING", "ann")
    assert (first.created_at, first.wake_at, first.busy_until) == (now, now, 0)
    assert (first.update_schedules, first.author, first.slices, first.tries) == (True, {}, 0, 0)
    assert first.digest == uploaded.digest_of(world.payloads.uploads[APP, UPLOAD])
    assert first.counts["created"] == 8
    app = world.ports.rows.get(Definition, "app", APP)
    assert app is not None and app.edition == first.edition != 0
    assert set(world.payloads.stamps[APP, UPLOAD, first.seen]) == {
        "schedule demo.flights.s000",
        "schedule demo.flights.s001",
    }
    assert world.hints.sent == [(now, REF)]


def test_o5_a_deployment_goes_on_in_the_name_of_its_signer(world: World) -> None:
    """Also after the answer: the row keeps the signer."""
    signer = Principal("arn:aws:sts::123456789012:assumed-role/r/ann", "123456789012", "m", "ann", "u", "1.2.3.4", "q")
    acted: list[Author] = []

    def acting(author: Author) -> AbstractContextManager[None]:
        acted.append(author)
        return nullcontext()

    world.ports = world.with_ports(author=lambda: Author(signer, "deploy_upload"))
    assert begun(world, MAX_FEW).author["arn"] == signer.arn
    world.ports = world.with_ports(author=lambda: None, acting=acting)
    work(world)
    assert acted == [Author(signer, "deploy_app")]


@pytest.mark.parametrize("update", [True, False])
def test_l8_the_flag_of_a_request_holds_for_its_slices(world: World, update: bool) -> None:
    """A schedule that users changed is replaced only if the request says so."""
    send(world, MAX_FEW)
    world.put("s000", {**MAX_FEW["schedules"]["s000"], "description": "mended"})
    sent = json.dumps(MAX_FEW).encode()
    world.payloads.uploads[APP, UPLOAD] = sent
    plan = deploy.checked(world.ports, "demo", "flights", App.model_validate(MAX_FEW), update)
    assert uploaded.begin(world.ports, plan, UPLOAD, sent, "tester").update_schedules is update
    work(world)
    assert (row(world).state, row(world).left) == ("DONE", ())
    state = world.ports.rows.get(ScheduleState, f"{APP}.s000")
    assert state is not None
    assert state.version == (3 if update else 2)


def test_l8_a_repeat_hints_a_deployment_only_while_it_runs(world: World) -> None:
    begun(world, MAX_FEW)
    world.hints.sent.clear()
    world.clock.pass_by("1m")
    begun(world, MAX_FEW)
    assert world.hints.sent == [(world.clock.now(), REF)]
    work(world)
    world.hints.sent.clear()
    begun(world, MAX_FEW)
    assert world.hints.sent == []


def test_l8_another_document_under_the_same_id_is_refused(world: World) -> None:
    begun(world, MAX_FEW)
    with pytest.raises(SluiceError) as refused:
        begun(world, many(3))
    assert refused.value.to_dict()["error"] == {
        "code": "conflict",
        "message": "expected the document that upload u1 had, got another",
        "field": "upload",
        "hint": "upload it under another id",
    }


def _plan(world: World, upload: str) -> Any:
    sent = json.dumps(MAX_FEW).encode()
    world.payloads.uploads[APP, upload] = sent
    return deploy.checked(world.ports, "demo", "flights", App.model_validate(MAX_FEW), None), sent


def test_l8_of_two_uploads_accepted_at_once_one_is_refused(world: World) -> None:
    """Both requests have read the app before either takes its turn."""
    begun(world, MAX_FEW)
    work(world)
    (one, sent), (two, _) = _plan(world, "u2"), _plan(world, "u3")
    uploaded.begin(world.ports, one, "u2", sent, "ann")
    with pytest.raises(SluiceError) as refused:
        uploaded.begin(world.ports, two, "u3", sent, "eve")
    assert refused.value.code == "changed_meanwhile"
    assert "app demo.flights" in refused.value.message
    assert world.ports.rows.get(Deployment, APP, "u3") is None


@pytest.mark.parametrize("same", [True, False])
def test_l8_a_request_that_meets_another_is_the_same_or_refused(world: World, same: bool) -> None:
    """The other one comes right before the row is created: the same request again, or a later deployment."""
    begun(world, MAX_FEW)
    work(world)
    plan, sent = _plan(world, "u2")

    def crosses() -> None:
        if same:
            uploaded.begin(world.ports, _plan(world, "u2")[0], "u2", sent, "ann")
        else:
            send(world, many(3))

    def creates(writes: Any) -> bool:
        return any(isinstance(getattr(write, "row", None), Deployment) for write in writes)

    crossed = Before(world.ports.ledger, crosses, creates)
    ports = world.with_ports(ledger=crossed)
    if same:
        assert uploaded.begin(ports, plan, "u2", sent, "ann") == uploaded.existing(world.ports, APP, "u2")
    else:
        with pytest.raises(SluiceError, match="app demo.flights") as refused:
            uploaded.begin(ports, plan, "u2", sent, "ann")
        assert refused.value.code == "changed_meanwhile"
    assert crossed.acted


# -- slices ------------------------------------------------------------------------------------------------------------


def test_l8_a_slice_holds_its_row_for_three_minutes(world: World) -> None:
    """Another invocation goes on when they are over: the slice has died."""
    begun(world, MAX_FEW)
    stored(world, leases=5)
    now = world.clock.now()
    seen: list[Deployment] = []
    ledger = Before(world.ports.ledger, lambda: seen.append(row(world)), has_kind("PutState"))
    uploaded.advance(world.with_ports(ledger=ledger), APP, UPLOAD)
    [held] = seen
    assert (held.busy_until, held.wake_at) == (now + 3 * MINUTE, now + 3 * MINUTE)
    assert (held.slices, held.tries, held.leases) == (1, 1, 0)


@pytest.mark.parametrize(("before", "state"), [(1, "RUNNING"), (0, "DONE"), (-1, "DONE")])
def test_l8_a_busy_row_is_left_to_who_holds_it(world: World, before: Millis, state: str) -> None:
    begun(world, MAX_FEW)
    stored(world, busy_until=world.clock.now() + before)
    work(world)
    assert row(world).state == state


def test_l8_a_hint_for_an_unknown_deployment_does_nothing(world: World) -> None:
    work(world)
    assert world.hints.sent == []


def test_l8_a_slice_of_which_another_took_the_row_does_nothing(world: World) -> None:
    begun(world, MAX_FEW)
    crossed = Before(world.ports.ledger, lambda: stored(world, busy_until=world.clock.now() + 1))
    uploaded.advance(world.with_ports(ledger=crossed), APP, UPLOAD)
    assert (row(world).state, row(world).slices, living(world)) == ("RUNNING", 0, {})


def test_l8_a_slice_out_of_time_is_hinted_again_at_once(world: World) -> None:
    begun(world)
    stored(world, tries=3)
    world.hints.sent.clear()
    now = world.clock.now()
    uploaded.advance(short_of_time(world), APP, UPLOAD)
    left = row(world)
    assert (left.state, left.busy_until, left.wake_at) == ("RUNNING", 0, now)
    assert (left.slices, left.tries) == (1, 0)
    assert world.hints.sent == [(now, REF)]


@pytest.mark.parametrize(("short", "puts"), [(0, 250), (1, 100)])
def test_l8_a_slice_ends_25_seconds_before_its_invocation(world: World, short: Millis, puts: int) -> None:
    begun(world)
    ends_at = world.clock.now() + 25_000 - short
    uploaded.advance(replace(world.ports, ends_at=ends_at), APP, UPLOAD)
    assert len(living(world)) == puts


def test_l8_a_done_deployment_is_due_no_more(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="sluice")
    begun(world, MAX_FEW)
    world.clock.pass_by("1m")
    now = world.clock.now()
    work(world)
    ended = row(world)
    assert (ended.state, ended.busy_until, ended.wake_at, ended.left, ended.error) == ("DONE", 0, None, (), {})
    assert (ended.ended_at, ended.expires_at) == (now, now + 30 * 24 * HOUR)
    app = world.ports.rows.get(Definition, "app", APP)
    assert app is not None and app.edition == 0, "the next deployment need not wait"
    [line] = [vars(record) for record in caplog.records if record.message == "deployment ended"]
    said = {name: line[name] for name in ("app", "deployment", "state", "error", "left")}
    assert said == {"app": APP, "deployment": UPLOAD, "state": "DONE", "error": {}, "left": ()}
    assert uploaded.view(ended) == {
        "name": APP,
        "deployment": UPLOAD,
        "state": "DONE",
        "counts": dict(ended.counts),
        "error": None,
        "superseded_by": None,
        "left_alone": [],
        "created_at": iso(ended.created_at),
        "created_by": "tester",
        "ended_at": iso(now),
    }


def test_l8_a_running_deployment_has_no_end(world: World) -> None:
    assert uploaded.view(begun(world, MAX_FEW))["ended_at"] is None


def test_l8_parts_that_users_changed_are_listed_up_to_a_hundred(world: World) -> None:
    """After each slice."""
    begun(world, many(350))
    for number in range(103):
        name = f"s{number:03d}"
        world.put(name, {**many(1)["schedules"]["s000"], "description": "mine"})
    uploaded.advance(short_of_time(world), APP, UPLOAD)
    assert row(world).state == "RUNNING"
    assert set(row(world).left) <= {f"schedule {APP}.s{number:03d}" for number in range(103)}
    assert len(row(world).left) > 0
    work(world)
    assert row(world).state == "DONE"
    assert row(world).left == tuple(f"schedule {APP}.s{number:03d}" for number in range(100))
    assert uploaded.view(row(world))["left_alone"] == list(row(world).left)


def test_l8_a_workflow_that_a_user_needs_since_is_left_alone(world: World) -> None:
    """The document has no such workflow any more. After the answer a user lets a schedule start it."""
    before = many(2)
    before["workflows"]["gone"] = MAX_FEW["workflows"]["notify"]
    send(world, before)
    begun(world, {**MAX_FEW, "description": "new"})
    world.put("s000", {**MAX_FEW["schedules"]["s000"], "workflow": "gone"})
    work(world)
    assert row(world).state == "DONE"
    assert row(world).left == ("schedule demo.flights.s000", "workflow demo.flights.gone")
    assert world.ports.rows.get(Definition, "workflow", f"{APP}.gone") is not None


# -- the sweep meanwhile -----------------------------------------------------------------------------------------------


def _leased(world: World) -> Callable[[], object]:
    """The sweep leases the row while its slice works."""
    return lambda: stored(world, leases=1, wake_at=world.clock.now() + HOUR)


def test_l8_a_slice_that_the_sweep_has_leased_stores_its_end(world: World) -> None:
    begun(world, MAX_FEW)
    crossed = Before(world.ports.ledger, _leased(world), has_kind("PutState"))
    uploaded.advance(world.with_ports(ledger=crossed), APP, UPLOAD)
    ended = row(world)
    assert (ended.state, ended.wake_at) == ("DONE", None)
    app = world.ports.rows.get(Definition, "app", APP)
    assert app is not None and app.edition == 0


@pytest.mark.parametrize("gone", [False, True])
def test_l8_a_slow_slice_leaves_a_row_that_another_has(world: World, gone: bool) -> None:
    """Another invocation has taken the row, or it has expired. The turn of the app stays with the other."""
    begun(world, MAX_FEW)

    def taken() -> None:
        if gone:
            assert world.ports.ledger.commit([Delete(row(world))]) is None
        else:
            stored(world, slices=2)

    crossed = Before(world.ports.ledger, taken, has_kind("PutState"))
    uploaded.advance(world.with_ports(ledger=crossed), APP, UPLOAD)
    found = world.ports.rows.get(Deployment, APP, UPLOAD)
    assert found is None if gone else (found is not None and (found.state, found.slices) == ("RUNNING", 2))
    app = world.ports.rows.get(Definition, "app", APP)
    assert app is not None and app.edition != 0


# -- failures ----------------------------------------------------------------------------------------------------------


class Down(MemoryPayloads):
    """Uploads cannot be read."""

    def __init__(self, inner: MemoryPayloads, error: Exception) -> None:
        super().__init__()
        self.uploads, self.stamps, self._error = inner.uploads, inner.stamps, error

    def upload(self, app: str, upload: str, most: int) -> bytes | None:
        raise self._error


def failing(world: World, error: Exception, tries: int = 0) -> Deployment:
    """The row after a slice that meets this error, after so many slices that failed."""
    begun(world, MAX_FEW)
    stored(world, tries=tries)
    ports = world.with_ports(payloads=Down(world.payloads, error))
    if tries < 11:
        with pytest.raises(type(error)):
            uploaded.advance(ports, APP, UPLOAD)
    else:
        uploaded.advance(ports, APP, UPLOAD)
    return row(world)


@pytest.mark.parametrize(("tries", "rests"), [(0, 1), (1, 2), (2, 4), (5, 32), (6, 60), (10, 60)])
def test_l8_a_failed_slice_rests_ever_longer(world: World, tries: int, rests: int) -> None:
    now = world.clock.now()
    left = failing(world, RuntimeError("down"), tries)
    until: Instant = now + rests * MINUTE
    assert (left.state, left.busy_until, left.wake_at, left.tries) == ("RUNNING", until, until, tries + 1)


@pytest.mark.parametrize("code", uploaded.LATER)
def test_l8_an_error_that_may_pass_is_tried_again(world: World, code: Any) -> None:
    assert failing(world, SluiceError(code, "later", None, "wait")).state == "RUNNING"


def test_l8_the_twelfth_failure_in_a_row_ends_a_deployment(world: World, caplog: pytest.LogCaptureFixture) -> None:
    now = world.clock.now()
    left = failing(world, RuntimeError("x" * 400), 11)
    why = f"RuntimeError: {'x' * 400}"[:300]
    assert (left.state, left.wake_at, left.busy_until, left.ended_at) == ("FAILED", None, 0, now)
    hint = "mend the cause, then deploy the document again"
    message = f"expected to put the rest of the deployment, got 12 slices that failed; the last one: {why}"
    assert left.error == {"code": "internal", "message": message, "field": None, "hint": hint}
    assert uploaded.view(left)["error"] == left.error
    [line] = [vars(record) for record in caplog.records if record.message == "parked"]
    assert (line["ref"], line["why"], line["hint"]) == (REF, why, hint)
    assert line["levelname"] == "ERROR"
    assert world.metrics.of(metrics.ROWS_PARKED) == [1]


def test_l8_a_deployment_whose_slices_all_died_ends(world: World) -> None:
    begun(world, MAX_FEW)
    stored(world, tries=12)
    work(world)
    left = row(world)
    assert (left.state, left.error["code"], living(world)) == ("FAILED", "internal", {})
    why = "got 12 slices that failed; the last one: each slice ended before it was done, for want of time or memory"
    assert left.error["message"].endswith(why)


def test_l8_a_slice_after_eleven_that_died_still_works(world: World) -> None:
    begun(world, MAX_FEW)
    stored(world, tries=11)
    work(world)
    assert row(world).state == "DONE"


def test_l8_an_error_of_the_document_names_its_own_namespace(world: World) -> None:
    """The answer is read by users who may not see other namespaces."""
    own, other = mention("other", "demo.other.w"), mention("other", "lake.core.w")
    error = SluiceError("invalid", plain("expected ", own, " or ", other), "x", plain("read ", other))
    begun(world, MAX_FEW)
    uploaded.advance(world.with_ports(payloads=Down(world.payloads, error)), APP, UPLOAD)
    found = row(world)
    assert (found.state, found.error["code"], found.wake_at) == ("FAILED", "invalid", None)
    assert "demo.other.w" in found.error["message"]
    assert "lake" not in json.dumps(dict(found.error))


def test_l8_an_upload_that_was_replaced_says_so(world: World) -> None:
    begun(world, MAX_FEW)
    world.payloads.uploads[APP, UPLOAD] = b"{}"
    work(world)
    assert dict(row(world).error) == {
        "code": "conflict",
        "message": "expected the document that was checked, got another",
        "field": "upload",
        "hint": "deploy again",
    }


@pytest.mark.parametrize(("by", "who"), [("ann", "ann"), ("", "an unknown user")])
def test_l8_a_later_deployment_of_the_app_is_named(world: World, by: str, who: str) -> None:
    begun(world, MAX_FEW)
    world.clock.pass_by("1m")
    at = world.clock.now()
    send(world, many(3), by=by)
    world.clock.pass_by("1m")
    work(world)
    found = row(world)
    assert (found.state, uploaded.state_of(found)) == ("FAILED", "SUPERSEDED")
    assert found.superseded_by == f"a request of {who} at {iso(at)}"
    assert (found.wake_at, found.busy_until, found.ended_at) == (None, 0, world.clock.now())
    shown = uploaded.view(found)
    assert (shown["state"], shown["superseded_by"], shown["error"]) == ("SUPERSEDED", found.superseded_by, None)


def test_l8_a_deployment_of_a_deleted_app_is_superseded(world: World) -> None:
    begun(world, MAX_FEW)
    deploy.delete_app(world.ports, APP, "tester")
    work(world)
    assert row(world).superseded_by == "the deletion of the app"
    assert world.ports.rows.get(Definition, "app", APP) is None


# -- what a repeat and a change in between do --------------------------------------------------------------------------


def test_l8_a_repeat_of_an_accepted_upload_writes_nothing(world: World) -> None:
    """Neither a row nor what it saw: later stamps would let it undo what users have changed since."""
    first = begun(world, MAX_FEW)
    world.put("s000", {**MAX_FEW["schedules"]["s000"], "description": "mine"})
    saw = dict(world.payloads.seen(APP, UPLOAD, first.seen) or {})
    world.clock.pass_by("1m")

    def refused() -> None:
        raise AssertionError("expected no write")

    plan = deploy.checked(world.ports, "demo", "flights", App.model_validate(MAX_FEW), None)
    ports = world.with_ports(ledger=Before(world.ports.ledger, refused))
    sent = world.payloads.uploads[APP, UPLOAD]
    assert uploaded.begin(ports, plan, UPLOAD, sent, "tester") == first
    assert world.payloads.seen(APP, UPLOAD, first.seen) == saw
    work(world)
    assert row(world).left == ("schedule demo.flights.s000",)


def test_l8_the_turn_of_an_upload_has_its_signer_and_its_mark(world: World) -> None:
    begun(world, MAX_FEW, by="ada")
    app = world.ports.rows.get(Definition, "app", APP)
    assert app is not None
    assert (app.by, app.edition) == ("ada", turns.mark_of(APP, UPLOAD))


def test_l8_a_change_amid_a_slice_is_left_alone(world: World) -> None:
    """A user puts a schedule after the slice has planned, and before it puts the same one."""
    begun(world, MAX_FEW)
    mine = {**MAX_FEW["schedules"]["s001"], "description": "mine"}
    ledger = Before(world.ports.ledger, lambda: world.put("s001", mine), has_kind("PutState"))
    uploaded.advance(world.with_ports(ledger=ledger), APP, UPLOAD)
    assert ledger.acted
    world.settle()
    assert (row(world).state, row(world).left) == ("DONE", ("schedule demo.flights.s001",))
    state = world.ports.rows.get(ScheduleState, f"{APP}.s001")
    version = world.ports.rows.get(Version, f"{APP}.s001", state.version) if state is not None else None
    assert version is not None and version.definition["description"] == "mine"


class Told(MemoryHints):
    """Keeps the instants of each hint: when it is due, and the present one, from which its delay follows."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[Instant, Instant]] = []

    def send(self, refs: Sequence[Ref], due: Instant, now: Instant) -> None:
        self.told.append((due, now))
        super().send(refs, due, now)


def test_l8_the_next_slice_is_hinted_for_now(world: World) -> None:
    begun(world)
    hints, now = Told(), world.clock.now()
    uploaded.advance(replace(short_of_time(world), hints=hints), APP, UPLOAD)
    assert hints.told == [(now, now)]
