"""Glue jobs as a target: what is sent, and the meaning of each answer (W22)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from chalicelib.aws.targets.glue import GlueTarget
from chalicelib.core.instants import DAY, HOUR, MINUTE, SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, RunUpdate, SearchLimit, Started
from chalicelib.core.targets.bills import Usage
from tests.support import rows
from tests.support.clock import HandClock
from tests.support.glue import JOB, TARGET, GlueJob, GlueJobs, JobRun
from tests.support.state_machines import refused

CONTEXT: dict[str, Any] = {"correlation": {"day": "2026-03-01"}, "properties": {}}
TIMEOUT = ConnectTimeoutError(endpoint_url="https://glue.example")


def run(target: dict[str, Any] | None = None, **fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", **fields)
    name = f"{plain.run_id}-{plain.attempt}"
    return replace(plain, request=replace(plain.request, target=target or TARGET, name=name))


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def jobs(clock: HandClock) -> GlueJobs:
    return GlueJobs(clock)


@pytest.fixture
def target(jobs: GlueJobs, clock: HandClock) -> GlueTarget:
    return GlueTarget(jobs, clock.now, pause=lambda seconds: None)


def started(jobs: GlueJobs, target: GlueTarget) -> tuple[Run, JobRun]:
    answer = target.start(run(), CONTEXT)
    assert isinstance(answer, Started)
    begun = run(target_id=answer.target_id, start_requested_at=jobs.clock.now())
    return begun, jobs.runs[answer.target_id.rpartition("/")[2]]


def test_w22_a_start_has_what_the_document_sets(jobs: GlueJobs, target: GlueTarget) -> None:
    arn = f"arn:aws:glue:us-east-1:000000000000:job/{JOB}"
    given = {**TARGET, "job": arn, "arguments": {"--day": "{{correlation.day}}"}, "worker_type": "G.1X", "workers": 4}
    answer = target.start(run({**given, "execution_class": "FLEX"}, run_timeout=90 * MINUTE + SECOND), CONTEXT)
    [made] = jobs.runs.values()
    assert answer == Started(f"{JOB}/{made.id}")
    assert made.asked == {
        "JobName": JOB,
        "Arguments": {
            "--day": "2026-03-01",
            "--sluice-context": run().request.context_uri,
            "--sluice-run": "demo.flights.clean.1.a-1",
        },
        "WorkerType": "G.1X",
        "NumberOfWorkers": 4,
        "ExecutionClass": "FLEX",
        "Timeout": 96,
    }


@pytest.mark.parametrize(("timeout", "minutes"), [(None, None), (0, None), (HOUR, 65), (30 * DAY, 10_080)])
def test_w12_glue_gets_a_limit_a_little_later(
    jobs: GlueJobs, target: GlueTarget, timeout: int | None, minutes: int | None
) -> None:
    target.start(run(run_timeout=timeout), CONTEXT)
    [made] = jobs.runs.values()
    assert made.asked.get("Timeout") == minutes


def test_w22_a_value_that_the_context_lacks_starts_nothing(jobs: GlueJobs, target: GlueTarget) -> None:
    answer = target.start(run({**TARGET, "arguments": {"--up": "{{upstream.run_id}}"}}), CONTEXT)
    assert isinstance(answer, Never) and answer.why.startswith("arguments.--up: expected a run whose context has")
    assert jobs.calls == []


def test_w22_a_job_that_glue_itself_retries_is_refused(jobs: GlueJobs, target: GlueTarget) -> None:
    jobs.jobs[JOB] = GlueJob(retries=2)
    answer = target.start(run(), CONTEXT)
    assert isinstance(answer, Never) and "without retries of its own, got MaxRetries 2" in answer.why
    assert jobs.calls == ["GetJob"] and not jobs.runs


def test_w22_a_job_of_another_region_is_refused(jobs: GlueJobs, target: GlueTarget) -> None:
    """A call by its name would start a job of that name here."""
    answer = target.start(run({**TARGET, "job": f"arn:aws:glue:eu-west-1:000000000000:job/{JOB}"}), CONTEXT)
    assert isinstance(answer, Never) and "expected a job in the region of the stack, us-east-1" in answer.why
    assert not jobs.runs


@pytest.mark.parametrize("error", [TIMEOUT, refused("InternalServiceException", status=500)])
def test_w22_a_job_that_cannot_be_read_has_certainly_not_started(
    jobs: GlueJobs, target: GlueTarget, error: Exception
) -> None:
    jobs.refusals = [error, error]
    assert isinstance(target.start(run(), CONTEXT), NotNow)
    jobs.refusals = [error]
    assert isinstance(target.start(run(), CONTEXT), Started), "it is read again"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refused("ThrottlingException"), NotNow),
        (refused("ResourceNumberLimitExceededException"), NotNow),
        (refused("OperationTimeoutException"), NoAnswer),
        (refused("InternalServiceException", status=500), NoAnswer),
        (refused("SomethingNew", status=503), NoAnswer),
        (TIMEOUT, NoAnswer),
        (refused("AccessDeniedException"), Never),
        (refused("EntityNotFoundException"), Never),
        (refused("InvalidInputException"), Never),
    ],
)
def test_c12_each_refusal_of_a_job_run_has_its_meaning(clock: HandClock, error: Exception, kind: type[Answer]) -> None:
    class Refusing(GlueJobs):
        def start_job_run(self, **asked: Any) -> dict[str, Any]:
            self.refusals = [error]
            return super().start_job_run(**asked)

    jobs = Refusing(clock)
    answer = GlueTarget(jobs, clock.now).start(run(), CONTEXT)
    assert isinstance(answer, kind), answer
    assert not jobs.runs
    if isinstance(answer, NoAnswer):
        assert answer.retry_after == MINUTE, "a search then shows what the call has started"
    if isinstance(answer, NotNow):
        assert not answer.alone


def test_c12_a_job_with_all_its_runs_delays_no_other_job(jobs: GlueJobs, target: GlueTarget) -> None:
    jobs.jobs[JOB] = GlueJob(concurrent=1)
    started(jobs, target)
    answer = target.start(run(attempt=2), CONTEXT)
    assert isinstance(answer, NotNow) and answer.alone
    assert "maximum concurrency" in answer.why


def test_w10_a_start_without_an_answer_is_searched(jobs: GlueJobs, target: GlueTarget) -> None:
    jobs.lose_answers = 1
    assert isinstance(target.start(run(), CONTEXT), NoAnswer)
    [made] = jobs.runs.values()
    again = run(unknown_answer=True, start_requested_at=jobs.clock.now())
    assert target.start(again, CONTEXT) == Started(made.target_id)
    assert jobs.calls == ["GetJob", "StartJobRun", "GetJobRuns"]


def test_w10_a_search_without_an_answer_starts_nothing(jobs: GlueJobs, target: GlueTarget) -> None:
    jobs.refusals = [refused("ThrottlingException")]
    answer = target.start(run(unknown_answer=True, start_requested_at=jobs.clock.now()), CONTEXT)
    assert isinstance(answer, NoAnswer) and answer.retry_after == MINUTE
    assert jobs.calls == ["GetJobRuns"]


def test_w10_a_search_reads_pages_back_to_the_first_call(jobs: GlueJobs, target: GlueTarget) -> None:
    jobs.page = 3
    for attempt in range(10, 16):
        target.start(run(attempt=attempt), CONTEXT)
    jobs.clock.pass_by("10m")
    first = jobs.clock.now()
    begun, made = started(jobs, target)
    for attempt in range(20, 27):
        target.start(run(attempt=attempt), CONTEXT)
    jobs.calls.clear()
    assert target.find(run(start_requested_at=first)) == begun.target_id
    assert jobs.calls == ["GetJobRuns"] * 3, "the third page has job runs of before"
    assert target.find(run(attempt=99, start_requested_at=first)) is None
    jobs.end(made, "FAILED")
    del jobs.jobs[JOB]
    assert target.find(run(start_requested_at=first)) is None, "its job is deleted"


def test_w10_a_search_takes_the_first_run_and_no_retry_of_glue(jobs: GlueJobs, target: GlueTarget) -> None:
    begun, made = started(jobs, target)
    jobs.jobs[JOB].retries = 1
    jobs.end(made, "FAILED")
    assert [each.id for each in jobs.runs.values()] == [made.id, f"{made.id}_attempt_1"]
    assert target.find(run(start_requested_at=jobs.clock.now())) == begun.target_id


def test_w10_a_search_among_too_many_runs_says_so(jobs: GlueJobs, target: GlueTarget) -> None:
    jobs.page = 1
    for attempt in range(2, 30):
        target.start(run(attempt=attempt), CONTEXT)
    with pytest.raises(SearchLimit, match=r"expected run demo.flights.clean.1.a-1 among"):
        target.find(run(start_requested_at=jobs.clock.now()))

    answer = target.start(run(start_requested_at=jobs.clock.now(), unknown_answer=True), CONTEXT)
    assert isinstance(answer, NoAnswer) and answer.retry_after == MINUTE
    assert "expected run" in answer.why


@pytest.mark.parametrize("pages", [1, 4])
def test_w10_a_slow_search_starts_nothing_beyond_its_lease(jobs: GlueJobs, target: GlueTarget, pages: int) -> None:
    """A page takes 12 s, and after 20 s another start call could outlive the lease. A search alone takes its time."""
    first, jobs.page = jobs.clock.now(), 2
    for attempt in range(10, 10 + 2 * pages):
        target.start(run(attempt=attempt), CONTEXT)
    plain = jobs.get_job_runs

    def slow(**asked: Any) -> Any:
        jobs.clock.pass_by("12s" if pages > 1 else "21s")
        return plain(**asked)

    jobs.get_job_runs = slow  # type: ignore[method-assign]
    jobs.calls.clear()
    called = run(start_requested_at=first, unknown_answer=True, lease_until=first + 50 * SECOND)
    answer = target.start(called, CONTEXT)
    assert isinstance(answer, NoAnswer) and answer.retry_after == MINUTE
    assert jobs.calls == ["GetJobRuns"] * min(pages, 2)
    jobs.clock.pass_by("1m")
    assert target.find(called) is None
    assert jobs.calls == ["GetJobRuns"] * (min(pages, 2) + pages)


def test_w7_a_poll_gives_state_instants_reason_and_bill(jobs: GlueJobs, target: GlueTarget) -> None:
    begun, made = started(jobs, target)
    began = jobs.clock.now()
    assert target.status(begun) is None, "it is STARTING"
    made.state = "RUNNING"
    assert target.status(begun) == RunUpdate("RUNNING", began, target_id=begun.target_id)
    jobs.clock.pass_by("6m")
    jobs.end(made, "FAILED", "no disk")
    bill = Usage(dpu_hours=1).stored()
    expected = RunUpdate("FAILED", began + 6 * MINUTE, "no disk", begun.target_id, started_at=began, billed=bill)
    assert target.status_many([begun, run()]) == [expected, None]


def test_w7_a_just_started_job_run_is_not_lost(jobs: GlueJobs, target: GlueTarget) -> None:
    begun, made = started(jobs, target)
    made.shown = False
    assert target.status(begun) is None
    jobs.clock.pass_by("2m")
    lost = target.status(begun)
    assert lost is not None and (lost.state, lost.outcome) == ("FAILED", "lost")
    assert lost.reason == "Glue knows no such job run any more"


def test_w6_a_job_run_is_stopped(jobs: GlueJobs, target: GlueTarget) -> None:
    begun, made = started(jobs, target)
    target.cancel(begun)
    assert made.state == "STOPPED"
    target.cancel(begun)  # it has ended already
    jobs.runs.clear()
    target.cancel(begun)  # it is unknown


def test_w6_a_refused_stop_is_an_error_so_that_it_is_repeated(jobs: GlueJobs, target: GlueTarget) -> None:
    """BatchStopJobRun answers with an error for each job run that it does not stop."""
    begun, made = started(jobs, target)
    jobs.stop_errors = ["ThrottlingException"]
    with pytest.raises(Exception, match="Throttling"):
        target.cancel(begun)
    target.cancel(begun)
    assert made.state == "STOPPED"
