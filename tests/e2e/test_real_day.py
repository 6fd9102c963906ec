"""The whole flow on the local cloud: signed API, S3 notifications, Lambdas, and real Spark. Nothing is faked."""

from __future__ import annotations

import gzip
import json
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from examples.flights import data
from infra.local.endpoints import Endpoints
from sluice import documents
from sluice.client import Client

pytestmark = [pytest.mark.cloud, pytest.mark.spark]

ROOT = Path(__file__).parents[2]
DAY = date(2013, 1, 1)
THROWS = """
import sys
print("about to fail", file=sys.stderr)
raise ValueError("column dep_time is not what it was: " + sys.argv[-2])
"""


class RealDay:
    """A new namespace and prefix on the local cloud, and the client to read it."""

    def __init__(self, endpoints: Endpoints, client: Client) -> None:
        self.endpoints, self.client = endpoints, client
        self.name = f"e2e-{uuid.uuid4().hex[:8]}"
        self.prefix = f"{self.name}/"
        self.s3 = endpoints.client("s3")
        self.lake, self.control = endpoints.outputs["LakeBucket"], endpoints.outputs["ControlBucket"]
        self.base = f"/v1/namespaces/{self.name}"

    def code(self, name: str, text: str) -> str:
        key = f"code/{self.name}/{name}"
        self.s3.put_object(Bucket=self.control, Key=key, Body=text.encode())
        return f"s3://{self.control}/{key}"

    def deploy(self, app: dict[str, Any]) -> None:
        self.client.put(self.base, {})
        self.client.put(f"{self.base}/apps/flights", app)

    def runs(self, schedule: str) -> list[dict[str, Any]]:
        return list(self.client.get(f"{self.base}/apps/flights/schedules/{schedule}/runs")["items"])

    def until(self, poll: Callable[[], Any], seconds: float) -> Any:
        end = time.monotonic() + seconds
        while not (seen := poll()):
            assert time.monotonic() < end, (
                f"expected it within {seconds} s; runs: {self.client.get(self.base + '/runs')}"
            )
            time.sleep(0.5)
        return seen


@pytest.fixture
def channel(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealDay]:
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    made = RealDay(cloud, Client.from_environment())
    yield made
    for schedule in made.client.get(f"{made.base}/apps/flights/schedules")["items"]:
        made.client.post(f"/v1/namespaces/{made.name}/apps/flights/schedules/{schedule['name'].split('.')[2]}/disable")


def test_a_real_day_is_cleaned_and_its_join_waits_for_weather(channel: RealDay) -> None:
    for job in ("clean_flights.py", "delays_by_weather.py", "daily_report.py"):
        channel.code(job, (ROOT / "jobs" / job).read_text())
    channel.code("sluice_job.py", (ROOT / "job_library" / "sluice_job.py").read_text())
    values = {"namespace": channel.name, "prefix": channel.prefix, "lake": channel.lake}
    app = documents.load(
        str(ROOT / "examples" / "flights" / "app.yaml"),
        values | {"code": f"s3://{channel.control}/code/{channel.name}/"},
    )
    del app["schedules"]["report"]
    channel.deploy(app)

    data.upload_day(channel.s3, channel.lake, f"{channel.prefix}raw/", DAY, kinds=("flights",))
    [clean] = channel.until(lambda: [run for run in channel.runs("clean") if run["state"] == "SUCCEEDED"], 120)

    assert clean["correlation"] == {"year": "2013", "month": "1", "day": "1"}
    assert clean["start_calls"] == 1
    folder = f"{channel.prefix}clean/flights/year=2013/month=1/day=1/"
    written = [row["Key"] for row in channel.s3.list_objects_v2(Bucket=channel.lake, Prefix=folder)["Contents"]]
    assert f"{folder}_SUCCESS" in written
    assert any(key.endswith(".parquet") for key in written)
    context = json.loads(
        channel.s3.get_object(Bucket=channel.control, Key=f"context/{clean['run_id']}.json")["Body"].read().decode()
    )
    assert context["events"][0]["partition"] == {"year": "2013", "month": "1", "day": "1"}

    why = channel.until(lambda: channel.client.get(f"{channel.base}/apps/flights/schedules/join/why")["jobs"], 20)
    assert f"1 partition of {channel.name}.weather" in why[0]["why"]
    assert channel.runs("join") == []

    data.upload_day(channel.s3, channel.lake, f"{channel.prefix}raw/", DAY, kinds=("weather",))
    [join] = channel.until(lambda: [run for run in channel.runs("join") if run["state"] == "SUCCEEDED"], 120)
    upstream = json.loads(
        channel.s3.get_object(Bucket=channel.control, Key=f"context/{join['run_id']}.json")["Body"].read().decode()
    )["upstream"]
    assert upstream["run_id"] == clean["run_id"]


def test_a_job_that_raises_leaves_its_last_error_in_the_run(channel: RealDay) -> None:
    entry = channel.code("throws.py", THROWS)
    app = {
        "datasets": {"drop": {"bucket": "lake", "prefix": f"{channel.prefix}drop/", "keys": ["n"]}},
        "workflows": {"throws": {"target": {"type": "emr_serverless", "entry_point": entry}}},
        "schedules": {
            "fails": {"workflow": "throws", "enabled": True, "trigger": {"type": "partition", "dataset": "drop"}}
        },
    }
    channel.deploy(app)
    channel.s3.put_object(Bucket=channel.lake, Key=f"{channel.prefix}drop/n=1/a", Body=b"x")

    [run] = channel.until(lambda: [run for run in channel.runs("fails") if run["state"] == "FAILED"], 120)

    assert "ValueError: column dep_time is not what it was" in run["reason"]
    why = channel.client.get(f"/v1/runs/{run['run_id']}/why")
    assert why["why"] == run["reason"]
    application, job_run = run["target_id"].split("/")
    key = f"logs/{channel.name}/applications/{application}/jobs/{job_run}/SPARK_DRIVER/stdout.gz"
    log = gzip.decompress(channel.s3.get_object(Bucket=channel.control, Key=key)["Body"].read()).decode()
    assert "ValueError" in log


def test_a_timer_delivers_to_a_queue_on_its_seconds_not_before(channel: RealDay) -> None:
    sqs = channel.endpoints.client("sqs")
    url = sqs.create_queue(QueueName=f"sluice-target-{channel.name}")["QueueUrl"]
    app = {
        "workflows": {"beat": {"target": {"type": "sqs", "queue_url": url}, "properties": {"kind": "beat"}}},
        "schedules": {
            "beat": {"workflow": "beat", "enabled": True, "trigger": {"type": "time", "expression": "@every 5s"}}
        },
    }
    channel.deploy(app)

    got: list[dict[str, Any]] = []

    def three() -> bool:
        answer = sqs.receive_message(
            QueueUrl=url,
            WaitTimeSeconds=1,
            MaxNumberOfMessages=10,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        got.extend(answer.get("Messages", []))
        return len(got) >= 3

    channel.until(three, 60)
    sqs.delete_queue(QueueUrl=url)
    for message in got:
        nominal = json.loads(message["Body"])["logical_start_time"]
        assert int(message["Attributes"]["SentTimestamp"]) >= nominal
        assert json.loads(message["Body"])["properties"] == {"kind": "beat"}
    ids = [message["MessageAttributes"]["sluice-event-id"]["StringValue"] for message in got]
    assert len(ids) == len(set(ids))
