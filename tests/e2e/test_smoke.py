"""`make smoke` on the local cloud, and its message if it cannot begin."""

from __future__ import annotations

import json
import os
from typing import Any
from unittest.mock import patch

import pytest
from moto import mock_aws

from infra import smoke
from infra.local.endpoints import Endpoints

CHECKS = (
    *("health", "app deployed", "schedule by cron", "message", "pull worker", "dead letter redriven"),
    *("burst of 1,000", "partition to Spark", "DAG of two nodes"),
)


@pytest.mark.long
@pytest.mark.cloud
@pytest.mark.spark
def test_o7_the_smoke_test_leaves_a_deployed_stack_as_it_was(
    cloud: Endpoints, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _queues(cloud)
    with patch.dict(os.environ):  # it puts the keys of the local cloud into the environment
        assert smoke.main([]) == 0
    answer = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert (answer["smoke"], answer["not_removed"]) == ("ok", 0)
    assert tuple(answer["checks"]) == CHECKS
    assert answer["checks"]["burst of 1,000"]["doubled"] == 0
    assert answer["emr_usd"] > 0
    assert _queues(cloud) == before


def _queues(cloud: Endpoints) -> list[str]:
    return sorted(cloud.client("sqs").list_queues(QueueNamePrefix="sluice-target-smoke").get("QueueUrls", []))


def test_o7_the_smoke_test_states_its_cost_before_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    assert smoke.main(["--stage", "prod"]) == 2
    answer = " ".join(capsys.readouterr().err.split())
    assert "for about $0.10. Start it with: make smoke STAGE=prod ACCEPT_COST=yes" in answer


def test_o7_a_missing_stack_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "x"), ("AWS_REGION", "eu-west-1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        assert smoke.main(["--stage", "prod", "--accept-cost"]) == 2
    answer = " ".join(capsys.readouterr().err.split())
    assert "expected a stack sluice-prod in eu-west-1, got none: make deploy STAGE=prod" in answer


def test_o7_an_unreadable_figure_fails_no_check() -> None:
    def refuse() -> int:
        raise smoke.ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetMetricStatistics")

    assert smoke._known(refuse) is None
    assert smoke._known(lambda: 3) == 3


class Nobody:
    """An API that refuses every request, and an empty AWS account."""

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: Any, **__: Any) -> Any:
            raise smoke.Failure("the API says no")

        return refuse


def test_o7_a_failing_check_is_reported_and_bad_health_stops_all() -> None:
    outputs = {"LakeBucket": "lake", "ControlBucket": "control"}
    stage = smoke.Stage("x", Nobody(), lambda service: Nobody(), outputs, 1)
    checks = smoke.Smoke(stage, lambda words: None).play()
    assert [(check.name, "the API says no" in check.error) for check in checks] == [("health", True)]


def test_o7_a_resource_that_cannot_be_removed_is_named() -> None:
    outputs = {"LakeBucket": "lake", "ControlBucket": "control"}
    stage = smoke.Stage("x", Nobody(), lambda service: Nobody(), outputs, 1)
    made = smoke.Smoke(stage, lambda words: None)
    made._objects.append(("lake", "a/b"))
    left = made.remove()
    assert [each.partition("  (")[0] for each in left] == [
        f"DELETE {made.base}/apps/smoke",
        f"DELETE {made.base}/datasets/drop",
        f"DELETE {made.base}",
        "aws s3 rm s3://lake/a/b",
    ]
