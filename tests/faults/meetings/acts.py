"""Acts that many situations share: the invocations that a hint, a user, a target or a worker causes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.ref import Ref
from chalicelib.core.targets import registry
from chalicelib.flow.definitions import store
from chalicelib.flow.fires import emit
from chalicelib.flow.jobs import actions
from chalicelib.flow.jobs.check import check_job
from chalicelib.flow.jobs.queue import serve
from chalicelib.flow.runs import actions as run_actions
from chalicelib.flow.runs import dead_letters, launch
from chalicelib.flow.schedules import actions as schedule_actions
from chalicelib.flow.system import dispatch, sweep
from tests.faults.meetings.situation import Act, Do
from tests.support.world import World, day, full

CLOSED = ("disable", "delete")


def uploads(*days: int, dataset: str = "flights", name: str = "_SUCCESS") -> Do:
    return lambda world: [world.upload(day(number, dataset, name)) for number in days]


def then(*steps: Do) -> Do:
    return lambda world: [step(world) for step in steps]


def settle(world: World) -> None:
    world.settle()


def passes(span: str) -> Do:
    """Only the clock moves: no hint arrives, and no tick comes."""
    return lambda world: world.clock.pass_by(span)


def forget_hints(world: World) -> None:
    """Drop all hints. The acts and the tick do the work."""
    world.hints.sent = []


def fails_to(act: Do) -> Do:
    """An act that Sluice may refuse. A refusal is as good an end as success."""

    def maybe(world: World) -> None:
        with suppress(SluiceError):
            act(world)

    return maybe


# -- what hints cause --------------------------------------------------------------------------------------------------


def check(name: str = "daily", index: int = 0) -> Act:
    """The check of a waiting job."""

    def do(world: World) -> None:
        jobs = world.jobs(name)
        if len(jobs) > index:
            check_job(world.ports, (jobs[index].schedule, jobs[index].generation, jobs[index].sort_key))

    return Act(do)


def check_place(key: str = "job") -> Act:
    """The check of the job whose key was kept when the situation was built."""
    return Act(lambda world: check_job(world.ports, world.outside.kept[key]))


def serving(line: str) -> Act:
    return Act(lambda world: serve(world.ports, line))


def start(name: str = "daily", index: int = -1) -> Act:
    """The start of a run that has been claimed."""

    def do(world: World) -> None:
        run = world.runs(name)[index]
        launch.start(world.ports, run.run_id, run.attempt)

    return Act(do)


def poll_run(name: str = "daily", index: int = -1) -> Act:
    def do(world: World) -> None:
        run = world.runs(name)[index]
        dispatch.dispatch(world.ports, Ref("run", (run.run_id, f"{run.attempt:03d}")))

    return Act(do)


def batch(most: int | None = None) -> Act:
    """The Lambda whose message names all prepared fires, or the first ``most`` of them."""

    def do(world: World) -> None:
        refs, due = world.outside.kept["fires"]
        dispatch.dispatch_together(world.ports, refs[:most], due)

    return Act(do)


def ticking(world: World) -> None:
    """The tick, without the hints that it sends."""
    emit.emit_due(world.ports)
    sweep.hint_soon(world.ports)
    sweep.sweep_all(world.ports)


TICK = Act(ticking, ticks=True)
EMIT = Act(lambda world: emit.emit_due(world.ports))


# -- what services outside Sluice do -----------------------------------------------------------------------------------


def complete(state: str = "SUCCESS", job_run_id: str = "jr00001") -> Act:
    return Act(lambda world: world.emr_says(job_run_id, state), alone=True)


def upload(number: int, **where: Any) -> Act:
    return Act(lambda world: uploads(number, **where)(world), alone=True)


# -- what users do to jobs and runs ------------------------------------------------------------------------------------


def withdrawing(key: str = "job_id") -> Act:
    """A user cancels a waiting job. After the acknowledgement, an invocation may send the job only with its next call,
    and to a target with a lifecycle not even then.
    """

    def do(world: World) -> None:
        actions.withdraw(world.ports, world.outside.kept[key], "tester")

    def promise(played: Any, actor: int) -> None:
        job_id = played.world.outside.kept[key]
        if any(sent.run.kind == "redrive" for sent in played.log.sent):
            return  # its dead letter exists again, and can be redriven again under the same id
        ended = played.log.ended[actor]
        late = [sent for sent in played.log.sent if sent.run.run_id == job_id and sent.number > ended.number]
        late = [sent for sent in late if registry.of_run(sent.run).has_lifecycle
                or not played.log.is_next(sent, ended)]  # fmt: skip
        assert late == [], f"sent after its cancel was acknowledged: {[str(each.answer) for each in late]}"

    return Act(do, promise=promise)


def cancel_run(name: str = "daily", index: int = -1) -> Act:
    return Act(lambda world: run_actions.cancel(world.ports, world.runs(name)[index].run_id, "tester"))


def rerun(request: str = "again", name: str = "daily", index: int = 0) -> Act:
    return Act(lambda world: run_actions.rerun(world.ports, world.runs(name)[index].run_id, request))


def redrive(key: str = "run_id") -> Act:
    return Act(lambda world: dead_letters.redrive(world.ports, "demo", world.outside.kept[key]))


def drop_letter(key: str = "run_id") -> Act:
    return Act(lambda world: dead_letters.drop(world.ports, "demo", world.outside.kept[key], "tester"))


def run_now(request: str = "r1", name: str = "daily") -> Act:
    return Act(lambda world: schedule_actions.run_now(world.ports, full(name), {}, request))


def define(kind: Any, name: str, document: dict[str, Any]) -> Do:
    """A user puts a pool, a policy or a workflow."""
    return lambda world: store.put(world.ports, kind, f"demo.{name}", document, "tester")
