"""Workers that are real processes, at a real HTTP server, running real commands; one of them is killed (W5)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.conftest import APP, WEEKDAYS
from tests.workers.served import Served, serving

PULLED = {
    "target": {"type": "worker", "pool": "etl", "arguments": ["a b", "c"]},
    "retries": {"attempts": 2, "delay": "1s"},
}
SCRIPT = "from sluice.cli import app; app()"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as made:
        made.api.put(f"{APP}/workflows/pulled", PULLED)
        made.api.schedule("pull", workflow="pulled", trigger=WEEKDAYS, enabled=True)
        yield made


@pytest.fixture
def start(served: Served) -> Iterator[Any]:
    """Starts workers, and ends them all after the test."""
    started: list[subprocess.Popen[str]] = []

    def worker(name: str, *command: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        words = ["worker", "run", "--pool", "demo.etl", "--name", name, *options, "--", *command]
        keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
        environment = {**os.environ, **keys, "SLUICE_API_URL": served.url, "NO_PROXY": "127.0.0.1"}
        made = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(made)
        return made

    yield worker
    for each in started:
        each.kill()
        each.communicate()


def run_now(served: Served, key: str, **properties: Any) -> str:
    with served.lock:
        answer = served.api.post(f"{APP}/schedules/pull/run", {"properties": properties}, idempotency_key=key)
        served.api.work()
    run_id: str = answer["job_id"]
    return run_id


def test_w5_a_worker_does_runs_of_its_pool_and_ends_when_empty(served: Served, start: Any) -> None:
    first, second = run_now(served, "a", day=1), run_now(served, "b", day=2)
    show = 'echo "$SLUICE_PROPERTIES"; echo "$@"; grep -c run_id "$SLUICE_CONTEXT_FILE"'
    worker = start("ann", "sh", "-c", show, "sh", "{args}", "{run_id}", options=("--once", "--concurrency", "2"))

    answer, _ = worker.communicate(timeout=60)

    assert worker.returncode == 0
    for number, run_id in enumerate((first, second), start=1):
        assert served.run(run_id)["state"] == "SUCCEEDED"
        logs = served.api.get(f"/v1/runs/{run_id}/logs")
        assert logs["streams"]["output"] == [f'{{"day": {number}}}', f"a b c {run_id}", "1"]
    assert "a b c" in answer, "what the commands say passes through"


def test_w5_the_job_of_a_killed_worker_goes_to_another_in_time(served: Served, start: Any) -> None:
    run_id = run_now(served, "killed")
    killed = start("ann", "sleep", "3")
    served.comes_to(run_id, "RUNNING")

    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    served.passes(60 + 60 + 6)

    def noticed() -> dict[str, Any] | None:
        served.passes(0)  # the hint of a tick comes two seconds after it
        attempt: dict[str, Any] = served.run(run_id)["history"][0]
        return attempt if attempt["outcome"] == "lost" else None

    lost = served.until(noticed, "the loss of the worker")
    assert lost["state"] == "RETRYING"
    assert lost["reason"].startswith("lost: worker ann has sent no heartbeat since")
    served.passes(10)
    other = start("bob", "true", options=("--once",))
    other.communicate(timeout=60)
    run = served.run(run_id)
    assert (run["state"], run["attempt"], run["target_id"]) == ("SUCCEEDED", 2, "bob")
    assert [each["state"] for each in run["history"]] == ["RETRYING", "SUCCEEDED"]


def test_w5_a_worker_asked_to_stop_finishes_and_claims_no_more(served: Served, start: Any) -> None:
    run_id = run_now(served, "drained")
    worker = start("ann", "sh", "-c", "sleep 1; echo done")
    served.comes_to(run_id, "RUNNING")

    worker.send_signal(signal.SIGTERM)
    left = run_now(served, "left")
    worker.communicate(timeout=60)

    assert worker.returncode == 0
    assert served.run(run_id)["state"] == "SUCCEEDED"
    assert served.run(left)["state"] == "STARTING"
    start("bob", "true", options=("--once",)).communicate(timeout=60)


def test_w5_a_result_is_kept_while_the_api_cannot_be_reached(served: Served, start: Any) -> None:
    run_id = run_now(served, "kept")
    worker = start("ann", "sh", "-c", "sleep 0.5; echo kept; exit 4", options=("--once",))
    served.comes_to(run_id, "RUNNING")
    served.down.set()
    assert worker.stderr is not None
    assert any("report not answered, will be repeated" in line for line in worker.stderr), "the worker ended"
    served.down.clear()
    worker.communicate(timeout=60)
    run = served.run(run_id)
    assert (run["state"], run["reason"]) == ("RETRYING", "exit code 4: kept")
