"""Nobody approves what he has arranged: who wrote, enabled or triggered it may only refuse it (C16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.access.principal import identified
from chalicelib.core.audit.author import Author
from chalicelib.core.backfills import request
from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dag import NewDag
from chalicelib.core.definitions.message import Message
from chalicelib.core.definitions.schedule import NewSchedule
from chalicelib.core.definitions.workflow import Workflow
from chalicelib.core.errors import SluiceError
from chalicelib.core.jobs import check
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Never
from chalicelib.core.writes import Replace
from chalicelib.flow import lookup
from chalicelib.flow.backfills import backfill, reprocess
from chalicelib.flow.dags import actions as dags
from chalicelib.flow.dags import runs as dag_runs
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from chalicelib.flow.ingest import outbox
from chalicelib.flow.jobs import actions, arrangers
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.runs import dead_letters
from chalicelib.flow.schedules import actions as schedules
from chalicelib.flow.schedules import messages, pauses
from chalicelib.ports import Ports
from tests.acceptance.words import day
from tests.support.answers import explain
from tests.support.archives import exported, imported
from tests.support.dags import dag
from tests.support.schedules import after, at, partitions
from tests.support.world import EMR, SQS, World, flights, full

ANN, EVE, MAX = (f"arn:aws:sts::123456789012:assumed-role/{name}/{name}@example.com" for name in ("ann", "eve", "max"))
MALLORY = "arn:aws:iam::123456789012:user/mallory"
NAMED = {"type": "approval", "people": [ANN, EVE, MAX, MALLORY]}
CLEAN, SEND, NAME = "lake.core.clean", "lake.core.send", "demo.flights.a"
NOON = at("1 12 2 3 *", CLEAN)
ON_EVENT = {"workflow": CLEAN, "enabled": True, "trigger": {"type": "event", "event": "go"}}
HOURS = {"from": "2026-02-26T00:00:00Z", "to": "2026-02-27T00:00:00Z"}


def signed(world: World, by: str) -> Ports:
    """The ports as a request has them whose signer is known."""
    who = identified({"identity": {"userArn": by}})
    return world.with_ports(author=lambda: Author(who, "test"))


def owning(**tuned: Any) -> World:
    """Namespace ``lake`` has workflows that ask for an approval, and grants them to ``demo``. Others wrote both."""
    world = World(authorization="enforce", **tuned)
    asked = {"clean": {"target": EMR, "approval": NAMED}, "send": {"target": SQS, "approval": NAMED}}
    world.deploy({"workflows": asked}, "lake", "core")
    world.grant("lake", {"grants": [{"to": "demo", "run": ["*"]}]})
    world.deploy(flights({"a": {**NOON, "enabled": False}}))
    return world


def put(world: World, by: str, document: dict[str, Any], name: str = NAME) -> None:
    schedules.put(world.ports, name, NewSchedule.model_validate(document), by)


def post(world: World, by: str, kind: str = "go", **payload: Any) -> None:
    world.posted += 1
    envelope = outbox.Envelope(kind, f"n{world.posted}", payload)
    outbox.post(signed(world, by), "demo", [envelope])


def noon(world: World) -> None:
    world.tick()
    world.pass_by("61s")


def waiting(world: World, name: str = "a") -> Job:
    world.settle()
    [job] = [job for job in world.jobs(name) if not check.is_prepared(job)]
    return job


def refused(world: World, by: str, job: Job) -> SluiceError:
    with pytest.raises(SluiceError) as error:
        actions.approve(world.ports, job.job_id, by)
    assert error.value.code == "forbidden"
    return error.value


def arranged(world: World, job: Job, deed: str, by: str = MALLORY) -> None:
    """Mallory has done this, so he cannot approve. Another person does."""
    error = refused(world, by, job)
    assert error.message.startswith("expected an approval by a person who has not arranged the job, got ")
    assert f"{by}, who " in error.message
    assert deed in error.message.partition(", who ")[2].partition(";")[0]
    assert error.hint is not None
    assert ANN in error.hint, "the error says who may"
    why = explain.why_job(world.ports, lookup.find_job(world.ports, job.job_id))["why"]
    assert "may not be approved by " in why
    assert actions.approve(world.ports, job.job_id, EVE).approvals


# -- who wrote it ---------------------------------------------------------------------------------------------------


def test_c16_who_wrote_a_timer_does_not_approve_it() -> None:
    world = owning()
    put(world, MALLORY, {**NOON, "properties": {"table": "salaries"}})
    noon(world)
    arranged(world, waiting(world), f"wrote schedule {NAME}")


@pytest.mark.parametrize("field", [{"description": "of finance"}, {"tags": {"team": "finance"}}, {"owner": "ann"}])
def test_c16_a_description_by_another_leaves_the_author(field: dict[str, Any]) -> None:
    world = owning()
    put(world, MALLORY, {**NOON, "properties": {"table": "salaries"}})
    put(world, ANN, {**NOON, "properties": {"table": "salaries"}, **field})
    noon(world)
    job = waiting(world)
    arranged(world, job, f"wrote schedule {NAME}")
    assert actions.approve(world.ports, job.job_id, ANN), "who wrote the description has arranged nothing"


def test_c16_each_author_of_what_is_in_force_counts_and_no_other() -> None:
    world = owning()
    schedules.enable(world.ports, NAME, "tester")
    put(world, MAX, {**NOON, "properties": {"table": "salaries"}, "priority": 3})
    put(world, MALLORY, {**NOON, "properties": {"table": "all"}, "priority": 3})
    put(world, ANN, {**NOON, "properties": {"table": "all"}, "priority": 4, "timeout": {"after": "2h"}})
    noon(world)
    job = waiting(world)
    refused(world, MALLORY, job)
    refused(world, ANN, job)
    actions.approve(world.ports, job.job_id, MAX)  # nothing of his is in force: the trigger is that of the first put
    put(world, ANN, {**ON_EVENT, "properties": {"table": "all"}, "priority": 4, "timeout": {"after": "2h"}})
    world.post("go")
    job = waiting(world)
    refused(world, MALLORY, job)
    assert actions.approve(world.ports, job.job_id, MAX)


def test_c16_another_property_by_another_leaves_the_author() -> None:
    world = owning()
    schedules.enable(world.ports, NAME, "tester")
    put(world, ANN, {**NOON, "properties": {"table": "small"}})
    put(world, MALLORY, {**NOON, "properties": {"table": "salaries"}})
    put(world, ANN, {**NOON, "properties": {"table": "salaries", "log": "debug"}})
    noon(world)
    arranged(world, waiting(world), f"wrote schedule {NAME}")


def test_c16_a_change_of_another_node_leaves_the_author() -> None:
    world = owning()
    for by, own, other in ((ANN, {}, {}), (MALLORY, {"table": "all"}, {}), (MAX, {"table": "all"}, {"priority": 4})):
        nodes = {"x": {"workflow": "clean", **other}, "y": {"workflow": CLEAN, "properties": own}}
        dags.put(world.ports, full("daily"), NewDag.model_validate(dag("x -> y", nodes=nodes)), by)
    world.upload(day(1))
    world.settle()
    world.finish()
    world.settle()
    [job] = [job for name in lookup.schedules_of(world.ports, "demo.flights") for job in world.jobs(name)]
    assert MAX not in arrangers.words_of(world.ports, job), "he changed the other node alone"
    arranged(world, job, "wrote DAG demo.flights.daily")


def test_c16_who_removes_a_field_is_an_author() -> None:
    world = owning()
    put(world, ANN, {**NOON, "constraints": [{"type": "time_window", "start": "22:00", "end": "06:00"}]})
    put(world, MALLORY, NOON)
    put(world, ANN, {**NOON, "description": "at noon"})
    noon(world)
    arranged(world, waiting(world), f"wrote schedule {NAME}")


def test_c16_who_wrote_the_workflow_does_not_approve_its_jobs() -> None:
    world = owning()
    own = Workflow.model_validate({"target": EMR, "approval": NAMED, "properties": {"table": "all"}})
    store.put(world.ports, "workflow", CLEAN, own.model_dump(mode="json"), MALLORY)
    described = own.model_copy(update={"description": "cleans"})
    store.put(world.ports, "workflow", CLEAN, described.model_dump(mode="json"), ANN)
    put(world, MAX, NOON)
    noon(world)
    job = waiting(world)
    why = explain.why_job(world.ports, job)["why"]
    assert MALLORY not in why.partition("may not be approved by")[2], (
        "readers of the schedule do not learn who writes in another namespace"
    )
    arranged(world, job, f"wrote workflow {CLEAN}")


def test_c16_an_error_names_no_authors_of_another_namespace() -> None:
    world = owning()
    own = Workflow.model_validate({"target": EMR, "properties": {"table": "all"}})
    store.put(world.ports, "workflow", CLEAN, own.model_dump(mode="json"), MAX)
    put(world, MALLORY, {**NOON, "constraints": [NAMED], "properties": {"table": "all"}})
    noon(world)
    job = waiting(world)
    assert "role/max" not in refused(world, MALLORY, job).message
    refused(world, MAX, job)


def test_c16_who_deployed_an_app_does_not_approve_its_jobs() -> None:
    world = owning()
    document = flights({"a": {**NOON, "properties": {"table": "all"}}})
    deploy.deploy(world.ports, "demo", "flights", App.model_validate(document), MALLORY)
    noon(world)
    arranged(world, waiting(world), f"wrote schedule {NAME}")


def test_c16_who_sent_a_message_does_not_approve_it() -> None:
    world = owning()
    store.put(
        world.ports,
        "workflow",
        "demo.flights.send",
        Workflow.model_validate({"target": SQS, "approval": NAMED}).model_dump(mode="json"),
        ANN,
    )
    body = Message.model_validate({"workflow": "send", "due_time": "1m"})
    messages.put(world.ports, "demo.flights", "late", body, MALLORY)
    world.tick()
    world.pass_by("61s")
    arranged(world, waiting(world, "demo.flights.~late"), "wrote message demo.flights.late")


def test_c16_who_wrote_a_dag_does_not_approve_its_nodes() -> None:
    world = owning()
    nodes = {"x": {"workflow": "clean"}, "y": {"workflow": CLEAN}}
    document = NewDag.model_validate(dag("x -> y", nodes=nodes))
    dags.put(world.ports, full("daily"), document, ANN)
    changed = NewDag.model_validate(dag("x -> y", nodes=nodes, catch_up={"mode": "latest"}))
    dags.put(world.ports, full("daily"), changed, MALLORY)
    world.upload(day(1))
    world.settle()
    world.finish()
    world.settle()
    name = next(name for name in lookup.schedules_of(world.ports, "demo.flights") if name.endswith("~y"))
    arranged(world, waiting(world, name), "wrote DAG demo.flights.daily")


def test_c16_who_imported_does_not_approve_what_he_brought() -> None:
    world = owning()
    put(world, ANN, NOON)
    other = World(authorization="enforce")
    imported(other, exported(world), by=MALLORY)
    other.pass_by("5m")
    job = waiting(other)
    refused(other, ANN, job)
    arranged(other, job, f"wrote schedule {NAME}")


@pytest.mark.parametrize("retries", [False, True])
def test_c16_an_export_brings_no_approvals(retries: bool) -> None:
    """Else who edits an export approves in the name of another."""
    world = owning()
    if retries:
        failed(world, approval=NAMED)
    else:
        put(world, ANN, NOON)
        noon(world)
    job = waiting(world)
    given = {f"{ANN} for {CLEAN}": {"by": EVE, "at": world.clock.now(), "why": ""}}
    world.ports.ledger.commit([Replace(replace(job, approvals=given, wake_at=world.clock.now(), rev=job.rev + 1))])
    other = World(authorization="enforce")
    imported(other, exported(world), by=MALLORY)
    other.pass_by("2h")
    assert len(other.runs("a")) == retries
    refused(other, MALLORY, waiting(other))
    actions.approve(other.ports, waiting(other).job_id, EVE)
    other.settle()
    assert len(other.runs("a")) == 1 + retries


# -- who enabled it -------------------------------------------------------------------------------------------------


def test_c16_who_enabled_a_schedule_does_not_approve_its_jobs() -> None:
    world = owning()
    put(world, ANN, {**NOON, "enabled": False})
    schedules.enable(world.ports, NAME, MALLORY)
    noon(world)
    arranged(world, waiting(world), f"enabled schedule {NAME}")


def test_c16_who_enabled_it_counts_after_another_has_resumed_it() -> None:
    world = owning()
    put(world, ANN, {**NOON, "enabled": False})
    schedules.enable(world.ports, NAME, MALLORY)
    world.pause("a")
    pauses.resume(world.ports, NAME, MAX)
    noon(world)
    job = waiting(world)
    refused(world, MAX, job)
    arranged(world, job, f"enabled schedule {NAME}")


def test_c16_who_enabled_a_former_generation_may_approve() -> None:
    world = owning()
    put(world, ANN, {**NOON, "enabled": False})
    schedules.enable(world.ports, NAME, MALLORY)
    world.disable("a")
    schedules.enable(world.ports, NAME, MAX)
    noon(world)
    assert actions.approve(world.ports, waiting(world).job_id, MALLORY)


def test_c16_who_enabled_it_may_approve_a_run_of_another() -> None:
    world = owning()
    put(world, ANN, {**NOON, "enabled": False})
    schedules.enable(world.ports, NAME, MALLORY)
    schedules.run_now(signed(world, MAX), NAME, {}, "r1")
    job = waiting(world)
    refused(world, MAX, job)
    assert actions.approve(world.ports, job.job_id, MALLORY)


def test_c16_who_enabled_it_may_approve_a_redrive_of_another() -> None:
    world = owning()
    put(world, ANN, {**NOON, "workflow": SEND, "enabled": False})
    schedules.enable(world.ports, NAME, MALLORY)
    world.targets.queue.answers = [Never("no such queue")]
    schedules.run_now(signed(world, MAX), NAME, {}, "r1")
    actions.approve(world.ports, waiting(world).job_id, EVE)
    world.settle()
    [letter] = world.ports.runs.dead_letters("schedule", NAME, 9, None).items
    dead_letters.redrive(signed(world, MAX), "demo", letter.run_id)
    job = waiting(world)
    refused(world, MAX, job)
    assert actions.approve(world.ports, job.job_id, MALLORY)


def test_c16_who_enabled_a_dag_may_approve_a_run_of_another() -> None:
    world = owning()
    nodes = {"x": {"workflow": "clean"}, "y": {"workflow": CLEAN}}
    dags.put(world.ports, full("daily"), NewDag.model_validate(dag("x -> y", nodes=nodes, enabled=False)), ANN)
    start = ids.dag_start(full("daily"))
    schedules.enable(world.ports, start, MALLORY)
    schedules.run_now(signed(world, MAX), start, {}, "r1", None, {"year": "2013", "month": "1", "day": "1"})
    for _ in range(2):
        world.settle()
        world.finish()
    name = next(name for name in lookup.schedules_of(world.ports, "demo.flights") if name.endswith("~y"))
    job = waiting(world, name)
    refused(world, MAX, job)
    assert actions.approve(world.ports, job.job_id, MALLORY)


# -- who triggered it -----------------------------------------------------------------------------------------------


def run_now(world: World) -> None:
    schedules.run_now(signed(world, MALLORY), NAME, {"table": "all"}, "r1")


def fills_in(world: World) -> None:
    asked = request.Backfill.model_validate(HOURS)
    backfill.begin(world.ports, NAME, asked, MALLORY, "b1")


WAYS: dict[str, tuple[dict[str, Any], Callable[[World], Any], str]] = {
    "run now": (NOON, run_now, "requested it"),
    "backfill": (at("0 2 * * *", CLEAN), fills_in, "requested it"),
    "event": (ON_EVENT, lambda world: post(world, MALLORY, table="all"), "posted an event that it counts"),
}


@pytest.mark.parametrize("way", WAYS)
def test_c16_who_triggered_a_job_does_not_approve_it(way: str) -> None:
    schedule, comes, deed = WAYS[way]
    world = owning()
    put(world, ANN, schedule)
    comes(world)
    arranged(world, waiting(world), deed)


def test_c16_who_began_a_re_processing_does_not_approve_its_jobs() -> None:
    world = owning()
    put(world, ANN, partitions())
    world.upload(day(1))
    world.settle()
    world.finish()
    put(world, ANN, partitions(workflow=CLEAN, on_update="carry"))
    asked = request.Reprocess.model_validate(
        {"dataset": "flights", "partition": {"year": "2013", "month": "1", "day": "1"}}
    )
    reprocess.begin(world.ports, "demo", asked, MALLORY, "p1")
    arranged(world, waiting(world), "requested it")


def test_c16_each_of_many_who_posted_events_may_not_approve() -> None:
    world = owning()
    put(world, MAX, {**ON_EVENT, "trigger": {"type": "event", "event": "go", "count": 3}})
    for by in (MALLORY, ANN, MALLORY):
        post(world, by)
    job = waiting(world)
    refused(world, ANN, job)
    arranged(world, job, "posted an event that it counts")


def test_c16_who_requested_a_run_does_not_approve_its_rerun() -> None:
    world = owning()
    put(world, ANN, NOON)
    run_now(world)
    actions.approve(world.ports, waiting(world).job_id, EVE)
    world.settle()
    world.finish()
    run_actions.rerun(signed(world, MAX), world.runs("a")[0].run_id, "r2")
    job = waiting(world)
    refused(world, MAX, job)
    arranged(world, job, "requested its first run")


def test_c16_who_redrives_or_requested_it_does_not_approve_it() -> None:
    world = owning()
    put(world, ANN, {**NOON, "workflow": SEND})
    world.targets.queue.answers = [Never("no such queue")]
    run_now(world)
    actions.approve(world.ports, waiting(world).job_id, EVE)
    world.settle()
    [letter] = world.ports.runs.dead_letters("schedule", NAME, 9, None).items
    dead_letters.redrive(signed(world, MAX), "demo", letter.run_id)
    job = waiting(world)
    refused(world, MAX, job)
    arranged(world, job, "requested its first run")


def test_c16_a_retry_needs_no_second_approval() -> None:
    world = owning()
    retried = {"target": EMR, "approval": NAMED, "retries": {"attempts": 2, "delay": "10s"}}
    store.put(world.ports, "workflow", CLEAN, Workflow.model_validate(retried).model_dump(mode="json"), MAX)
    put(world, ANN, NOON)
    run_now(world)
    actions.approve(world.ports, waiting(world).job_id, EVE)
    world.settle()
    world.finish("FAILED")
    world.pass_by("11s")
    assert [run.attempt for run in world.runs("a")] == [1, 2]


def test_c16_who_requested_upstream_may_not_approve_what_follows() -> None:
    world = owning()
    put(world, MAX, at("1 3 * * *"), "demo.flights.first")
    put(world, MAX, after("clean", "join"), "demo.flights.second")
    put(world, ANN, after("join", CLEAN))
    schedules.run_now(signed(world, MALLORY), "demo.flights.first", {}, "r1")
    for _ in range(2):
        world.settle()
        world.finish()
    job = waiting(world)
    assert job.requested_by is None
    arranged(world, job, "requested a run that it follows")


def test_c16_the_author_of_an_upstream_schedule_may_approve() -> None:
    world = owning()
    put(world, MALLORY, at("1 12 2 3 *"), "demo.flights.first")
    put(world, ANN, after("clean", CLEAN))
    noon(world)
    world.finish()
    assert actions.approve(world.ports, waiting(world).job_id, MALLORY)


def test_c16_who_wrote_a_single_instant_upstream_has_begun_it() -> None:
    world = owning()
    put(world, MALLORY, {"workflow": "clean", "enabled": True, "trigger": {"type": "time", "due_time": "1m"}},
        "demo.flights.first")  # fmt: skip
    put(world, ANN, after("clean", CLEAN))
    noon(world)
    world.settle()
    world.finish()
    arranged(world, waiting(world), "wrote schedule demo.flights.first")


def test_c16_the_author_of_a_foreign_upstream_is_not_named() -> None:
    world = owning()
    world.deploy({"workflows": {"up": {"target": EMR}}}, "lake", "more")
    world.grant("lake", {"grants": [{"to": "demo", "run": ["*"], "follow": ["*"]}]})
    once = {"workflow": "up", "enabled": True, "trigger": {"type": "time", "due_time": "1m"}}
    put(world, MALLORY, once, "lake.more.once")
    put(world, ANN, after("lake.more.up", CLEAN))
    noon(world)
    world.settle()
    world.finish()
    job = waiting(world)
    assert "lake.more.once" not in arrangers.words_of(world.ports, job)
    assert "lake.more.once" not in refused(world, ANN, job).message
    arranged(world, job, "wrote schedule lake.more.once")


def test_c16_the_upstream_runs_that_are_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = owning()
    put(world, MAX, at("1 3 * * *"), "demo.flights.first")
    put(world, ANN, after("clean", CLEAN))
    for number in range(12):
        schedules.run_now(signed(world, MAX), "demo.flights.first", {}, f"r{number}")
        world.settle()
        world.finish()
    read: list[Any] = []
    job, get = waiting(world), world.ports.rows.get
    monkeypatch.setattr(world.ports.rows, "get", lambda *of: (read.append(of) if of[0] is Run else None, get(*of))[1])
    assert "follows more than" not in arrangers.words_of(world.ports, job)
    monkeypatch.setattr(arrangers, "MAX_UPSTREAM", 5)
    read.clear()
    words = arrangers.words_of(world.ports, job)
    assert len(read) == 1 + 5
    assert words.endswith("; it follows more than 5 runs, of which only the nearest were read")


def test_c16_who_runs_a_dag_again_does_not_approve_its_nodes() -> None:
    world = owning()
    nodes = {"x": {"workflow": "clean"}, "y": {"workflow": CLEAN}}
    dags.put(world.ports, full("daily"), NewDag.model_validate(dag("x -> y", nodes=nodes)), ANN)
    world.upload(day(1))
    world.settle()
    world.finish("FAILED")
    world.settle()
    [run] = dag_runs.page(world.ports, full("daily"), 9, None).items
    dag_runs.rerun(world.ports, full("daily"), run["run_id"], "failed", None, MALLORY, "r1")
    world.settle()
    world.finish()
    world.settle()
    name = next(name for name in lookup.schedules_of(world.ports, "demo.flights") if name.endswith("~y"))
    arranged(world, waiting(world, name), "requested")


# -- persons --------------------------------------------------------------------------------------------------------

TEAM = "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Team_0123456789abcdef"
LEADS = "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Leads_fedcba9876543210"
SSO = "arn:aws:iam::123456789012:role/AWSReservedSSO_*"


def of_team(**tuned: Any) -> World:
    world = owning(**tuned)
    asked = {"type": "approval", "people": [f"{TEAM}/eve@example.com", f"{LEADS}/ann@example.com", ANN, EVE]}
    own = Workflow.model_validate({"target": EMR, "approval": asked})
    store.put(world.ports, "workflow", CLEAN, own.model_dump(mode="json"), MAX)
    put(world, f"{TEAM}/ann@example.com", {**NOON, "properties": {"table": "all"}})
    noon(world)
    return world


def test_c16_the_sessions_of_a_role_are_one_person() -> None:
    world = of_team()
    error = refused(world, f"{TEAM}/eve@example.com", waiting(world))
    assert "role/AWSReservedSSO_Team_0123456789abcdef (wrote schedule demo.flights.a" in error.message
    assert actions.approve(world.ports, waiting(world).job_id, f"{LEADS}/ann@example.com")


def test_c16_the_sessions_of_a_personal_role_are_persons() -> None:
    world = of_team(personal_roles=(SSO,))
    refused(world, f"{LEADS}/ann@example.com", waiting(world))
    assert actions.approve(world.ports, waiting(world).job_id, f"{TEAM}/eve@example.com")


# -- after the approval ---------------------------------------------------------------------------------------------


def later(**fields: Any) -> dict[str, Any]:
    """A schedule whose jobs wait for the evening, too."""
    evening = [{"type": "time_window", "start": "22:00", "end": "06:00"}]
    return {**NOON, "constraints": evening, "timeout": {"after": "2d"}, "on_update": "carry", **fields}


def test_c16_an_approval_ends_when_what_it_runs_changes() -> None:
    world = owning()
    put(world, ANN, later())
    noon(world)
    actions.approve(world.ports, waiting(world).job_id, MALLORY)
    put(world, MALLORY, later(properties={"table": "all"}))
    world.pass_by("11h")
    job = waiting(world)
    assert world.runs("a") == []
    assert "waits for approval again: what it runs has changed since it was approved by" in job.reason.text
    refused(world, MALLORY, job)
    actions.approve(world.ports, job.job_id, EVE)
    world.settle()
    assert len(world.runs("a")) == 1


def test_c16_a_repeated_approval_stands_after_a_resume() -> None:
    world = owning()
    put(world, ANN, later())
    noon(world)
    job = actions.approve(world.ports, waiting(world).job_id, MALLORY)
    world.pause("a")
    pauses.resume(world.ports, NAME, MALLORY)
    assert actions.approve(world.ports, job.job_id, MALLORY).approvals == job.approvals
    world.pass_by("11h")
    assert len(world.runs("a")) == 1


def test_c16_an_approval_stays_when_only_the_description_changes() -> None:
    world = owning()
    put(world, ANN, later())
    noon(world)
    actions.approve(world.ports, waiting(world).job_id, MALLORY)
    put(world, MALLORY, later(description="in the evening"))
    world.pass_by("11h")
    assert len(world.runs("a")) == 1


def test_c16_an_approval_ends_when_the_workflow_changes() -> None:
    world = owning()
    put(world, ANN, later())
    noon(world)
    actions.approve(world.ports, waiting(world).job_id, EVE)
    own = Workflow.model_validate({"target": EMR, "approval": NAMED, "properties": {"table": "all"}})
    store.put(world.ports, "workflow", CLEAN, own.model_dump(mode="json"), EVE)
    world.pass_by("11h")
    assert world.runs("a") == []
    refused(world, EVE, waiting(world))


def test_c16_who_posts_an_event_later_has_approved_no_longer() -> None:
    world = owning()
    put(world, ANN, {**ON_EVENT, "trigger": {"type": "event", "event": "go", "count": 2}})
    world.post("go")
    actions.approve(world.ports, waiting(world).job_id, MALLORY)
    actions.approve(world.ports, waiting(world).job_id, MALLORY)
    post(world, MALLORY, table="all")
    job = waiting(world)
    assert (job.approved, world.runs("a")) == ({}, [])
    arranged(world, job, "posted an event that it counts")


@pytest.mark.parametrize("by", [MALLORY, None])
def test_c16_an_approval_ends_when_another_event_comes(by: str | None) -> None:
    world = owning()
    put(world, ANN, {**ON_EVENT, "trigger": {"type": "event", "event": "go", "count": 2}})
    post(world, MAX, table="small")
    actions.approve(world.ports, waiting(world).job_id, EVE)
    post(world, by, table="all") if by else world.post("go")
    job = waiting(world)
    assert "waits for approval again: another event came since it was approved by" in job.reason.text
    actions.approve(world.ports, job.job_id, EVE)
    world.settle()
    assert [run.fired_by.text.count("; approved by ") for run in world.runs("a")] == [1]


def failed(world: World, **first: Any) -> dict[str, Any]:
    """The first attempt has failed, and the second is due in an hour. Returns the workflow, which has no approval
    unless ``first`` has it."""
    retried = {"target": EMR, "retries": {"attempts": 3, "delay": "1h"}, **first}
    store.put(world.ports, "workflow", CLEAN, Workflow.model_validate(retried).model_dump(mode="json"), MAX)
    put(world, ANN, NOON)
    noon(world)
    if first:
        actions.approve(world.ports, waiting(world).job_id, EVE)
    world.settle()
    world.finish("FAILED")
    return retried


@pytest.mark.parametrize("asked_first", [True, False])
def test_c16_a_retry_of_changed_work_waits_for_approval(asked_first: bool) -> None:
    world = owning()
    document = failed(world, **({"approval": NAMED} if asked_first else {}))
    document |= {"approval": NAMED, "properties": {"table": "all"}}
    store.put(world.ports, "workflow", CLEAN, Workflow.model_validate(document).model_dump(mode="json"), MALLORY)
    world.pass_by("2h")
    job = waiting(world)
    assert (job.attempt, len(world.runs("a"))) == (2, 1)
    assert ("waits for approval again" if asked_first else "waits for approval") in job.reason.text
    refused(world, MALLORY, job)
    actions.approve(world.ports, job.job_id, EVE)
    world.settle()
    world.finish("FAILED")
    world.pass_by("2h")
    assert [run.attempt for run in world.runs("a")] == [1, 2, 3], "the third attempt runs what was approved"
    assert [run.fired_by.text.count("; approved by ") for run in world.runs("a")][1:] == [1 + asked_first] * 2


# -- installations that do not enforce roles -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["off", "observe"])
def test_c16_without_roles_only_requests_have_persons(mode: str) -> None:
    world = owning()
    world.ports = world.with_ports(settings=World(authorization=mode).ports.settings)
    put(world, MALLORY, NOON)
    noon(world)
    assert actions.approve(world.ports, waiting(world).job_id, MALLORY)
