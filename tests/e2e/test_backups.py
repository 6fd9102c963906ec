"""The example `examples/backups` on the local cloud, smaller: real schedules, a real queue, real copies."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from examples.backups import run
from examples.backups.run import Scale
from examples.stage import Stage
from infra.local.endpoints import Endpoints

pytestmark = [pytest.mark.cloud, pytest.mark.long]

# Without the policy, 40 would come within a second or two; with it they take ten seconds.
SMALL = Scale(logs=40, apps=2, most=20, interval=5, window=1)


@pytest.fixture
def stage(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    yield Stage(cloud, "e2e-backups", Console(file=io.StringIO()))


def test_h4_backups_due_together_come_at_their_policy_pace(stage: Stage) -> None:
    answer = run.play(stage, SMALL)  # it verifies itself: each once, at most 20 in any 5 s, the urgent first, the bytes

    assert answer["backups"] == 40
    assert 1 < answer["most"] <= 20
    assert stage.client.get(f"{stage.base}/apps")["items"] == []
