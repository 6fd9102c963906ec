"""The reason of a failed run is the error of its job, also where EMR cut it: the log of the driver has the rest."""

from __future__ import annotations

import pytest

from chalicelib.flow.runs import failures
from tests.acceptance.words import day, on, partition
from tests.support.answers import explain
from tests.support.world import EMR, World, flights

ERROR = "ValueError: expected 24 hours of 2013-01-01, got 23: hour 17 is missing"
OUTPUT = f"read 23 rows\nTraceback (most recent call last):\n  File x\n{ERROR}\n"
CUT = "exit code 1: ValueError: expected 24 hours of 2013..."


def failed(details: str, attempts: int = 1) -> World:
    world = World()
    retries = {"attempts": attempts, "delay": "30s"}
    world.deploy(flights({"a": on(partition(), "once")}, once={"target": EMR, "retries": retries}))
    world.upload(day(1))
    world.settle()
    world.finish("FAILED", details)
    world.settle()
    return world


def logs(world: World, output: str = OUTPUT) -> None:
    """EMR uploads the log of the driver."""
    for number in range(1, len(world.runs("a")) + 1):
        folder = f"logs/demo/applications/00app/jobs/jr{number:05d}/SPARK_DRIVER"
        world.payloads.logs |= {f"{folder}/stdout.gz": output, f"{folder}/stderr.gz": "26/11/20 WARN x\n"}


def why(world: World) -> str:
    return str(explain.why_work(world.ports, world.runs("a")[-1].run_id)["why"])


@pytest.mark.parametrize("details", [CUT, "exit code 1"])
def test_a_cut_reason_is_completed_as_soon_as_the_log_is_there(details: str) -> None:
    world = failed(details)
    assert why(world) == details
    logs(world)
    assert why(world) == f"exit code 1: {ERROR}"
    assert failures.with_reason(world.ports, world.runs("a")[0]).reason.text == f"exit code 1: {ERROR}"


def test_lists_have_the_error_of_a_log_soon_after_the_end() -> None:
    """A read stores nothing. A check of the ended run stores the error, so lists and the history show it."""
    world = failed(CUT)
    logs(world)
    assert why(world) == f"exit code 1: {ERROR}"
    [run] = world.runs("a")
    assert run.reason.text == CUT
    world.pass_by("3m")
    [kept] = world.runs("a")
    assert (kept.reason.text, kept.state) == (f"exit code 1: {ERROR}", "FAILED")
    world.payloads.logs.clear()
    assert why(world) == f"exit code 1: {ERROR}"
    assert kept.wake_at is None, "nothing is left to ask about"


def test_a_log_that_comes_late_is_looked_up_once_more() -> None:
    world = failed(CUT)
    world.pass_by("3m")
    [run] = world.runs("a")
    assert (run.reason.text, run.bill_checks) == (CUT, 1)
    logs(world)
    world.pass_by("13m")
    [kept] = world.runs("a")
    assert (kept.reason.text, kept.wake_at) == (f"exit code 1: {ERROR}", None)


def test_a_failure_whose_log_never_comes_is_left_alone() -> None:
    world = failed(CUT)
    world.pass_by("16m")
    [run] = world.runs("a")
    assert (run.reason.text, run.bill_checks, run.wake_at) == (CUT, 2, None)


def test_a_failure_without_details_has_the_error_of_its_log() -> None:
    world = failed("")
    assert why(world) == "the target gave no reason"
    logs(world, "read 0 rows\nthe file is empty\n")
    assert why(world) == "the file is empty"


def test_a_whole_reason_is_not_looked_up_in_the_log() -> None:
    world = failed("exit code 1: KeyError: 'flights'")
    logs(world)
    assert why(world) == "exit code 1: KeyError: 'flights'"


def test_each_attempt_has_the_error_of_its_own_log() -> None:
    world = failed(CUT, attempts=2)
    logs(world)
    [first] = world.runs("a")
    assert failures.with_reason(world.ports, first).reason.text == f"exit code 1: {ERROR}"
    world.pass_by("31s")
    second = world.runs("a")[-1]
    assert (second.attempt, failures.with_reason(world.ports, second)) == (2, second), "it runs"


def test_a_run_that_ended_for_its_timeout_keeps_that_reason() -> None:
    world = World()
    world.deploy(flights({"a": on(partition(), "once")}, once={"target": EMR, "timeout": "5m"}))
    world.upload(day(1))
    world.settle()
    world.emr_says("jr00001", "RUNNING")
    world.pass_by("8m")
    [run] = world.runs("a")
    logs(world)
    assert run.outcome == "timed_out"
    assert why(world) == run.reason.text
