"""EMR on EKS as a target: what is sent, and the meaning of each answer (W22)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from chalicelib.aws.targets.emr_eks import MAX_PAGES, EmrEksTarget
from chalicelib.core.instants import HOUR, MINUTE
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import Answer, Never, NoAnswer, NotNow, RunUpdate, SearchLimit, Started
from tests.support import rows
from tests.support.clock import HandClock
from tests.support.eks_runs import CLUSTER, ROLE, TARGET, EksRun, EksRuns
from tests.support.state_machines import refused

STORED = {"arguments": (), "py_files": (), "spark": {}, **TARGET}
TIMEOUT = ConnectTimeoutError(endpoint_url="https://emr-containers.example")


def run(target: dict[str, Any] | None = None, token: str = "a" * 40, **fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", **fields)
    return replace(plain, request=replace(plain.request, target=target or STORED, logs="demo/", client_token=token))


@pytest.fixture
def runs() -> EksRuns:
    return EksRuns(HandClock())


@pytest.fixture
def target(runs: EksRuns) -> EmrEksTarget:
    return EmrEksTarget(runs, runs.clock.now, pause=lambda seconds: None)


def started(runs: EksRuns, target: EmrEksTarget) -> tuple[Run, EksRun]:
    answer = target.start(run(), {})
    assert isinstance(answer, Started)
    return run(target_id=answer.target_id, start_requested_at=runs.clock.now()), runs.runs[answer.target_id[11:]]


def test_w22_a_start_on_eks_has_what_the_document_sets(runs: EksRuns, target: EmrEksTarget) -> None:
    arn = f"arn:aws:emr-containers:us-east-1:123456789012:/virtualclusters/{CLUSTER}"
    more = {"arguments": ["--depth", "2"], "py_files": ["s3://code/a.zip"], "spark": {"spark.executor.cores": "2"}}
    answer = target.start(run({**STORED, **more, "virtual_cluster": arn}), {})
    [made] = runs.runs.values()
    assert answer == Started(f"{CLUSTER}/{made.id}")
    assert made.asked == {
        "virtualClusterId": CLUSTER,
        "name": f"sluice-clean-{'a' * 40}",
        "clientToken": "a" * 40,
        "executionRoleArn": ROLE,
        "releaseLabel": "emr-7.5.0-latest",
        "jobDriver": {
            "sparkSubmitJobDriver": {
                "entryPoint": "s3://code/clean.py",
                "entryPointArguments": ["--depth", "2", "--sluice-context", run().request.context_uri],
                "sparkSubmitParameters": "--py-files s3://code/a.zip --conf spark.executor.cores=2",
            }
        },
        "configurationOverrides": {
            "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": "s3://c/logs/demo"}}
        },
    }


def test_w22_a_cluster_of_another_region_is_refused(runs: EksRuns, target: EmrEksTarget) -> None:
    arn = f"arn:aws:emr-containers:eu-west-1:123456789012:/virtualclusters/{CLUSTER}"
    answer = target.start(run({**STORED, "virtual_cluster": arn}), {})
    assert isinstance(answer, Never) and "in the region of the stack, us-east-1" in answer.why
    assert not runs.calls


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refused("ThrottlingException"), NotNow),
        (refused("InternalServerException", status=500), NoAnswer),
        (TIMEOUT, NoAnswer),
        (refused("AccessDeniedException"), Never),
        (refused("ResourceNotFoundException"), Never),
        (refused("ValidationException"), Never),
    ],
)
def test_c12_each_refusal_of_eks_has_its_meaning(
    runs: EksRuns, target: EmrEksTarget, error: Exception, kind: type[Answer]
) -> None:
    runs.refusals = [error]
    assert isinstance(target.start(run(), {}), kind)
    assert not runs.runs


def test_w10_a_token_that_emr_forgot_starts_nothing_twice(runs: EksRuns, target: EmrEksTarget) -> None:
    runs.lose_answers = 1
    target.start(run(token="b" * 40), {})  # of another attempt, on the page before
    runs.lose_answers = 1
    unknown = run(unknown_answer=True, start_requested_at=runs.clock.now())
    assert isinstance(target.start(run(), {}), NoAnswer)
    made = list(runs.runs.values())[-1]
    assert target.start(unknown, {}) == Started(made.target_id), "the token is known"
    runs.forget = True
    runs.clock.wait_until(runs.clock.now() + HOUR)
    assert target.start(unknown, {}) == Started(made.target_id), "it is searched for"
    runs.refusals = [refused("AccessDeniedException")]
    answer = target.start(unknown, {})
    assert isinstance(answer, NoAnswer) and answer.retry_after == MINUTE, "a search that is refused is no refused start"
    late = replace(unknown, lease_until=runs.clock.now())
    assert len(runs.runs) == 2 and target.find(unknown) == made.target_id
    elsewhere = replace(late, request=replace(late.request, client_token="d" * 40))
    assert isinstance(target.start(elsewhere, {}), NoAnswer), "the call could outlive its lease"
    assert len(runs.runs) == 2
    assert target.find(run(token="c" * 40, start_requested_at=runs.clock.now())) is None
    for number in range(MAX_PAGES):
        target.start(run(token=f"{number:040}"), {})
    with pytest.raises(SearchLimit, match="within 20 pages"):
        target.find(run(token="c" * 40))


def test_w22_a_job_run_on_eks_is_asked_about_by_itself(runs: EksRuns, target: EmrEksTarget) -> None:
    begun, made = started(runs, target)
    assert target.status(begun) is None
    made.state = "RUNNING"
    assert target.status(begun) == RunUpdate("RUNNING", runs.clock.now(), target_id=made.target_id)
    runs.end(made, "FAILED", "no pods", "USER_ERROR")
    ended = RunUpdate("FAILED", runs.clock.now(), "no pods (USER_ERROR)", made.target_id)
    assert target.status(begun) == ended
    runs.refusals = [refused("ThrottlingException")]
    assert target.status_many([begun, begun]) == [None, ended]
    runs.runs.clear()
    runs.clock.wait_until(runs.clock.now() + 3 * MINUTE)
    lost = target.status(begun)
    assert lost is not None and (lost.outcome, lost.reason) == ("lost", "EMR on EKS knows no such job run any more")


def test_w6_a_cancel_on_eks_stops_what_goes_on(runs: EksRuns, target: EmrEksTarget) -> None:
    begun, made = started(runs, target)
    runs.refusals = [refused("ValidationException")]
    with pytest.raises(ClientError):
        target.cancel(begun)
    assert made.state == "PENDING"
    target.cancel(begun)
    assert made.state == "CANCELLED"
    target.cancel(begun)
    runs.runs.clear()
    target.cancel(begun)
    runs.refusals = [refused("AccessDeniedException")]
    with pytest.raises(ClientError):
        target.cancel(begun)
