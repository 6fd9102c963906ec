"""The examples that take longer than a minute, as `make example` plays them: real Spark jobs on real flights."""

from __future__ import annotations

import json

import pytest

from examples.features import build
from examples.hours import run as hours
from examples.retraining import retrain
from infra.local.endpoints import Endpoints

pytestmark = [pytest.mark.cloud, pytest.mark.spark, pytest.mark.long]


@pytest.fixture(autouse=True)
def environment_of_the_cloud(monkeypatch: pytest.MonkeyPatch, cloud: Endpoints) -> None:
    """An example sets these variables in its process; they are removed after each test."""
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)


def test_h4_a_month_of_nights_is_backfilled_and_verified(cloud: Endpoints, capsys: pytest.CaptureFixture[str]) -> None:
    """The example verifies itself: every night once and two at a time, each row equal to the raw lines, and a rerun
    without changes.
    """
    assert build.main() == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (answer["example"], answer["nights"]) == ("ok", len(build.MONTH))
    assert answer["verified"] >= 3 * len(build.MONTH), "three airports a day"


def test_t25_days_of_real_hours_are_summarized_when_complete(
    cloud: Endpoints, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example verifies itself: `why` names the missing hours, each day runs once and after its last hour, each row
    equal to the raw lines.
    """
    assert hours.main() == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert answer["example"] == "ok"
    assert sorted(answer["hours"].values()) == [23, 24, 25]
    assert answer["verified"] == 3 * 3, "three days at three airports"


def test_h4_a_dag_retrains_models_and_publishes_the_better_ones(
    cloud: Endpoints, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example verifies itself: one training at a time, none overtaken by a less urgent one, and only models that
    beat the baseline are published.
    """
    assert retrain.main() == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert answer["example"] == "ok"
    assert sorted(answer["order"]) == sorted(retrain.PRIORITIES)
