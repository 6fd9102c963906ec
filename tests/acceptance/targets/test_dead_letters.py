"""Dead letters: listed, redriven under the same id, dropped on record (E6)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import MINUTE, iso
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.run import Record
from chalicelib.flow.runs import dead_letters
from tests.acceptance.undelivered import NEVER, ONCE, app, letters, redrive, undelivered
from tests.acceptance.words import day, event, on, partition, rate, states, time, window
from tests.support.ledgers import Before
from tests.support.world import EMR, SQS, World, flights, full

HTTP = {"type": "http", "url": "https://example.com/hook"}


# -- redriven ------------------------------------------------------------------------------------------------------


def test_e6_a_redrive_delivers_under_the_same_id_as_next_attempt(world: World) -> None:
    letter = undelivered(world)
    assert redrive(world, letter) == 2
    assert letters(world) == []
    world.settle()

    assert [run.attempt for run in world.ports.runs.attempts(letter.run_id)] == [1, 2]
    assert states(world, "tick") == ["FAILED", "SUCCEEDED"]
    [(first, *_), (second, attempt, due)] = world.targets.queue.tried
    assert (first, second, attempt, due) == (letter.run_id, letter.run_id, 2, letter.nominal_at)
    [(_, context)] = world.targets.queue.messages
    assert (context["attempt"], context["logical_start_time"]) == (2, letter.nominal_at)


def test_e6_two_simultaneous_redrives_make_one(world: World) -> None:
    letter = undelivered(world)
    seen: list[Any] = []
    rows = world.ports.rows

    class SlowRows:
        """Another user redrives the letter, and its job even runs, right before this request's transaction."""

        def get(self, row: type[Any], *values: Any) -> Any:
            if row is Definition and not seen:
                seen.append(redrive(world, letter))
                world.settle()
            return rows.get(row, *values)

    slow = world.with_ports(rows=SlowRows())
    assert dead_letters.redrive(slow, "demo", letter.run_id) == 2
    world.settle()
    assert seen == [2]
    assert len(world.targets.queue.messages) == 1
    assert (states(world, "tick"), world.jobs("tick"), letters(world)) == (["FAILED", "SUCCEEDED"], [], [])
    assert redrive(world, letter) == 2, "a repeat gets the answer of the first"
    world.settle()
    assert len(world.targets.queue.messages) == 1


def test_e6_an_event_dropped_during_its_redrive_is_delivered(world: World) -> None:
    letter = undelivered(world)

    def redriven() -> None:
        redrive(world, letter)
        world.settle()

    crossed = world.with_ports(ledger=Before(world.ports.ledger, redriven))
    with pytest.raises(SluiceError, match="no dead letter") as answer:
        dead_letters.drop(crossed, "demo", letter.run_id, "ada")
    assert "redriven or dropped already" in str(answer.value.hint)
    assert (states(world, "tick"), len(world.targets.queue.messages)) == (["FAILED", "SUCCEEDED"], 1)
    assert world.ports.rows.get(Record, letter.run_id) is None


def test_e6_an_event_redriven_during_its_drop_is_not_delivered(world: World) -> None:
    letter = undelivered(world)
    dropped = Before(world.ports.ledger, lambda: dead_letters.drop(world.ports, "demo", letter.run_id, "ada"))
    with pytest.raises(SluiceError, match="no dead letter"):
        dead_letters.redrive(world.with_ports(ledger=dropped), "demo", letter.run_id)
    world.settle()
    assert (world.jobs("tick"), world.targets.queue.messages, letters(world)) == ([], [], [])
    record = world.ports.rows.get(Record, letter.run_id)
    assert record is not None
    assert (record.kind, record.reason.text) == ("DROPPED", "its dead letter was dropped by ada: no such queue")


def test_e6_a_failed_redrive_is_dead_letter_again_and_retryable(world: World) -> None:
    letter = undelivered(world)
    redrive(world, letter)
    world.targets.queue.answers = [NEVER]
    world.settle()
    [again] = letters(world)
    assert (again.run_id, again.attempt) == (letter.run_id, 2)
    assert redrive(world, again) == 3
    world.settle()
    assert states(world, "tick") == ["FAILED", "FAILED", "SUCCEEDED"]


def test_e6_a_redrive_uses_the_present_target_of_the_workflow(world: World) -> None:
    letter = undelivered(world)
    world.deploy(flights({"tick": on(ONCE, "notify")}, notify={"target": HTTP}))
    redrive(world, letter)
    world.settle()
    assert world.runs("tick")[-1].request.target["url"] == HTTP["url"]


def test_e6_a_redrive_sends_gathered_events_after_replacement(world: World) -> None:
    world.deploy(app(trigger=partition(count=2)))
    world.targets.queue.answers = [NEVER]
    for number in (1, 2):
        world.upload(day(number))
        world.settle()
    [letter] = letters(world)
    world.put("tick", on(partition(count=3), "notify"))
    redrive(world, letter)
    world.settle()
    [(run_id, context)] = world.targets.queue.messages
    assert (run_id, context["attempt"]) == (letter.run_id, 2)
    assert [answer["partition"]["day"] for answer in context["events"]] == ["1", "2"]


def test_e6_a_redrive_works_if_disabled_but_not_if_deleted(world: World) -> None:
    letter = undelivered(world)
    world.disable("tick")
    redrive(world, letter)
    world.settle()
    assert states(world, "tick") == ["FAILED", "SUCCEEDED"]

    world.enable("tick")
    world.targets.queue.answers = [NEVER]
    world.run_now("tick")
    world.settle()
    [letter] = letters(world)
    world.delete("tick")
    with pytest.raises(SluiceError) as caught:
        redrive(world, letter)
    assert (caught.value.code, "schedule demo.flights.tick was deleted" in caught.value.message) == ("conflict", True)
    assert letters(world) == [letter]


def test_e6_a_dropped_redrive_that_waits_keeps_the_dead_letter(world: World) -> None:
    world.deploy(app(window("22:00", "06:00"), trigger=event("go")))
    world.clock.wait_until(world.clock.now() + 11 * 60 * MINUTE)
    world.targets.queue.answers = [NEVER]
    world.post("go")
    world.settle()
    [letter] = letters(world)
    world.clock.wait_until(world.clock.now() + 12 * 60 * MINUTE)
    redrive(world, letter)
    world.settle()
    assert [job.kind for job in world.jobs("tick")] == ["redrive"], "it waits at constraints like any other"

    world.put("tick", on(event("stop"), "notify"))
    [back] = letters(world)
    assert (back.run_id, back.attempt) == (letter.run_id, letter.attempt)
    assert back.reason.text == "no such queue; not delivered again: the schedule was replaced or enabled again"
    assert redrive(world, back) == 2
    world.settle()
    assert len(world.targets.queue.messages) == 1


def test_e6_a_redrive_waits_in_the_queues_of_its_limits(world: World) -> None:
    world.deploy(app(rate(1, "hour"), trigger=event("go")))
    world.targets.queue.answers = [NEVER]
    world.post("go")
    world.settle()
    [letter] = letters(world)
    redrive(world, letter)
    world.settle()
    [job] = world.jobs("tick")
    assert (job.kind, job.state) == ("redrive", "PENDING_LAUNCH")
    world.clock.wait_until(world.clock.now() + 59 * MINUTE)
    world.pass_by("3m")
    assert states(world, "tick") == ["FAILED", "SUCCEEDED"]


def test_e6_a_target_with_a_lifecycle_has_no_redrive(world: World) -> None:
    letter = undelivered(world)
    world.deploy(flights({"tick": on(ONCE, "notify")}, notify={"target": EMR}))
    with pytest.raises(SluiceError, match="now has the target emr_serverless"):
        redrive(world, letter)


# -- listed, redriven together, dropped ----------------------------------------------------------------------------


def test_e6_dead_letters_are_listed_newest_first_and_redriven(world: World) -> None:
    quick = {"tick": on(time("@every 10s"), "notify"), "other": on(ONCE, "notify")}
    world.deploy(flights(quick, notify={"target": SQS}))
    world.targets.queue.answers = [NEVER] * 7
    world.pass_by("1m")
    world.disable("tick")

    found = letters(world)
    assert [letter.failed_at for letter in found] == sorted((each.failed_at for each in found), reverse=True)
    page = dead_letters.listed(world.ports, "demo", full("tick"), 4, None)
    rest = dead_letters.listed(world.ports, "demo", full("tick"), 4, page.cursor)
    assert [len(page.items), len(rest.items)] == [4, 2]
    assert dead_letters.listed(world.ports, "other", None, 4, None).items == ()

    done = dead_letters.redrive_all(world.ports, "demo", full("tick"), 4)
    assert (done.run_ids, done.refused, done.more) == (tuple(each.run_id for each in page.items), (), True)
    assert dead_letters.redrive_all(world.ports, "demo", full("tick"), 4).more is False
    world.settle()
    assert [letter.schedule for letter in letters(world)] == [full("other")]
    assert len(world.targets.queue.messages) == 6


def test_e6_a_dropped_dead_letter_is_on_record_and_its_run_stays(world: World) -> None:
    letter = undelivered(world)
    dead_letters.drop(world.ports, "demo", letter.run_id, "tester")
    assert letters(world) == []
    assert states(world, "tick") == ["FAILED"]
    [record] = world.records("tick")
    assert (record.kind, record.id) == ("DROPPED", letter.run_id)
    assert record.reason.text == "its dead letter was dropped by tester: no such queue"
    assert iso(record.recorded_at) == iso(world.clock.now())


@pytest.mark.parametrize("act", [dead_letters.redrive, lambda *a: dead_letters.drop(*a, "tester")])
def test_e6_a_dead_letter_belongs_to_its_namespace(world: World, act: Any) -> None:
    letter = undelivered(world)
    with pytest.raises(SluiceError) as caught:
        act(world.ports, "other", letter.run_id)
    assert caught.value.code == "not_found"
