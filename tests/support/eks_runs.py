"""A client of EMR on EKS in memory, with the calls of `aws/targets/emr_eks.py`. It checks each request against AWS's
own model, and refuses as AWS does.

https://docs.aws.amazon.com/emr-on-eks/latest/APIReference/Welcome.html
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ReadTimeoutError

from infra.local import service_model
from tests.support.state_machines import refused

CLUSTER = "0b1c2d3e4f"
ROLE = "arn:aws:iam::123456789012:role/sluice-target-job"
TARGET: dict[str, Any] = {
    "type": "emr_eks",
    "virtual_cluster": CLUSTER,
    "execution_role_arn": ROLE,
    "release": "emr-7.5.0-latest",
    "entry_point": "s3://code/clean.py",
}
GOING = ("PENDING", "SUBMITTED", "RUNNING")


@dataclass
class EksRun:
    id: str
    asked: dict[str, Any]
    created: int
    state: str = "PENDING"
    ended: int | None = None
    details: str = ""
    failure: str = ""

    @property
    def target_id(self) -> str:
        return f"{self.asked['virtualClusterId']}/{self.id}"


@dataclass
class EksRuns:
    """``refusals`` are errors to raise instead of answers, the first one first. ``lose_answers`` is the number of
    starts that succeed without an answer. ``forget``: EMR knows no token any more. ``calls`` are the operations that
    were called. ``page`` is the most of runs on a page."""

    clock: Any
    runs: dict[str, EksRun] = field(default_factory=dict)
    refusals: list[Exception] = field(default_factory=list)
    lose_answers: int = 0
    forget: bool = False
    page: int = 1
    calls: list[str] = field(default_factory=list)

    @property
    def meta(self) -> Any:
        return SimpleNamespace(region_name="us-east-1")

    def start_job_run(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("StartJobRun", asked)
        same = [run for run in self.runs.values() if run.asked["clientToken"] == asked["clientToken"]]
        number = f"{len(self.runs) + 1:019}"
        made = same[0] if same and not self.forget else EksRun(number, asked, self.clock.now())
        self.runs[made.id] = made
        if self.lose_answers:
            self.lose_answers -= 1
            raise ReadTimeoutError(endpoint_url="https://emr-containers.example")
        return {"id": made.id, "name": asked["name"], "virtualClusterId": asked["virtualClusterId"]}

    def describe_job_run(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("DescribeJobRun", asked)
        return {"jobRun": _shown(self._found(asked))}

    def list_job_runs(self, **asked: Any) -> dict[str, Any]:
        """Those of the name. A page may be empty although more follow."""
        self._expect_valid("ListJobRuns", asked)
        of_cluster = [run for run in self.runs.values() if run.asked["virtualClusterId"] == asked["virtualClusterId"]]
        begin = int(asked.get("nextToken", "0"))
        page = of_cluster[begin : begin + self.page]
        shown = [
            run for run in page if run.asked["name"] == asked["name"] and _date(run.created) > asked["createdAfter"]
        ]
        more = {"nextToken": str(begin + self.page)} if begin + self.page < len(of_cluster) else {}
        return {"jobRuns": [_shown(run) for run in shown], **more}

    def cancel_job_run(self, **asked: Any) -> dict[str, Any]:
        self._expect_valid("CancelJobRun", asked)
        run = self._found(asked)
        if run.state not in GOING:
            raise refused("ValidationException", f"Job run {run.id} is not in a cancellable state")
        self.end(run, "CANCELLED")
        return dict(asked)

    def end(self, run: EksRun, state: str, details: str = "", failure: str = "") -> None:
        run.state, run.ended, run.details, run.failure = state, self.clock.now(), details, failure

    def _found(self, asked: dict[str, Any]) -> EksRun:
        found = self.runs.get(asked["id"])
        if found is None or found.asked["virtualClusterId"] != asked["virtualClusterId"]:
            raise refused("ResourceNotFoundException", f"Job run {asked['id']} doesn't exist.")
        return found

    def _expect_valid(self, operation: str, asked: dict[str, Any]) -> None:
        self.calls.append(operation)
        problems = service_model.problems("emr-containers", operation, asked)
        assert not problems, f"AWS would refuse {operation}: {problems}"
        if self.refusals:
            raise self.refusals.pop(0)


def event_of(run: EksRun, now: int, **changed: Any) -> dict[str, Any]:
    """The event of a state change.
    https://docs.aws.amazon.com/eventbridge/latest/ref/events-ref-emr-containers.html"""
    shown = _shown(run) | {"createdAt": _text(run.created)}
    if run.ended is not None:
        shown["finishedAt"] = _text(run.ended)
    return {
        "version": "0",
        "id": "abcdef00-1234-5678-9abc-def012345678",
        "detail-type": "EMR Job Run State Change",
        "source": "aws.emr-containers",
        "account": "123456789012",
        "time": _text(now),
        "region": "us-east-1",
        "resources": [],
        "detail": {**shown, **changed},
    }


def _shown(run: EksRun) -> dict[str, Any]:
    return {
        "id": run.id,
        "name": run.asked["name"],
        "virtualClusterId": run.asked["virtualClusterId"],
        "state": run.state,
        "createdAt": _date(run.created),
        **({"finishedAt": _date(run.ended)} if run.ended is not None else {}),
        **({"stateDetails": run.details} if run.details else {}),
        **({"failureReason": run.failure} if run.failure else {}),
    }


def _text(instant: int) -> str:
    return _date(instant).isoformat(timespec="seconds").replace("+00:00", "Z")


def _date(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)
