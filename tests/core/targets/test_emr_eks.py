"""EMR on EKS as a target: the document, and the meaning of states and events (W22)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.access.allowed import Named
from chalicelib.core.errors import SluiceError, from_validation
from chalicelib.core.instants import SECOND
from chalicelib.core.rows.run import Run
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.targets.emr_eks import job_name, update_of
from chalicelib.core.targets.registry import of_event, of_run, of_type
from chalicelib.core.targets.target import NoLog
from tests.core.targets.test_targets import ADAPTER
from tests.support import rows
from tests.support.clock import NOON
from tests.support.eks_runs import CLUSTER, ROLE, TARGET, EksRun, event_of

ARN = f"arn:aws:emr-containers:eu-west-1:123456789012:/virtualclusters/{CLUSTER}"
ID = f"{CLUSTER}/r1"
DETAILS = (
    "Job execution failed, please check complete logs in configured logging destination. ExitCode: 1. "
    "Last few exceptions: ValueError: no such column..."
)


def run(target: dict[str, Any] = TARGET, **fields: Any) -> Run:
    plain = rows.run("demo.flights.clean.1.a", **fields)
    return replace(plain, request=replace(plain.request, target=target, logs="demo/"))


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"virtual_cluster": ARN, "release": "emr-6.15.0-spark-rapids-latest"},
        {"arguments": ["--depth", "2"], "py_files": ["s3://code/lib.zip"], "poll_every": "5m"},
        {"spark": {"spark.executor.instances": "2"}},
    ],
)
def test_w22_a_job_of_emr_on_eks_is_accepted(more: dict[str, Any]) -> None:
    made = ADAPTER.validate_python({**TARGET, **more})
    assert (made.type, made.has_lifecycle, made.needs_role, made.bills) == ("emr_eks", True, True, False)
    assert ADAPTER.validate_python(made.model_dump(mode="json")) == made


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("virtual_cluster", "A b"),
        ("virtual_cluster", ARN.replace("virtualclusters", "jobtemplates")),
        ("virtual_cluster", f"{ARN}/jobruns/1"),
        ("execution_role_arn", "job"),
        ("release", "emr 7"),
        ("entry_point", "clean.py"),
        ("entry_point", f"s3://code/{'x' * 250}"),
        ("arguments", [" "]),
        ("poll_every", "30s"),
    ],
)
def test_w22_what_eks_could_not_start_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        ADAPTER.validate_python({**TARGET, field: value})
    assert str(from_validation(caught.value).field).partition(".")[0] == field


def test_w22_a_document_names_its_cluster_role_and_code() -> None:
    """Files and properties are checked as those of EMR Serverless are."""
    more = {"py_files": ["s3://code/lib.zip"], "spark": {"spark.jars": "s3://code/a.jar"}}
    assert list(of_type("emr_eks").named({**TARGET, **more})) == [
        Named("engines", f"arn:*:emr-containers:*:*:/virtualclusters/{CLUSTER}", "virtual_cluster", CLUSTER),
        Named("execution_roles", ROLE, "execution_role_arn"),
        Named("entry_points", "s3://code/clean.py", "entry_point"),
        Named("entry_points", "s3://code/lib.zip", "py_files.0"),
        Named("entry_points", "s3://code/a.jar", "spark.spark.jars"),
        Named("spark", "spark.jars", "spark.spark.jars"),
    ]
    assert next(iter(of_type("emr_eks").named({**TARGET, "virtual_cluster": ARN}))).value == ARN
    with pytest.raises(SluiceError, match="without whitespace and quotes"):
        list(of_type("emr_eks").named({**TARGET, "spark": {"spark.a": "1 --jars s3://b/x.jar"}}))


def test_h6_lineage_is_below_the_properties_of_the_document() -> None:
    stored = {**TARGET, "spark": {"spark.a": "own"}}
    found = of_type("emr_eks").with_lineage(stored, {"spark.a": "x", "spark.openlineage.appName": "clean"})
    assert found["spark"] == {"spark.a": "own", "spark.openlineage.appName": "clean"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"state": "PENDING"}, None),
        ({"state": "SUBMITTED"}, None),
        ({"state": "CANCEL_PENDING"}, None),
        ({"state": "RUNNING"}, RunUpdate("RUNNING", NOON + SECOND, target_id=ID)),
        ({"state": "COMPLETED"}, RunUpdate("SUCCEEDED", NOON, target_id=ID)),
        ({"state": "CANCELLED"}, RunUpdate("CANCELLED", NOON, target_id=ID)),
        (
            {"state": "FAILED", "stateDetails": "no pods", "failureReason": "CLUSTER_UNAVAILABLE"},
            RunUpdate("FAILED", NOON, "no pods (CLUSTER_UNAVAILABLE)", ID, outcome="lost"),
        ),
        ({"state": "FAILED", "failureReason": "USER_ERROR"}, RunUpdate("FAILED", NOON, "USER_ERROR", ID)),
    ],
)
def test_w22_each_state_of_a_job_run_has_its_meaning(more: dict[str, Any], expected: RunUpdate | None) -> None:
    going = more["state"] in ("PENDING", "SUBMITTED", "CANCEL_PENDING", "RUNNING")
    ended = {} if going else {"finishedAt": datetime.fromtimestamp(NOON / 1000, UTC)}
    assert update_of({"virtualClusterId": CLUSTER, "id": "r1", **ended, **more}, NOON + SECOND) == expected


def test_w22_an_event_of_eks_with_details_is_complete() -> None:
    asked = {"virtualClusterId": CLUSTER, "name": "sluice-clean-1"}
    failed = EksRun("r1", asked, NOON, "FAILED", NOON, DETAILS, "USER_ERROR")
    event = event_of(failed, NOON + SECOND)
    change = of_event(event).read_event(event)
    assert (change.kind, change.target_id, change.state, change.complete) == ("emr_eks", ID, "FAILED", True)
    assert change.update is not None and change.update.at == NOON + SECOND
    assert change.update.reason == "exit code 1: ValueError: no such column... (USER_ERROR)"
    bare = event_of(replace(failed, details=""), NOON)
    assert not of_event(bare).read_event(bare).complete, "a poll says why"


def test_w22_the_name_of_a_job_run_fits_and_is_of_its_attempt() -> None:
    long = run(schedule="demo.flights.a~long.name~of-a-schedule")
    assert len(job_name(run())) <= len(job_name(long)) <= 64
    other = replace(run(), request=replace(run().request, client_token="f" * 40))
    assert job_name(run()) != job_name(other)


def test_w15_the_log_of_a_job_run_on_eks_is_listed() -> None:
    log = of_run(run()).log_of(run(target_id=ID))
    assert isinstance(log, NoLog)
    assert f"aws s3 ls --recursive s3://c/logs/demo/{CLUSTER}/jobs/r1/containers/ lists" in log.why
    assert of_run(run()).log_of(run()) == NoLog("it has no job run yet", "it never began there")
    assert of_type("emr_eks").log_folder("demo") == "demo/"
