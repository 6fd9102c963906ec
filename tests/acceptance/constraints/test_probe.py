"""The user's probe decides whether a job may launch: met, later, or not at all (C15)."""

from __future__ import annotations

import json
from typing import Any

from chalicelib.core.instants import HOUR, MINUTE, iso
from chalicelib.core.targets.answers import NoAnswer
from tests.acceptance.words import (
    concurrency,
    day,
    doze,
    event,
    kinds,
    on,
    partition,
    reasons,
    states,
    time,
    why,
    window,
)
from tests.support.clock import NOON
from tests.support.world import World, flights

ARN = "arn:aws:lambda:us-east-1:123456789012:function:sluice-target-ready"
RULE = f"the probe {ARN} allows the launch, else wait"


def probe(**fields: Any) -> dict[str, Any]:
    return {"type": "probe", "target": {"type": "lambda", "function": ARN}} | fields


def says(world: World, *answers: dict[str, Any] | NoAnswer) -> None:
    """The answers of the probe, one after the other; the last one repeats."""
    world.targets.says = [each if isinstance(each, NoAnswer) else json.dumps(each).encode() for each in answers]


def upload(world: World, number: int = 1) -> None:
    world.upload(day(number))
    world.settle()


def test_c15_a_met_probe_launches_the_job_at_once(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", probe(), properties={"level": 2})}))
    says(world, {"met": True})
    upload(world)

    [run] = world.runs("daily")
    [(target, question)] = world.targets.asked
    assert target == {"type": "lambda", "function": ARN}
    assert (question["job_id"], question["workflow"]) == (run.run_id, "demo.flights.clean")
    assert (question["properties"], question["asked_at"]) == ({"level": 2}, iso(NOON))


def test_c15_an_unmet_probe_is_called_again_only_when_it_said(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", probe())}))
    says(world, {"retry_after": "10m", "why": "month end"}, {"met": False}, {"met": True})
    upload(world)
    [job] = world.jobs("daily")
    assert (job.state, job.wake_at) == ("PENDING_CONSTRAINTS", NOON + 10 * MINUTE)
    assert job.reason.text == f"{RULE}: month end; called again at 2026-03-02T12:10:00.000Z"

    world.pass_by("9m")
    assert len(world.targets.asked) == 1, "no polling: the job sleeps until its instant"
    world.pass_by("1m")
    assert len(world.targets.asked) == 2
    world.pass_by("1m")
    assert (len(world.targets.asked), states(world, "daily")) == (3, ["STARTING"])


def test_c15_events_meanwhile_do_not_call_the_probe(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", probe())}))
    says(world, {"retry_after": "10m"})
    for number in range(1, 6):
        upload(world, number)
    assert len(world.targets.asked) == 1
    assert len(world.jobs("daily")) == 1


def test_c15_a_probe_is_called_only_when_all_else_is_met(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", window("22:00", "06:00"), probe())}))
    says(world, {"met": True})
    upload(world)
    assert world.targets.asked == []
    answer = why(world, "daily")
    assert [(each["type"], each["met"]) for each in answer["constraints"]] == [("time_window", False), ("probe", False)]
    assert answer["constraints"][1]["why"] == f"{RULE}: called once all other constraints are met"

    doze(world, "10h")
    assert (len(world.targets.asked), states(world, "daily")) == (1, ["STARTING"])


def test_c15_why_shows_the_last_answer_and_calls_nothing(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", probe())}))
    says(world, {"retry_after": "10m", "why": "month end"})
    upload(world)
    for _ in range(3):
        answer = why(world, "daily")
    assert (answer["decision"], answer["why"]) == (
        "wait",
        f"{RULE}: month end; called again at 2026-03-02T12:10:00.000Z",
    )
    assert answer["constraints"][0]["until"] == "2026-03-02T12:10:00.000Z"
    assert len(world.targets.asked) == 1


def test_c15_a_probe_answering_abort_aborts_on_record(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", probe())}))
    says(world, {"abort": True, "why": "nothing to do on a holiday"})
    upload(world)
    assert reasons(world, "daily") == [f"ABORTED: {RULE}: the probe aborts the job: nothing to do on a holiday"]
    assert (world.jobs("daily"), world.runs("daily")) == ([], [])


def test_c15_on_unmet_abort_aborts_at_the_first_unmet_answer(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", probe(on_unmet="abort"))}))
    says(world, {"met": False, "why": "no stock"})
    upload(world)
    assert kinds(world, "daily") == ["ABORTED"]


def test_c15_a_failing_probe_backs_off_and_why_shows_the_reason(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", probe(retry="2m"))}))
    says(world, NoAnswer("the function failed: boom"))
    upload(world)
    seen: list[int] = []
    for _ in range(8):
        [job] = world.jobs("daily")
        assert "the probe failed: the function failed: boom" in job.reason.text
        seen.append(((job.wake_at or 0) - world.clock.now()) // MINUTE)
        world.clock.wait_until(job.wake_at or 0)
        world.tick()
    assert seen == [2, 4, 8, 16, 32, 60, 60, 60]
    says(world, {"met": True})
    [job] = world.jobs("daily")
    world.clock.wait_until(job.wake_at or 0)
    world.tick()
    assert states(world, "daily") == ["STARTING"]


def test_c10_the_timeout_overrides_a_probe_without_calling_it(world: World) -> None:
    late = {"after": "1h", "then": "run"}
    world.deploy(flights({"daily": on(partition(), "clean", probe(), timeout=late)}))
    says(world, {"retry_after": "45m"})
    upload(world)
    world.clock.wait_until(NOON + 45 * MINUTE)
    world.tick()
    assert len(world.targets.asked) == 2
    world.clock.wait_until(NOON + HOUR)
    world.tick()
    assert (len(world.targets.asked), states(world, "daily")) == (2, ["STARTING"])


def test_c15_a_served_job_is_probed_again(world: World) -> None:
    world.deploy(flights({"daily": on(partition(), "clean", concurrency(1), probe(), coalesce=False)}))
    says(world, {"met": True})
    upload(world, 1)
    upload(world, 2)
    assert sorted(job.state for job in world.jobs("daily")) == ["PENDING_LAUNCH"]
    says(world, {"met": False, "why": "no stock any more"}, {"met": True})
    world.finish()
    world.settle()
    [job] = world.jobs("daily")
    assert (job.state, "no stock any more" in job.reason.text) == ("PENDING_CONSTRAINTS", True)
    world.pass_by("2m")
    assert states(world, "daily") == ["SUCCEEDED", "STARTING"]


def test_c15_a_delivery_may_have_a_probe_too(world: World) -> None:
    world.deploy(flights({"delivered": on(event("go"), "notify", probe())}))
    says(world, {"met": False}, {"met": True})
    world.post("go")
    world.settle()
    assert world.targets.queue.messages == []
    world.pass_by("2m")
    assert len(world.targets.queue.messages) == 1


def test_c15_of_many_fires_due_together_each_waits_for_its_probe(world: World) -> None:
    """Many fires are delivered in batches; a fire with a probe is checked separately."""
    due = time("1 12 2 3 *")
    checked = {f"checked{number}": on(due, "notify", probe()) for number in range(3)}
    world.deploy(flights(checked | {f"free{number}": on(due, "notify") for number in range(3)}))
    says(world, {"met": False})
    world.pass_by("2m")
    assert len(world.targets.queue.messages) == 3
    assert len(world.targets.asked) >= 3
    assert [len(world.jobs(name)) for name in checked] == [1, 1, 1]
    says(world, {"met": True})
    world.pass_by("2m")
    assert len(world.targets.queue.messages) == 6
