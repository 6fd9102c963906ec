"""Rows of dead letters, and the delivery fields of jobs and runs, on both implementations (E6, C15, O11)."""

from __future__ import annotations

from dataclasses import fields, replace

from chalicelib.aws.tables import items
from chalicelib.aws.tables.dynamo import Dynamo
from chalicelib.aws.tables.rows import DynamoRows
from chalicelib.aws.tables.runs import DynamoRuns
from chalicelib.core.constraints.probe import ProbeResult, remembered
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.run import DeadLetter, Run
from chalicelib.core.runs import dead_letters
from chalicelib.core.writes import Create, Delete, DeleteDeadLetter, Put
from tests.support import rows
from tests.support.clock import NOON


def failed(run_id: str = "demo.flights.tell.1.e1", at: int = NOON, attempt: int = 1, schedule: str = "tell") -> Run:
    request = replace(rows.run().request, target={"type": "sqs"}, data={"content_type": "text/plain", "text": "grün"})
    made = rows.run(run_id, attempt=attempt, state="FAILED", reason="no such queue", calls=3, request=request)
    return replace(made, schedule=f"demo.flights.{schedule}", start_requested_at=at - 2000)


def letter(number: int, schedule: str = "tell", namespace: str = "demo", attempt: int = 1) -> DeadLetter:
    made = dead_letters.of(failed(f"{namespace}.flights.{schedule}.1.e{number}", NOON + number, attempt), NOON + number)
    assert made is not None
    return replace(made, schedule=f"{namespace}.flights.{schedule}")


def test_e6_a_dead_letter_has_its_content_and_its_reason(dynamo: Dynamo) -> None:
    made = dead_letters.of(failed(), NOON)
    assert made is not None
    assert (made.reason.text, made.tries, made.first_try_at, made.failed_at) == ("no such queue", 3, NOON - 2000, NOON)
    assert (made.target, made.size) == ("sqs", len('{"content_type": "text/plain", "text": "gr\\u00fcn"}'))
    assert dynamo.commit([Put(made)]) is None
    assert DynamoRuns(dynamo).dead_letter(made.run_id) == made


def test_e6_only_a_finally_failed_delivery_is_a_dead_letter() -> None:
    emr = replace(failed(), request=rows.run().request)
    assert dead_letters.of(emr, NOON) is None
    assert dead_letters.of(replace(failed(), state="SUCCEEDED"), NOON) is None
    assert dead_letters.of(replace(failed(), state="ABORTED"), NOON) is None


def test_e6_dead_letters_are_listed_newest_first_over_all_shards(dynamo: Dynamo) -> None:
    mine = [letter(number, "tell" if number % 3 else "other") for number in range(12)]
    dynamo.put_all([Put(each) for each in [*mine, letter(99, namespace="sales")]])
    dynamo.put_all([Put(failed())])
    runs = DynamoRuns(dynamo)

    found: list[DeadLetter] = []
    cursor: str | None = None
    while True:
        page = runs.dead_letters("namespace", "demo", 5, cursor)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            break
    assert found == mine[::-1]
    other = runs.dead_letters("schedule", "demo.flights.other", 10, None).items
    assert list(other) == [each for each in mine[::-1] if each.schedule == "demo.flights.other"]
    assert len(runs.runs("schedule", "demo.flights.tell", 10, None).items) == 1


def test_e6_removing_a_dead_letter_keeps_those_of_next_attempts(dynamo: Dynamo) -> None:
    first, second = letter(1), letter(1, attempt=2)
    dynamo.put_all([Put(first), Put(second), Put(failed(first.run_id))])
    runs = DynamoRuns(dynamo)
    assert runs.dead_letter(first.run_id) == second
    assert dynamo.commit([Delete(first)]) is None
    assert runs.dead_letter(first.run_id) == second
    assert [run.attempt for run in runs.attempts(first.run_id)] == [1]
    assert runs.dead_letter("nobody") is None


def test_e6_the_tries_of_job_and_its_last_probe_answer_are_kept(dynamo: Dynamo) -> None:
    said = ProbeResult("failed", NOON, NOON + 60_000, "the probe failed: no answer", 3)
    job = rows.job(tries=2, first_try_at=NOON - 5, probed=said.kept())
    assert dynamo.commit([Create(job)]) is None
    stored = DynamoRows(dynamo).get(Job, job.schedule, job.generation, job.sort_key)
    assert stored == job
    assert remembered(stored.probed if stored else {}) == said


def test_o11_rows_from_before_delivery_policies_still_load() -> None:
    new = {"tries", "first_try_at", "retry_at", "probed", "due_at"}
    item = {name: value for name, value in items.to_item(rows.job(), 1, 1).items() if name not in new}
    assert items.from_item(Job, item) == rows.job()


def test_e6_a_redrive_keeps_the_identity_of_the_event(dynamo: Dynamo) -> None:
    run = replace(failed(), due_at=NOON, event=rows.event(), correlation={"day": "1"})
    job = dead_letters.redrive(run, 7, NOON + 9)
    assert (job.job_id, job.attempt, job.generation, job.kind) == (run.run_id, 2, 7, "redrive")
    assert job.sort_key == f"REDRIVE#{run.run_id}#2"
    kept = {"due_at", "event", "correlation", "accepted_at", "schedule"} & {each.name for each in fields(job)}
    assert all(getattr(job, name) == getattr(run, name) for name in kept)
    assert kinds.key_of(job).pk == kinds.key(Job, run.schedule, 7, "").pk


def test_e6_a_dead_letter_is_removed_once_and_as_it_was_read(dynamo: Dynamo) -> None:
    read, again = letter(1), replace(letter(1), failed_at=NOON + 60_000)
    assert dynamo.commit([Put(again)]) is None
    assert dynamo.commit([DeleteDeadLetter(read)]) is not None, "its redrive was cancelled, and it is there again"
    assert dynamo.commit([DeleteDeadLetter(again)]) is None
    assert dynamo.commit([DeleteDeadLetter(again), Put(rows.notice())]) is not None
