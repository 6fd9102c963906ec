"""Who has arranged a job, and so may not approve it (C16).

That is everybody who wrote what is in force of its schedule, its DAG or its workflow, who enabled or resumed the
schedule, who requested the job, and who began what it follows: by an event, by a request for an upstream run, by a
message, or by a schedule with a single instant. Who wrote any other upstream schedule outside its DAG is none of them:
the author of the schedule that follows it has decided that its runs count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from chalicelib.core import ids
from chalicelib.core.access.principal import person_of
from chalicelib.core.dags import rounds
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows import authors
from chalicelib.core.rows.definition import Definition
from chalicelib.core.rows.event import Event
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import Run
from chalicelib.core.rows.schedule import ScheduleState, Version
from chalicelib.core.triggers import tree
from chalicelib.core.why import everyone, readers_of
from chalicelib.flow import lookup
from chalicelib.ports import Ports

MAX_UPSTREAM = 50  # upstream runs that are read, the nearest first: an API request has 29 s
MAX_SHOWN = 5  # persons in a text
UNREAD = "unread"  # in the place of a person: the job follows more runs than were read

Deeds = Mapping[str, list[str]]  # what each person has done, by the name of the person
_Found = Iterator[tuple[str | None, str]]  # the ARN of a signer, and what this signer has done


def check(ports: Ports, job: Job, by: str, rules: str) -> None:
    """Raise ``forbidden`` if the caller has arranged the job, and so may only refuse it. ``rules`` says who may approve
    it."""
    found = deeds_of(ports, job)
    own = found.get(person_of(by, ports.settings.personal_roles))
    if own is None:
        return
    expected = "expected an approval by a person who has not arranged the job"
    others = deeds_of(ports, job, foreign=False)  # the caller may not learn who writes in another namespace
    listed = f"; it was arranged by {_listed(others)}" if others else ""
    message = f"{expected}, got {by}, who {' and '.join(own)}{listed}"
    hint = f"ask another person to approve it ({rules}); you may still refuse it"
    raise SluiceError("forbidden", message, None, hint)


def words_of(ports: Ports, job: Job) -> str:
    """Who may not approve a job, as text for users. Of a workflow or a schedule of another namespace it does not name
    the authors; empty if nobody is known."""
    found = deeds_of(ports, job, foreign=False)
    return f"may not be approved by {_listed(found)}" if found else ""


def deeds_of(ports: Ports, job: Job, foreign: bool = True) -> Deeds:
    """Everybody who has arranged a job. Only an installation that enforces roles knows who wrote what. ``foreign``:
    also the authors of a workflow of another namespace, and of a schedule there."""
    found: dict[str, list[str]] = {}
    enforced = ports.settings.authorization == "enforce"
    for arn, deed in (*_began(ports, job, foreign), *(_wrote(ports, job, foreign) if enforced else ())):
        if deed == UNREAD:
            found[UNREAD] = []
        elif arn is not None and arn.startswith("arn:"):
            deeds = found.setdefault(person_of(arn, ports.settings.personal_roles), [])
            deeds += [] if deed in deeds else [deed]
    return found


def _listed(found: Deeds) -> str:
    persons = [(person, deeds) for person, deeds in found.items() if person != UNREAD]
    shown = [f"{person} ({', '.join(deeds)})" for person, deeds in persons[:MAX_SHOWN]]
    more = len(persons) - MAX_SHOWN
    unread = (
        f"; it follows more than {MAX_UPSTREAM} runs, of which only the nearest were read" if UNREAD in found else ""
    )
    return (", ".join(shown) or "who began it") + (f" and {more} more" if more > 0 else "") + unread


def _began(ports: Ports, job: Job, foreign: bool) -> _Found:
    """Who requested the job, who posted its events, and who requested what it follows."""
    sees = everyone if foreign else readers_of(job.schedule)
    yield job.requested_by, "requested it"
    own = job.rerun_of or job.job_id
    events = _events_of(ports, own, job.schedule, job.event)
    yield from ((event.by, _deed(event)) for event in events)
    pending = list(dict.fromkeys([own, *_dag_run_of(job), *_runs_of(events)]))
    for number, run_id in enumerate(pending):  # grows while it is read
        if number > MAX_UPSTREAM:
            yield None, UNREAD
            return
        run = ports.rows.get(Run, run_id, 1)
        if run is None:
            continue
        if number == 0:
            yield run.requested_by, "requested its first run"
        else:
            yield run.requested_by, "requested a run that it follows"
            told = sees(run.schedule) and _has_one_instant(ports, run.schedule)
            yield from _authors_of(ports, run.schedule) if told else ()
        events = _events_of(ports, run.rerun_of or run_id, run.schedule, run.event)
        yield from ((event.by, "posted an event that it follows") for event in events)
        pending += [each for each in _runs_of(events) if each not in pending][: max(0, MAX_UPSTREAM + 2 - len(pending))]


def _deed(event: Event) -> str:
    return "requested a run that it follows" if event.kind == "program_status" else "posted an event that it counts"


def _events_of(ports: Ports, job_id: str, schedule: str, own: Event | None) -> list[Event]:
    """The events of a job or run: its own, or those that a job of this id has gathered."""
    named = ids.parse_job_id(job_id)
    if own is not None or named is None:
        return [own] if own is not None else []
    return list(ports.jobs.events_of(job_id, schedule, named.generation))


def _runs_of(events: Iterable[Event]) -> list[str]:
    return list(dict.fromkeys(event.run_id for event in events if event.run_id is not None))


def _wrote(ports: Ports, job: Job, foreign: bool) -> _Found:
    """Who wrote and enabled the schedule, its DAG and its workflow."""
    yield from _authors_of(ports, job.schedule)
    requested = _is_requested(ports, job)
    if not requested:
        yield from _enabled(ports, job.schedule)
    if ids.is_of_dag(job.schedule):
        row, node = ports.rows.get(Definition, "dag", ids.dag_of(job.schedule)), job.schedule.rpartition(ids.DAG)[2]
        wrote = authors.of(row, node) if row is not None else ()
        yield from ((arn, f"wrote {_shown(job.schedule)}") for arn in wrote)
        if not requested:
            yield from _enabled(ports, ids.dag_start(ids.dag_of(job.schedule)))
    version = _version_of(ports, job.schedule)
    yield from _authors_of_workflow(ports, str(version.definition["workflow"]), job, foreign) if version else ()


def _authors_of_workflow(ports: Ports, name: str, job: Job, foreign: bool) -> _Found:
    own = name.partition(".")[0] == job.schedule.partition(".")[0]
    row = ports.rows.get(Definition, "workflow", name) if (own or foreign) and not ids.is_dag_graph(name) else None
    yield from ((arn, f"wrote workflow {name}") for arn in (authors.of(row) if row is not None else ()))


def _is_requested(ports: Ports, job: Job) -> bool:
    """Whether a person requested the job, its first run, or its DAG run: then nobody need have enabled the schedule."""
    if job.traits.requested:
        return True
    begun = [*([job.job_id] if job.traits.retries else []), *_dag_run_of(job)]
    runs = [ports.rows.get(Run, run_id, 1) for run_id in begun]
    return any(run is not None and run.traits.requested for run in runs)


def _dag_run_of(job: Job) -> list[str]:
    """The id of the DAG run to which a job belongs; empty for none."""
    round_ = rounds.which(job.correlation)
    return [rounds.parse(round_).dag_run] if round_ else []


def _has_one_instant(ports: Ports, schedule: str) -> bool:
    """Whether a schedule comes due once, as a message does: then its author has begun what follows it."""
    found = lookup.definition_of(ports, ports.rows.get(ScheduleState, schedule))
    return ids.is_of_message(schedule) or (found is not None and tree.is_one_shot(found.trigger))


def _authors_of(ports: Ports, schedule: str) -> _Found:
    version = _version_of(ports, schedule)
    yield from ((arn, f"wrote {_shown(schedule)}") for arn in (authors.of(version) if version is not None else ()))


def _version_of(ports: Ports, schedule: str) -> Version | None:
    state = ports.rows.get(ScheduleState, schedule)
    return ports.rows.get(Version, schedule, state.version) if state is not None else None


def _enabled(ports: Ports, schedule: str) -> _Found:
    state = ports.rows.get(ScheduleState, schedule)
    yield from ((arn, f"enabled {_shown(schedule)}") for arn in (state.enabled_by if state is not None else ()))


def _shown(name: str) -> str:
    """A schedule, with the name of what users wrote to get it."""
    if ids.is_of_message(name):
        return f"message {name.replace(f'.{ids.MESSAGE}', '.')}"
    return f"DAG {ids.dag_of(name)}" if ids.is_of_dag(name) else f"schedule {name}"
