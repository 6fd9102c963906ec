"""Local services under test: emulators on free ports, each with separate state, and a moto server for S3 and SQS."""

from __future__ import annotations

import json
import logging
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import boto3
import pytest
from botocore.config import Config
from moto.server import ThreadedMotoServer

from infra.local.emr_serverless import Emulator, Settings

REGION = "us-east-1"
T = TypeVar("T")
ROLE = "arn:aws:iam::000000000000:role/job"


def eventually(poll: Callable[[], T], seconds: float = 10.0) -> T:
    """Returns the result of `poll` as soon as it is true. Fails after `seconds`."""
    until = time.monotonic() + seconds
    while not (seen := poll()):
        if time.monotonic() > until:
            pytest.fail(f"expected something true within {seconds} s, got {seen!r} to the end")
        time.sleep(0.02)
    return seen


def client(service: str, endpoint_url: str) -> Any:
    """A boto3 client that does not retry."""
    return boto3.client(
        service,
        endpoint_url=endpoint_url,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


@dataclass
class Emr:
    """An emulator with one application, with helpers for the tests."""

    emulator: Emulator
    boto: Any
    application: str

    def start(self, entry_point: str = "s3://code/job.py", arguments: list[str] | None = None, **more: Any) -> str:
        spark_submit: dict[str, Any] = {"entryPoint": entry_point, "entryPointArguments": arguments or []}
        if "spark" in more:
            spark_submit["sparkSubmitParameters"] = more.pop("spark")
        request = {"executionRoleArn": ROLE, "jobDriver": {"sparkSubmit": spark_submit}, **more}
        return str(self.boto.start_job_run(applicationId=self.application, **request)["jobRunId"])

    def get(self, run: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.boto.get_job_run(applicationId=self.application, jobRunId=run)["jobRun"]
        return answer

    def state(self, run: str) -> str:
        return str(self.get(run)["state"])

    def health(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.emulator.url}/health", timeout=5) as answer:
            view: dict[str, Any] = json.load(answer)
        return view

    def holds(self, running: int, waiting: int) -> None:
        """Wait until this many runs have a driver, and this many do not."""
        eventually(lambda: (self.health()["running"], self.health()["waiting"]) == (running, waiting))

    def cancel(self, run: str) -> None:
        self.boto.cancel_job_run(applicationId=self.application, jobRunId=run)

    def reaches(self, run: str, *states: str, seconds: float = 10.0) -> dict[str, Any]:
        """The run once it is in one of `states`."""
        eventually(lambda: self.state(run) in states, seconds)
        return self.get(run)


@dataclass
class Emulators:
    """Starts emulators; the fixture stops them."""

    directory: Path
    running: list[Emulator] = field(default_factory=list)

    def start(self, application: dict[str, Any] | None = None, **settings: Any) -> Emr:
        """Start an emulator with these ``settings``; by default with the instant driver and without rate limits."""
        unlimited = {"start_tps": 0, "cancel_tps": 0, "list_tps": 0, "get_tps": 0}
        chosen: dict[str, Any] = {"port": 0, "driver": "instant", "state_dir": self.directory, **unlimited, **settings}
        emulator = Emulator(Settings(**chosen)).start()
        self.running.append(emulator)
        boto = client("emr-serverless", emulator.url)
        made = boto.create_application(
            clientToken="the-application", name="jobs", type="SPARK", releaseLabel="emr-7.1.0", **application or {}
        )
        return Emr(emulator, boto, made["applicationId"])

    def stop(self, emr: Emr) -> None:
        self.running.remove(emr.emulator)
        emr.emulator.stop()


@pytest.fixture(autouse=True, scope="module")
def key_of_emulators() -> Iterator[None]:
    """The key with which `client` signs. Some modules start an emulator for all of their tests."""
    with pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "test")
        yield


@pytest.fixture
def emulators(tmp_path: Path) -> Iterator[Emulators]:
    started = Emulators(tmp_path / "state")
    yield started
    for emulator in started.running:
        emulator.stop()


@pytest.fixture(scope="session")
def cloud() -> Iterator[str]:
    """The endpoint of a moto server, which replaces the rest of the local cloud."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(cloud: str) -> Any:
    return client("s3", cloud)


@pytest.fixture
def bucket(s3: Any, request: pytest.FixtureRequest) -> str:
    """An empty bucket for the test."""
    name = "b-" + "".join(c for c in request.node.name.lower() if c.isalnum())[:40]
    s3.create_bucket(Bucket=name)
    return name
