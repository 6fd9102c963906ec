"""Messages from their registration to their end (L16), and the path of their data (L13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.core import ids
from chalicelib.core.definitions import data
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.flow import lookup
from chalicelib.flow.definitions import store
from chalicelib.flow.deploy import deploy
from chalicelib.flow.schedules import messages
from chalicelib.flow.views import lists
from tests.support.world import SQS, World, flights, full

APP = "demo.flights"
ELSEWHERE = {"type": "sqs", "queue_url": "https://sqs.example/elsewhere"}
LARGE = "x" * (data.MAX_INLINE + 1)


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    made = make_world(wake_shards=1, history_shards=1)
    made.deploy(flights({}) | {"default_target": SQS})
    return made


def shown(world: World, name: str) -> dict[str, Any]:
    return messages.view(messages.get(world.ports, APP, name))


def refused(act: Callable[[], Any]) -> SluiceError:
    with pytest.raises(SluiceError) as raised:
        act()
    return raised.value


def names(world: World) -> list[str]:
    return [each.schedule_state.schedule for each in messages.of_app(world.ports, APP, 100, None).items]


def test_l16_a_message_is_live_at_once_also_in_current_minute(world: World) -> None:
    world.clock.pass_by("7s")
    world.message("ping", schedule="@every 10s", data={"n": 1})
    put_at = world.clock.now()
    world.pass_by("30s")

    assert [run.start_requested_at for run in world.runs("~ping")] == [
        put_at + step * 10 * SECOND for step in (1, 2, 3)
    ]
    assert world.targets.queue.data == [{"content_type": "application/json", "text": '{"n":1}'}] * 3


def test_l16_a_replaced_message_starts_over_without_old_fires(world: World) -> None:
    world.message("ping", schedule="@every 10s", data="old")
    world.pass_by("15s")
    world.message("ping", schedule="@every 20s", data="new")
    replaced_at = world.clock.now()
    world.pass_by("45s")

    texts = [answer["text"] for answer in world.targets.queue.data if answer]
    assert texts == ["old", "new", "new"]
    assert [run.nominal_at for run in world.runs("~ping")][1:] == [replaced_at + step * 20 * SECOND for step in (1, 2)]
    assert {record.kind for record in world.records("~ping")} == {"DROPPED"}
    assert shown(world, "ping")["version"] == 2


def test_l16_the_last_write_wins_and_if_match_guards_a_version(world: World) -> None:
    world.message("ping", schedule="@daily", description="first")
    world.message("ping", schedule="@daily", description="second")
    assert shown(world, "ping")["description"] == "second"
    stale = refused(lambda: world.message("ping", if_match=1, schedule="@daily", description="third"))
    assert stale.code == "changed_meanwhile"
    world.message("ping", if_match=2, schedule="@daily", description="third")
    assert (shown(world, "ping")["description"], shown(world, "ping")["version"]) == ("third", 3)
    assert refused(lambda: messages.delete(world.ports, APP, "ping", "ada", 2)).code == "changed_meanwhile"
    assert refused(lambda: world.message("other", if_match=1, schedule="@daily")).code == "changed_meanwhile"


def test_l16_a_deleted_message_is_gone_and_sends_nothing(world: World) -> None:
    world.message("ping", schedule="@every 10s")
    world.pass_by("10s")
    messages.delete(world.ports, APP, "ping", "ada")
    world.pass_by("2m")

    assert len(world.targets.queue.messages) == 1
    assert names(world) == []
    for act in (lambda: shown(world, "ping"), lambda: messages.delete(world.ports, APP, "ping", "ada")):
        assert (refused(act).code, refused(act).message) == ("not_found", "no message named 'demo.flights.ping'")
    assert messages.known(world.ports, APP, "ping") == full("~ping")  # its history is kept
    assert len(world.runs("~ping")) == 1


def test_l16_messages_are_listed_by_app_and_not_among_schedules(world: World) -> None:
    world.deploy(flights({}) | {"default_target": SQS}, app="other")
    world.message("b", schedule="@daily", target=ELSEWHERE)
    world.message("a", schedule="@daily")
    world.message("c", app="demo.other", schedule="@daily")

    first = messages.of_app(world.ports, APP, 1, None)
    rest = messages.of_app(world.ports, APP, 1, first.cursor)
    assert [messages.view(each)["name"] for each in (*first.items, *rest.items)] == ["demo.flights.a", "demo.flights.b"]
    assert lookup.schedules_of(world.ports, APP) == []
    workflows = {row.name for row in lookup.definitions_in(world.ports, "workflow", APP)}
    assert workflows == {full("clean"), full("join"), full("notify")}
    assert lists.jobs_of_namespace(world.ports, "demo", 100, None).items == ()


def test_l16_app_default_target_serves_messages_that_name_none(world: World) -> None:
    world.message("plain", due_time="10s")
    world.message("own", due_time="10s", target=ELSEWHERE)
    world.message("job", due_time="10s", workflow="clean")
    world.pass_by("20s")

    assert [run.request.target["queue_url"] for run in world.runs("~plain")] == [SQS["queue_url"]]
    assert [run.request.target["queue_url"] for run in world.runs("~own")] == [ELSEWHERE["queue_url"]]
    [job] = world.runs("~job")
    assert (job.workflow, job.request.target["type"]) == (full("clean"), "emr_serverless")


def test_l16_a_changed_default_target_serves_existing_messages(world: World) -> None:
    world.message("plain", schedule="@every 30s")
    world.deploy(flights({}) | {"default_target": ELSEWHERE})
    world.pass_by("30s")
    assert [run.request.target["queue_url"] for run in world.runs("~plain")] == [ELSEWHERE["queue_url"]]


def test_l16_a_message_without_a_target_is_refused(world: World) -> None:
    world.deploy(flights({}), app="bare")
    error = refused(lambda: world.message("ping", app="demo.bare", due_time="1h"))
    assert (error.field, error.hint) == (
        "target",
        "name a target or a workflow, or deploy the app with a default_target",
    )
    assert refused(lambda: world.message("ping", app="demo.none", due_time="1h")).code == "not_found"
    typo = refused(lambda: world.message("ping", due_time="1h", workflow="claen"))
    assert (typo.code, typo.hint) == ("unknown_reference", "did you mean 'demo.flights.clean'?")
    other = refused(lambda: world.message("ping", due_time="1h", workflow="ops.flights.clean"))
    assert other.message == "expected a workflow of namespace demo, got 'ops.flights.clean'"


def test_l16_a_deployment_changes_no_message(world: World) -> None:
    world.message("ping", schedule="@daily", target=ELSEWHERE)
    world.message("pong", schedule="@daily")
    before = [shown(world, name) for name in ("ping", "pong")]
    report = world.deploy(flights({"new": {"workflow": "clean", "trigger": {"type": "time", "expression": "@daily"}}})
                          | {"default_target": SQS})  # fmt: skip
    assert report["created"] == ["schedule demo.flights.new"]
    assert report["deleted"] == []
    assert [shown(world, name) for name in ("ping", "pong")] == before


def test_l17_a_target_used_by_messages_is_not_deleted(world: World) -> None:
    world.message("ping", schedule="@daily")
    error = refused(lambda: world.deploy(flights({})))
    assert error.code == "in_use"
    assert "the default target of demo.flights used by message demo.flights.ping" in error.message
    world.message("ping", schedule="@daily", workflow="notify")
    world.deploy(flights({}))
    assert world.ports.rows.get(Definition, "workflow", ids.default_workflow(APP)) is None

    left = refused(lambda: store.delete(world.ports, "workflow", full("notify")))
    assert left.message == "expected a workflow that nothing refers to, got one used by message demo.flights.ping"
    without = flights({})
    del without["workflows"]["notify"]
    assert refused(lambda: world.deploy(without)).code == "in_use"
    messages.delete(world.ports, APP, "ping", "ada")
    store.delete(world.ports, "workflow", full("notify"))


def test_l8_deleting_an_app_deletes_its_messages(world: World) -> None:
    for name in ("a", "b"):
        world.message(name, schedule="@every 10s", workflow="notify")
    world.message("c", schedule="@every 10s")
    deploy.delete_app(world.ports, APP, "ada")
    world.pass_by("2m")

    assert world.targets.queue.messages == []
    assert [world.ports.rows.get(ScheduleState, full(f"~{name}")).mode for name in "abc"] == ["deleted"] * 3
    assert world.ports.rows.get(Definition, "workflow", ids.default_workflow(APP)) is None
    world.deploy(flights({}) | {"default_target": SQS})
    assert names(world) == []


def test_l16_a_workflow_of_messages_of_another_app_is_protected(world: World) -> None:
    world.deploy(flights({}), app="other")
    world.message("ping", app="demo.other", schedule="@daily", workflow="flights.clean")
    assert refused(lambda: deploy.delete_app(world.ports, APP, "ada")).code == "in_use"


def test_l13_large_data_is_in_s3_and_sent_by_reference(world: World) -> None:
    world.message("big", due_time="10s", data=LARGE, content_type="text/csv")
    view = shown(world, "big")
    assert "data" not in view
    assert view["content_type"] == "text/csv"
    assert view["data_uri"].startswith("s3://control/data/demo.flights.~big/")
    assert world.payloads.data == {view["data_uri"]: (LARGE.encode(), "text/csv")}

    world.pass_by("10s")
    assert world.targets.queue.data == [{"content_type": "text/csv", "uri": view["data_uri"]}]


def test_l13_large_data_is_in_the_bucket_of_the_app(world: World) -> None:
    schedule = {"workflow": "notify", "data": LARGE, "trigger": {"type": "time", "expression": "@daily"}}
    document = flights({"nightly": schedule}) | {"default_target": SQS, "data_bucket": "our-own-bucket"}
    world.deploy(document)
    world.message("big", due_time="1h", data_base64="AAAA" * 8000)
    assert shown(world, "big")["data_uri"].startswith("s3://our-own-bucket/data/")
    assert [uri[:20] for uri in world.payloads.data] == ["s3://our-own-bucket/"] * 2
    # The same deployment again changes nothing: data that is stored elsewhere is not replaced.
    assert "schedule demo.flights.nightly" in world.deploy(document)["kept"]
    world.put("nightly", schedule)
    schedule_state = world.ports.rows.get(ScheduleState, full("nightly"))
    assert schedule_state is not None
    assert schedule_state.version == 1


def test_l13_data_of_a_schedule_reaches_its_run_for_every_kind(world: World) -> None:
    world.put("nightly", {"workflow": "clean", "data": "day=1", "trigger": {"type": "time", "expression": "@daily"}})
    world.run_now("nightly")
    world.settle()
    [run] = world.runs("nightly")
    assert run.request.data == {"content_type": "text/plain; charset=utf-8", "text": "day=1"}
