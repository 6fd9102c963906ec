"""Request rates: a token bucket with a clock that the test sets, and the refusal from the client's side."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from infra.local.rates import Rate, TokenBucket
from tests.local.conftest import Emulators


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_its_burst_at_once_and_then_its_rate() -> None:
    clock = Clock()
    bucket = TokenBucket(Rate(1.0, 25), clock)
    assert [bucket.take() for _ in range(26)] == [True] * 25 + [False]
    clock.now = 2.0
    assert [bucket.take() for _ in range(3)] == [True, True, False]


@given(st.lists(st.floats(0, 3), max_size=60), st.integers(1, 10))
def test_no_interval_has_more_calls_than_burst_and_rate(pauses: list[float], burst: int) -> None:
    clock = Clock()
    bucket = TokenBucket(Rate(2.0, burst), clock)
    taken: list[float] = []
    for pause in pauses:
        clock.now += pause
        if bucket.take():
            taken.append(clock.now)
    for i, first in enumerate(taken):
        for j in range(i, len(taken)):
            assert j - i + 1 <= burst + 2.0 * (taken[j] - first) + 1e-6


def test_a_start_beyond_the_burst_is_refused_as_aws_refuses_it(emulators: Emulators) -> None:
    emr = emulators.start(start_tps=0.001, start_burst=3)
    for _ in range(3):
        emr.start()
    with pytest.raises(ClientError, match=r"ThrottlingException.*Rate exceeded: StartJobRun") as refused:
        emr.start()
    assert refused.value.response["Error"]["Code"] == "ThrottlingException"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429


def test_each_api_has_its_own_rate(emulators: Emulators) -> None:
    emr = emulators.start(
        instant_ms=60_000, list_tps=0.001, list_burst=1, get_tps=0.001, get_burst=2, cancel_tps=0.001, cancel_burst=1
    )
    run = emr.start()
    emr.boto.list_job_runs(applicationId=emr.application)
    with pytest.raises(ClientError, match="ThrottlingException"):
        emr.boto.list_job_runs(applicationId=emr.application)
    emr.get(run), emr.get(run)
    with pytest.raises(ClientError, match="ThrottlingException"):
        emr.get(run)
    emr.cancel(run)
    with pytest.raises(ClientError, match="ThrottlingException"):
        emr.cancel(run)
    emr.start()
