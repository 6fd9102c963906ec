"""The texts that workers may send, and their characters (W5)."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.web.conftest import APP, WEEKDAYS, Api
from tests.web.test_workers import ANN, PULLED, claim

COUNT = count()


@pytest.fixture(scope="module")
def said(standing: Api) -> Api:
    standing.put(f"{APP}/workflows/pulled", PULLED)
    standing.schedule("pull", workflow="pulled", trigger=WEEKDAYS, enabled=True)
    return standing


@pytest.fixture
def pool(said: Api) -> Api:
    """One more run in its pool."""
    said.post(f"{APP}/schedules/pull/run", idempotency_key=f"k{next(COUNT)}")
    said.work()
    return said


@pytest.mark.parametrize("output", ["😀" * 16_000, "\x1b[31m\x00" * 15_000, "zwölf\n" * 16_000])
def test_w5_the_last_lines_of_a_report_may_be_of_any_characters(pool: Api, output: str) -> None:
    lease = claim(pool)[0]
    end = {**ANN, "state": "failed", "exit_code": 1, "output": output}
    assert pool.post(f"/v1/leases/{lease['lease']}/report", end)["state"] == "FAILED"
    answer = pool.get(f"/v1/runs/{lease['run_id']}/logs?lines=10000")["streams"]["output"]
    assert answer == output[-16_000:].splitlines()


def test_w15_the_logs_of_a_run_without_a_report_say_why(pool: Api) -> None:
    lease = claim(pool)[0]
    path = f"/v1/runs/{lease['run_id']}/logs"
    assert pool.get(path)["why"] == "its worker has reported no output yet; it reports when the work ends"
    pool.post(f"/v1/leases/{lease['lease']}/report", {**ANN, "state": "succeeded"})
    assert pool.get(path)["why"] == "its worker reported no output"


@pytest.mark.parametrize("metrics", [{"a": 10**60}, {"a": -1e300}, {"a" * 60: True}, {"": 1}, {"ä": "😀\x00"}])
def test_w5_metrics_of_any_size_are_kept_as_reported(pool: Api, metrics: dict[str, Any]) -> None:
    lease = claim(pool)[0]
    pool.post(f"/v1/leases/{lease['lease']}/heartbeat", {**ANN, "metrics": metrics})
    assert pool.get(f"/v1/runs/{lease['run_id']}")["metrics"] == metrics
