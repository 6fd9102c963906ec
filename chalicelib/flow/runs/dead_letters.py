"""What users do with dead letters: list them, redrive them, drop them (E6)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from chalicelib.core import errors
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import Instant
from chalicelib.core.rows import sort_keys
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.records import new_record
from chalicelib.core.rows.ref import ref_of
from chalicelib.core.rows.run import DeadLetter, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import dead_letters
from chalicelib.core.states import CLAIMABLE
from chalicelib.core.views import At, Code, Sentence, View, shown
from chalicelib.core.why import Why
from chalicelib.core.writes import Create, DeleteDeadLetter, ExpectMode, Put, Write
from chalicelib.flow import lookup
from chalicelib.ports import MAX_CONFLICTS, Page, Ports

MAX_BATCH = 100  # dead letters per request: each takes a transaction, and an API request has 29 s


class DeadLetterView(View):
    """An event that could not be delivered."""

    run_id: str
    attempt: int
    schedule: str
    workflow: str
    target: str
    reason: Sentence
    code: Code | None
    tries: int
    size: int
    nominal_at: At | None
    first_try_at: At | None
    failed_at: At


@dataclass(frozen=True, slots=True)
class Redriven:
    """The result of a bulk redrive: the run ids that are delivered again, and the refused ones with the reason. It also
    says whether more dead letters remain for another request."""

    run_ids: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    more: bool


def listed(ports: Ports, namespace: str, schedule: str | None, limit: int, cursor: str | None) -> Page[DeadLetter]:
    """A page of the dead letters of a schedule, or of the namespace if ``schedule`` is None, newest first."""
    if schedule is not None:
        return ports.runs.dead_letters("schedule", schedule, limit, cursor)
    return ports.runs.dead_letters("namespace", namespace, limit, cursor)


def existing(ports: Ports, namespace: str, run_id: str) -> DeadLetter:
    letter = ports.runs.dead_letter(run_id)
    if letter is None or letter.schedule.partition(".")[0] != namespace:
        hint = "it may have been redriven or dropped already: ask for the run of this id"
        raise errors.not_found("dead letter", run_id, hint)
    return letter


def redrive(ports: Ports, namespace: str, run_id: str) -> int:
    """Create a job that delivers an event again under the same id. Returns the number of the attempt.

    Repeated and concurrent requests create one job, and get the same number. The job queues at limits like any other,
    and runs even if its schedule is disabled. Raises ``not_found`` without a dead letter, and ``conflict`` if the event
    cannot be delivered.
    """
    for _ in range(MAX_CONFLICTS):
        before = _redriven(ports, namespace, run_id)
        if before is not None:
            return before
        letter = existing(ports, namespace, run_id)
        run = ports.rows.get(Run, run_id, letter.attempt)
        schedule_state = ports.rows.get(ScheduleState, letter.schedule)
        if schedule_state is None or not schedule_state.exists or run is None:
            raise _refused(f"schedule {letter.schedule} was deleted", "create it again, or drop the dead letter")
        _check_target(ports, run)
        now = ports.clock.now()
        job = replace(dead_letters.redrive(run, schedule_state.generation, now), requested_by=ports.requester)
        create = Create(job)
        refused = ports.ledger.commit(
            [create, DeleteDeadLetter(letter), ExpectMode(schedule_state, CLAIMABLE["redrive"])]
        )
        if refused is None or create in refused.writes:
            ports.hints.send([ref_of(job)], now, now)
            return job.attempt
        if ports.rows.get(Run, run_id, job.attempt) is not None:
            return job.attempt  # another request has redriven it, and that attempt has already run
    raise errors.changed_meanwhile(f"schedule {letter.schedule}")


def _redriven(ports: Ports, namespace: str, run_id: str) -> int | None:
    """The attempt as which an event without a dead letter is delivered again, or was; None if it never was, or if that
    attempt has failed."""
    attempts = ports.runs.attempts(run_id)
    if not attempts or attempts[-1].schedule.partition(".")[0] != namespace or ports.runs.dead_letter(run_id):
        return None
    last = attempts[-1]
    if last.traits.redelivers and last.state != "FAILED":
        return last.attempt
    state = ports.rows.get(ScheduleState, last.schedule)
    waiting = state and ports.rows.get(
        Job, last.schedule, state.generation, sort_keys.redrive(run_id, last.attempt + 1)
    )
    return waiting.attempt if waiting and not waiting.closed else None


def redrive_all(ports: Ports, namespace: str, schedule: str, limit: int) -> Redriven:
    """Redrive up to ``limit`` dead letters of a schedule, at most ``MAX_BATCH``, newest first."""
    page = ports.runs.dead_letters("schedule", schedule, min(limit, MAX_BATCH), None)
    done: list[str] = []
    refused: list[tuple[str, str]] = []
    for letter in page.items:
        try:
            redrive(ports, namespace, letter.run_id)
            done.append(letter.run_id)
        except SluiceError as error:
            if error.code not in ("conflict", "not_found"):
                raise
            refused.append((letter.run_id, error.message))
    return Redriven(tuple(done), tuple(refused), page.cursor is not None)


def drop(ports: Ports, namespace: str, run_id: str, by: str) -> None:
    """Drop a dead letter for good, on record. Its run stays in the history as FAILED.

    Raises ``not_found`` if the dead letter was already redriven or dropped.
    """
    for _ in range(MAX_CONFLICTS):
        letter = existing(ports, namespace, run_id)
        run = ports.rows.get(Run, run_id, letter.attempt)
        now = ports.clock.now()
        reason = Why.of("letter_dropped", f"its dead letter was dropped by {by}: ", letter.reason)
        generation = run.generation if run else 0
        dropped = new_record(run_id, "DROPPED", letter.schedule, generation, reason, now)
        if ports.ledger.commit([DeleteDeadLetter(letter), Put(dropped)]) is None:
            return
    raise errors.changed_meanwhile(f"the dead letter of {run_id}")


def view(letter: DeadLetter) -> DeadLetterView:
    """A dead letter as the API returns it."""
    return shown(DeadLetterView, letter)


def _check_target(ports: Ports, run: Run) -> None:
    """Raise ``conflict`` unless the present target of the workflow takes deliveries: a redrive goes to that target."""
    workflow = lookup.workflow_of(ports, run.workflow)
    if workflow is None:
        raise _refused(f"workflow {run.workflow} no longer exists", "create it again, or drop the dead letter")
    if workflow.target.has_lifecycle:
        why = f"workflow {run.workflow} now has the target {workflow.target.type}, which takes no deliveries"
        raise _refused(why, "run its schedule now, and drop the dead letter")


def _refused(why: str, hint: str) -> SluiceError:
    return SluiceError("conflict", f"expected an event that can be delivered again, but {why}", None, hint)


def put_back(ports: Ports, job: Job, why: Why, now: Instant) -> list[Write]:
    """The writes that restore the dead letter of an event whose redrive is dropped before it was tried."""
    run = ports.rows.get(Run, job.job_id, job.attempt - 1)
    reason = Why.of("not_delivered", run.reason, "; not delivered again: ", why) if run else why
    letter = dead_letters.of(run, now, reason) if run else None
    return [Put(letter)] if letter else []
