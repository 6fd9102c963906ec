# ruff: noqa: F811 - a test's argument is the fixture that is imported
"""User story 6 on the local cloud, where only the computation of a job is faked: urgent jobs overtake a backlog."""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from infra.local import processes, rollout, services
from infra.local.endpoints import Endpoints
from infra.local.layout import Layout
from sluice.client import Client
from tests.support.cloud import cloud  # noqa: F401 - a fixture

pytestmark = pytest.mark.cloud

PATIENCE = 180.0  # seconds of real time for each step, which takes a tenth of that on an idle machine
BACKLOG, URGENT = 30, 4
SLOTS = 8  # runs at a time, of two vCPUs each: the size of the pool, and the capacity of EMR
INSTANT = {
    "SLUICE_EMR_DRIVER": "instant",
    "SLUICE_EMR_INSTANT_MS": "200",
    "SLUICE_EMR_MAX_RUNNING": str(SLOTS),
    "SLUICE_EMR_CLASS_ARCHIVE": "off",
}
RUN = {"workers": 1, "vcpu": 1}
ALWAYS_LATER = {"type": "time", "expression": "0 0 1 1 *"}  # they are started by hand


def until(poll: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE
    while not (seen := poll()):
        assert time.monotonic() < end, f"expected {what} within {PATIENCE:g} s"
        time.sleep(0.5)
    return seen


@contextmanager
def emulator(cloud: Endpoints, settings: dict[str, str]) -> Iterator[None]:
    """EMR with other settings: the same port, the same application, the same history."""
    layout = Layout()
    ports = [int(urlsplit(url).port or 0) for url in (cloud.aws_url, cloud.emr_url)]

    def restart(environment: dict[str, str]) -> None:
        with layout.exclusively():
            processes.stop(layout.emr_process, PATIENCE)
            services.start_emr(layout, environment | {"SLUICE_EMR_PORT": str(ports[1])}, ports[0])
            services.wait_for_emr(layout, ports[1])

    emr, own = cloud.client("emr-serverless"), rollout.emr_application(cloud.emr_url)
    going = ["SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "CANCELLING"]
    until(lambda: not emr.list_job_runs(applicationId=own, states=going)["jobRuns"], "an EMR with nothing to do")
    restart(os.environ | settings)
    yield
    restart(dict(os.environ))


class Stage:
    """A new namespace, whose pool EMR and pull workers share."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.name = f"load-{uuid.uuid4().hex[:8]}"
        self.emr, self.application = endpoints.client("emr-serverless"), rollout.emr_application(endpoints.emr_url)
        self.client = Client.from_environment()
        self.base = f"/v1/namespaces/{self.name}"
        self.app = f"{self.base}/apps/load"

    def deploy(self) -> None:
        spark = {"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}, "resources": RUN}
        occupant = {"target": {"type": "worker", "pool": "crew"}, "slots": 2 * SLOTS}
        parts = {"bulk": spark, "alert": spark, "occupant": occupant}
        priorities = {"bulk": 1, "alert": 9, "occupant": 5}
        self.client.put(self.base, {})
        document = {
            "pools": {"cluster": {"size": 2 * SLOTS, "unit": "vcpu"}},
            "workflows": {name: {**workflow, "pool": "cluster"} for name, workflow in parts.items()},
            "schedules": {
                name: {"workflow": name, "enabled": True, "trigger": ALWAYS_LATER, "priority": priority}
                for name, priority in priorities.items()
            },
        }
        self.client.put(self.app, document)

    def start(self, name: str, count: int = 1) -> None:
        for _ in range(count):
            self.client.post(f"{self.app}/schedules/{name}/run", {})

    def runs(self, name: str) -> list[dict[str, Any]]:
        return list(self.client.get(f"{self.app}/schedules/{name}/runs", {"limit": 100})["items"])

    def pool(self) -> dict[str, Any]:
        answer = self.client.get(f"{self.base}/pools/cluster")
        assert answer["in_use"] <= answer["size"], "never more than there are"
        return dict(answer)

    def left(self) -> int:
        """The number of jobs that wait for the pool, or hold units of it."""
        answer = self.pool()
        return int(answer["waiting"]) + int(answer["in_use"])

    def calls(self) -> Counter[str]:
        """EMR's own list of Sluice's runs, by name."""
        pages = self.emr.get_paginator("list_job_runs").paginate(applicationId=self.application)
        return Counter(run["name"] for page in pages for run in page["jobRuns"] if run["name"].startswith(self.name))


@pytest.fixture
def stage(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    made = Stage(cloud)
    with emulator(cloud, INSTANT):
        made.deploy()
        yield made
        made.client.request("DELETE", made.app)


@pytest.mark.long
def test_story_6_urgent_work_passes_a_backlog_on_the_cloud(stage: Stage) -> None:
    stage.start("occupant")
    until(lambda: stage.pool()["in_use"] == 2 * SLOTS, "a pool that is full")
    stage.start("bulk", BACKLOG)
    until(lambda: stage.pool()["waiting"] == BACKLOG, "a backlog in the queue")
    stage.start("alert", URGENT)
    until(lambda: stage.pool()["waiting"] == BACKLOG + URGENT, "the urgent ones behind it")
    [job] = stage.client.get(f"{stage.app}/schedules/alert/jobs", {"limit": 1})["items"]
    assert "waits for 2 vCPU of pool" in stage.client.get(f"/v1/jobs/{job['job_id']}/why")["why"]

    [occupant] = stage.runs("occupant")
    stage.client.post(f"/v1/runs/{occupant['run_id']}/cancel", {})
    until(lambda: stage.left() <= BACKLOG - URGENT, "an end of the urgent ones, and the backlog under way")
    stage.start("alert")  # one more urgent run, during the backlog
    until(lambda: len(stage.runs("alert")) == URGENT + 1 and stage.left() == 0, "an end of the backlog")

    urgent, backlog = stage.runs("alert"), stage.runs("bulk")
    first = sorted(urgent, key=lambda run: str(run["claimed_at"]))[:URGENT]
    assert max(run["claimed_at"] for run in first) <= min(run["claimed_at"] for run in backlog)
    assert Counter(run["state"] for run in (*urgent, *backlog)) == {"SUCCEEDED": URGENT + 1 + BACKLOG}
    assert stage.calls() == {f"{run['run_id']}-1": 1 for run in (*urgent, *backlog)}, "each once, and nothing else"
