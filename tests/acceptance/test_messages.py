"""Messages as users describe them: repeating ones, those with an end, the daily backup, a delayed publish (L16)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, SECOND, iso
from chalicelib.flow.fires.emit import emit_due
from chalicelib.flow.runs import dead_letters
from chalicelib.flow.schedules import messages
from tests.acceptance.words import doze, doze_until, reasons, states
from tests.support.clock import NOON
from tests.support.world import SQS, World, flights, full

APP = "demo.flights"


@pytest.fixture(autouse=True)
def app(world: World) -> None:
    world.deploy(flights({}) | {"default_target": SQS})


def sent_after(world: World, name: str, put_at: int = NOON) -> list[float]:
    """When a message was sent, in seconds after it was put, oldest first."""
    return [((run.start_requested_at or 0) - put_at) / SECOND for run in world.runs(f"~{name}")]


def is_gone(world: World, name: str) -> bool:
    try:
        messages.get(world.ports, APP, name)
    except SluiceError as error:
        return error.code == "not_found"
    return False


def bodies(world: World) -> list[Any]:
    return [answer["text"] if answer else None for answer in world.targets.queue.data]


def test_repeating_message(world: World) -> None:
    """`@every 10s`, due in 10 s, 4 repeats: fires at 10, 20, 30, 40 s, then is gone."""
    world.message("beat", schedule="@every 10s", due_time="10s", repeats=4, data={"n": 1})
    world.pass_by("39s")
    assert sent_after(world, "beat") == [10, 20, 30]
    assert not is_gone(world, "beat")

    world.pass_by("10s")
    assert sent_after(world, "beat") == [10, 20, 30, 40]
    assert is_gone(world, "beat")
    assert messages.of_app(world.ports, APP, 100, None).items == ()

    world.pass_by("5m")
    assert sent_after(world, "beat") == [10, 20, 30, 40]
    assert bodies(world) == ['{"n":1}'] * 4
    assert states(world, "~beat") == ["SUCCEEDED"] * 4
    assert world.records("~beat") == []


def test_a_repeating_message_with_ttl_10s_fires_once_at_10s(world: World) -> None:
    world.message("beat", schedule="@every 10s", due_time="10s", repeats=4, ttl="10s")
    world.pass_by("15s")
    assert sent_after(world, "beat") == [10]
    assert is_gone(world, "beat")
    world.pass_by("5m")
    assert sent_after(world, "beat") == [10]


def test_a_repeating_message_accepts_all_three_forms_of_instants(world: World) -> None:
    """An instant, a duration such as `2h30m`, and an ISO 8601 duration mean the same (T3)."""
    for name, due, ttl in (
        ("instant", iso(NOON + 10 * SECOND), iso(NOON + 25 * SECOND)),
        ("span", "10s", "25s"),
        ("iso", "PT10S", "PT25S"),
    ):
        world.message(name, schedule="@every 10s", due_time=due, ttl=ttl)
    world.pass_by("3m")
    for name in ("instant", "span", "iso"):
        assert sent_after(world, name) == [10, 20]
        assert is_gone(world, name)


def test_l16_the_daily_backup_with_data(world: World) -> None:
    database = {"database": "orders", "tables": ["lines", "customers"], "keep": 7}
    world.message("backup", schedule="0 3 * * *", zone="Europe/Paris", data=database)
    three_in_paris = NOON + 14 * HOUR
    for night in range(3):
        doze_until(world, three_in_paris + night * DAY)
        assert len(world.runs("~backup")) == night + 1

    assert sent_after(world, "backup", three_in_paris) == [0, 86_400, 172_800]
    assert bodies(world) == ['{"database":"orders","tables":["lines","customers"],"keep":7}'] * 3
    assert not is_gone(world, "backup")


def test_l16_a_delayed_publish_is_one_message_at_its_time(world: World) -> None:
    world.message("reminder", due_time="20m", target=SQS | {"queue_url": "https://sqs.example/other"}, data="wake up")
    doze_until(world, NOON + 20 * 60 * SECOND)
    [run] = world.runs("~reminder")
    assert (run.start_requested_at, run.nominal_at) == (NOON + 20 * 60 * SECOND,) * 2
    assert run.request.target["queue_url"] == "https://sqs.example/other"
    assert bodies(world) == ["wake up"]
    world.pass_by("2m")
    assert is_gone(world, "reminder")
    assert len(world.targets.queue.messages) == 1


def test_interleaving_17_created_at_5s_due_at_15s_ttl_10s_fires(world: World) -> None:
    """The tick of this minute is over when the message comes, and the next one would be too late."""
    emit_due(world.ports)
    world.clock.pass_by("5s")
    world.message("brief", due_time="10s", ttl="10s")
    world.pass_by("10s")
    assert sent_after(world, "brief") == [15]
    world.pass_by("2m")
    assert is_gone(world, "brief")
    assert len(world.runs("~brief")) == 1


def test_l16_a_deleted_message_can_be_put_again_under_its_name(world: World) -> None:
    for number in (1, 2):
        put_at = world.clock.now()
        world.message("again", due_time="10s", data=number)
        world.pass_by("30s")
        assert sent_after(world, "again", put_at)[-1] == 10
        assert is_gone(world, "again")
    assert bodies(world) == ["1", "2"]


def test_l16_a_message_to_busy_target_is_deleted_once_it_is_sent(world: World) -> None:
    world.targets.queue.refuse = 2
    world.message("late", due_time="10s", data="x")
    world.pass_by("10s")
    assert not is_gone(world, "late")
    world.pass_by("10m")
    assert bodies(world) == ["x"]
    assert is_gone(world, "late")
    assert reasons(world, "~late") == []


def test_l16_an_undelivered_message_stays_until_it_is_redriven(world: World) -> None:
    world.targets.queue.refuse = 1_000
    world.message("lost", due_time="10s", data="x")
    world.pass_by("30m")
    assert states(world, "~lost") == ["FAILED"]
    [letter] = dead_letters.listed(world.ports, "demo", full("~lost"), 10, None).items
    assert not is_gone(world, "lost")

    world.targets.queue.refuse = 0
    dead_letters.redrive(world.ports, "demo", letter.run_id)
    world.settle()
    assert bodies(world) == ["x"]
    doze(world, "1h")
    assert is_gone(world, "lost")


def test_l16_a_message_to_job_is_deleted_when_its_last_run_ended(world: World) -> None:
    world.message("job", due_time="10s", workflow="clean")
    world.pass_by("30s")
    assert states(world, "~job") == ["STARTING"]
    assert not is_gone(world, "job")
    world.finish()
    world.pass_by("2m")
    assert states(world, "~job") == ["SUCCEEDED"]
    assert is_gone(world, "job")
