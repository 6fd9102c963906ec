"""The work for a period of a schedule: its own job, the runs of those before it, and backfills (T25, L12)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

from chalicelib.core import ids, states
from chalicelib.core.backfills import backfill
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import SluiceError
from chalicelib.core.jobs import gather, of_period
from chalicelib.core.jobs.facts import OtherWork
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.triggers import tree
from chalicelib.core.why import Why, mention
from chalicelib.core.writes import ExpectNoneGathering, ExpectNoRun
from chalicelib.ports import Ports

AT_ONCE = 50  # jobs of a period that are looked up together
FORMER = 3  # jobs of a period in a former generation that are looked up


def datasets_of(ports: Ports, schedule: Schedule) -> dict[str, Dataset]:
    """The datasets of a trigger that exist, by their names."""
    names = dict.fromkeys(each.name for leaf in tree.leaves(schedule.trigger) for each in leaf.trigger.datasets())
    rows = {name: ports.rows.get(Definition, "dataset", name) for name in names}
    return {name: Dataset.model_validate(row.document) for name, row in rows.items() if row is not None}


def source(sort_key: str, number: int) -> str:
    """What the id of a job of a period follows from. ``number`` counts those before it that have ended."""
    return f"period:{sort_key}:{number}"


def started(
    ports: Ports, schedule: str, generation: int, sort_key: str, recorded: Callable[[Sequence[str]], Collection[str]]
) -> tuple[int, Run | None]:
    """The number of the next job of a period, and the last run of those before it. ``recorded`` says which of some jobs
    are on record: a caller whose rows were read ahead reads them one by one."""
    number, size = 0, 1
    last: Run | None = None
    while True:
        wanted = [ids.job_id(schedule, generation, source(sort_key, number + more)) for more in range(size)]
        runs = {run.run_id: run for run in ports.runs.several([(job_id, 1) for job_id in wanted])}
        records = recorded([job_id for job_id in wanted if job_id not in runs])
        for job_id in wanted:
            if job_id not in runs and job_id not in records:
                return number, last if last is not None else _of_former(ports, schedule, sort_key)
            last, number = _latest(last, runs.get(job_id)), number + 1
        size = AT_ONCE


def _of_former(ports: Ports, schedule: str, sort_key: str) -> Run | None:
    """The last run of a period in a former generation whose trigger goes on in the present one."""
    state = ports.rows.get(ScheduleState, schedule)
    places = [
        (ids.job_id(schedule, generation, source(sort_key, number)), 1)
        for generation in (state.former if state is not None else ())
        for number in range(FORMER)
    ]
    runs = filter(_began, ports.runs.several(places)) if places else ()
    return max(runs, key=lambda run: run.claimed_at, default=None)


def _latest(before: Run | None, run: Run | None) -> Run | None:
    return run if run is not None and _began(run) else before


def _began(run: Run) -> bool:
    """Whether the start of a run was not aborted, as by a disable right after its claim. Such a run has not run its
    period."""
    return run.state != "ABORTED"


def is_backfilled(job: Job, schedule: Schedule) -> bool:
    """Whether a job is that of a period which a backfill runs, and gets its partitions at the claim."""
    return schedule.per is not None and job.traits.replays and job.rerun_of is None


def other_work(ports: Ports, job: Job, schedule: Schedule) -> OtherWork:
    """The other work for the period of a job; none for a job without a period.

    The schedule's own job waits while a backfill runs the period. The job of a backfill does not start while the own
    job waits or its run is active, nor if a dataset no longer determines the partitions of the period. Its claim
    expects that no own job has come meanwhile, and the own job reads the backfills after it has come: so they never run
    at once."""
    if schedule.per is None or not job.correlation:
        return OtherWork()
    label = job.correlation[schedule.per.each]
    if job.traits.gathers and job.met_at is not None:
        return OtherWork(_backfilled(ports, job, label))
    if job.traits.replays:
        undetermined = _undetermined(ports, job, schedule) if is_backfilled(job, schedule) else None
        return _own(ports, job, label) if undetermined is None else OtherWork(undetermined)
    return OtherWork()


def _backfilled(ports: Ports, job: Job, label: str) -> Why | None:
    for row in ports.jobs.backfills(job.schedule):
        for entry, generation in row.live.items() if row.periods else ():
            run = _active(ports, backfill.job_id(row, int(entry), generation))
            if run is not None and run.correlation == job.correlation:
                of = f" of backfill {row.id}, which runs {label}"
                return Why.of("period_taken", "waits for run ", mention("run", run.run_id), of)
    return None


def _own(ports: Ports, job: Job, label: str) -> OtherWork:
    sort_key = gather.gathering_key(job.correlation)
    own = ports.rows.get(Job, job.schedule, job.generation, sort_key)
    if own is not None and not own.closed:
        return OtherWork(Why.of("period_taken", "job ", mention("run", own.job_id), f" of {label} waits, and runs it"))
    by_id = partial(ports.rows.get, Record)
    number, last = started(
        ports, job.schedule, job.generation, sort_key, lambda names: [name for name in names if by_id(name) is not None]
    )
    run = _active(ports, last.run_id) if last is not None else None
    if run is not None:
        return OtherWork(Why.of("period_taken", "run ", mention("run", run.run_id), f" of {label} is under way"))
    following = replace(job, job_id=ids.job_id(job.schedule, job.generation, source(sort_key, number)))
    expected = (ExpectNoneGathering(job.schedule, job.generation, sort_key), ExpectNoRun(following))
    return OtherWork(expected=expected)


def _active(ports: Ports, run_id: str) -> Run | None:
    """The last attempt of a run that runs, or will be attempted again. That of a DAG's start runs until the DAG run
    has ended."""
    attempts = ports.runs.attempts(run_id)
    last = attempts[-1] if attempts else None
    if last is None or last.state == "RETRYING" or not states.is_terminal(last.state):
        return last
    if not ids.is_dag_graph(last.workflow):
        return None
    from chalicelib.flow import dag_states  # few periods are those of DAGs

    if not dag_states.has_begun(last):
        return None
    [(run, dag, _, nodes)] = dag_states.states_of(ports, [last])
    return last if dag_states.state_of(run, dag, nodes) == "RUNNING" else None


def _undetermined(ports: Ports, job: Job, schedule: Schedule) -> Why | None:
    try:
        of_period.needed_by(schedule, job.correlation or {}, datasets_of(ports, schedule))
    except SluiceError as refused:
        return Why.of("period_taken", f"its partitions are not determined: {refused.message}")
    return None
