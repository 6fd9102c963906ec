"""Attend to whatever a hint or the sweep names. A ref is a rumour: each flow reads its row strongly before it acts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chalicelib.core import states
from chalicelib.core.rows import Run
from chalicelib.core.sweep import Ref
from chalicelib.flow import complete, emit, ending, launch, match, wake
from chalicelib.flow.alone import each_alone
from chalicelib.flow.check import check_job
from chalicelib.flow.drain import drain
from chalicelib.flow.serve import serve
from chalicelib.ports import Ports


def attend_all(ports: Ports, refs: Sequence[Ref]) -> None:
    """Attend to each; what one of them raises is raised only after all had their turn, so none blocks the others."""
    each_alone(refs, lambda ref: attend(ports, ref))


def attend(ports: Ports, ref: Ref) -> None:
    match ref.kind:
        case "job":
            schedule, generation, place = ref.parts
            _job(ports, schedule, int(generation, 36), place)
        case "run":
            _run(ports, ref.parts[0], int(ref.parts[1]))
        case "line":
            serve(ports, ref.parts[0])
        case "partition":
            match.resume(ports, ports.catalog.partition(ref.parts[0], ref.parts[1:]))
        case "object":
            match.resume(ports, ports.catalog.stored_object(*ref.parts))
        case "posted":
            match.resume(ports, ports.jobs.posted(ref.parts[0]))
        case "gate":
            emit.emit_soon(ports, ref.parts[0])
            wake.all_of(ports, ref.parts[0])
        case "timer":
            ending.end(ports, ref.parts[0])
            emit.emit_soon(ports, ref.parts[0])


def _job(ports: Ports, schedule: str, generation: int, place: str) -> None:
    job = ports.jobs.job(schedule, generation, place)
    if job is not None and job.closed:
        drain(ports, schedule, generation)
    elif job is not None:
        check_job(ports, (schedule, generation, place))


def _run(ports: Ports, run_id: str, attempt: int) -> None:
    run = ports.runs.run(run_id, attempt)
    if run is None:
        return
    steps: list[Callable[[], object]] = []
    if run.announce:
        steps.append(lambda: complete.announce(ports, run_id, attempt))
    if not states.is_terminal(run.state):
        steps.append(lambda: _follow(ports, run))
    # A status that cannot be told to somebody does not keep its run from being followed.
    each_alone(steps, lambda step: step())


def _follow(ports: Ports, run: Run) -> None:
    if run.target_id is None:
        launch.start(ports, run.run_id, run.attempt)
    elif run.cancel:
        complete.cancel(ports, run)
    else:
        complete.ask(ports, run)
