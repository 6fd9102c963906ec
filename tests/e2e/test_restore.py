"""The procedure after a loss of data (docs/operations.md), on the local cloud with the real command line (O4).

Two stacks of the test's own share an emulator of EMR Serverless and a watched bucket. The local cloud has no
point-in-time recovery. So the test copies each table while work goes on, at an instant of its own. Nothing of the first
stack is stopped or known to the second one but these copies, EMR's runs, the contexts and the data.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from infra import deploy, stack
from infra.local import developer, rollout
from infra.local.emr_serverless import Emulator, Settings
from infra.local.endpoints import Endpoints
from infra.local.layout import ROOT, Layout
from sluice.client import Client
from sluice.errors import NotReachable

pytestmark = [pytest.mark.cloud, pytest.mark.long]

TABLES = {"runs": "RunsTable", "jobs": "JobsTable", "catalog": "CatalogTable"}
PATIENCE = 600  # seconds of real time
MINUTELY = {"trigger": {"type": "time", "expression": "* * * * *"}, "coalesce": False}
ARRIVED = {"trigger": {"type": "partition", "dataset": "days"}, "coalesce": False}
AFTER = {"trigger": {"type": "program_status", "workflow": "load", "statuses": ["COMPLETED"]}, "coalesce": False}


def eventually(found: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE
    while not (seen := found()):
        assert time.monotonic() < end, f"expected {what} within {PATIENCE} s"
        time.sleep(1)
    return seen


class Stack:
    """One installation, with its own environment for the command line."""

    def __init__(self, cloud: Endpoints, emr: Emulator, application: str, stage: str, bucket: str) -> None:
        self.cloud, self.name = cloud, f"sluice-{stage}"
        given = rollout.parameters(cloud.aws_url, emr.url, application) | {"Stage": stage, "WatchedBuckets": bucket}
        made = deploy.deploy(cloud.session(), self.name, Layout().package, given, poll_seconds=0.1)
        self.outputs = made.outputs
        own = cloud.environment() | {
            "SLUICE_API_URL": self.outputs["ApiUrl"],
            "AWS_ENDPOINT_URL_EMR_SERVERLESS": emr.url,
        }
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | own

    def sluice(self, *words: str) -> Any:
        """The answer of the real command line, in another process."""
        done = subprocess.run(
            [str(Path(sys.executable).with_name("sluice")), *words],
            env=self.environment, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout) if "--json" in words else done.stdout

    def runs(self, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        """All runs. A busy machine may not answer in time."""
        monkeypatch.setenv("SLUICE_API_URL", self.outputs["ApiUrl"])

        def listed() -> Any:
            with suppress(NotReachable):
                return Client.from_environment().listing("/v1/namespaces/demo/runs")["items"]

        found: list[dict[str, Any]] = eventually(listed, "an answer of the API")
        return found

    def remove(self) -> None:
        s3 = self.cloud.client("s3")
        for output in ("LakeBucket", "ControlBucket"):
            empty(s3, self.outputs[output])
        stack.delete(self.cloud.client("cloudformation"), self.name, poll_seconds=0.1)


def empty(s3: Any, bucket: str) -> None:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in page.get("Contents", ()):
            s3.delete_object(Bucket=bucket, Key=entry["Key"])


class Rehearsal:
    def __init__(self, cloud: Endpoints, emr: Emulator, mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cloud, self.mark, self.monkeypatch = cloud, mark, monkeypatch
        self.s3, self.dynamodb = cloud.client("s3"), cloud.client("dynamodb")
        self.bucket = f"sluice-restore-{self.mark}"
        self.s3.create_bucket(Bucket=self.bucket)
        notify = {"EventBridgeConfiguration": {}}
        self.s3.put_bucket_notification_configuration(Bucket=self.bucket, NotificationConfiguration=notify)
        for name, value in cloud.environment().items():
            monkeypatch.setenv(name, value)
        self.emr = cloud.session().client("emr-serverless", endpoint_url=emr.url)
        made = self.emr.create_application(name="restored", releaseLabel="emr-7.9.0", type="SPARK", clientToken="x")
        self.application = made["applicationId"]
        self.old = Stack(cloud, emr, self.application, f"old{self.mark}", self.bucket)
        self.new: Stack | None = None
        self.again = lambda: Stack(cloud, emr, self.application, f"new{self.mark}", self.bucket)
        self.restored: dict[str, str] = {}

    def arrives(self, day: int) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=f"days/day={day}/a.csv", Body=b"1")

    def at_emr(self) -> list[dict[str, Any]]:
        pages = self.emr.get_paginator("list_job_runs").paginate(applicationId=self.application)
        return [run for page in pages for run in page["jobRuns"]]

    def has_loaded(self, days: int) -> Any:
        """EMR has ended the runs of this many days, and of what follows them."""

        def ended() -> bool:
            done = Counter(run["name"].split(".")[2] for run in self.at_emr() if run["state"] == "SUCCESS")
            return min(done["daily"], done["next"]) >= days

        return eventually(ended, f"runs of {days} days at EMR")

    def restores(self, table: str) -> None:
        """Copy a table as it is now, as a restore to this instant would."""
        name, copy = self.old.outputs[TABLES[table]], f"restored-{table}-{self.mark}"
        described = self.dynamodb.describe_table(TableName=name)["Table"]
        keys = {each["AttributeName"] for each in described["KeySchema"]}
        self.dynamodb.create_table(
            TableName=copy,
            KeySchema=described["KeySchema"],
            AttributeDefinitions=[e for e in described["AttributeDefinitions"] if e["AttributeName"] in keys],
            BillingMode="PAY_PER_REQUEST",
        )
        self.restored[table] = copy
        for page in self.dynamodb.get_paginator("scan").paginate(TableName=name, ConsistentRead=True):
            puts = [{"PutRequest": {"Item": item}} for item in page["Items"]]
            for first in range(0, len(puts), 25):
                answer = self.dynamodb.batch_write_item(RequestItems={copy: puts[first : first + 25]})
                assert not answer.get("UnprocessedItems")

    def copies_control(self) -> None:
        """`aws s3 sync` of the control bucket: contexts and manifests of runs."""
        assert self.new is not None
        source, target = self.old.outputs["ControlBucket"], self.new.outputs["ControlBucket"]
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=source):
            for entry in page.get("Contents", ()):
                self.s3.copy_object(Bucket=target, Key=entry["Key"], CopySource={"Bucket": source, "Key": entry["Key"]})

    def close(self) -> None:
        for copy in self.restored.values():
            self.dynamodb.delete_table(TableName=copy)
        for made in (self.old, self.new):
            if made is not None:
                made.remove()
        empty(self.s3, self.bucket)
        self.s3.delete_bucket(Bucket=self.bucket)


@pytest.fixture
def rehearsal(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rehearsal]:
    root = developer.root_key(Layout())
    assert root is not None
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", root.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", root.secret_key)
    # Beside the cloud's own state, so that it knows the keys of the Lambdas. It tells the old stack of its runs; the
    # new one polls them.
    mark = uuid.uuid4().hex[:6]
    state = Layout().home / f"emr-{mark}"
    chosen = Settings(
        port=0, driver="instant", instant_ms=2000, state_dir=state, endpoint_url=cloud.aws_url,
        max_running=50, max_vcpus=10_000, start_tps=0, list_tps=0, get_tps=0,
        run_state_function=f"sluice-old{mark}-run-state",
    )  # fmt: skip
    with Emulator(chosen) as emr:
        made = Rehearsal(cloud, emr, mark, monkeypatch)
        yield made
        made.close()
    shutil.rmtree(state)


def app(bucket: str) -> dict[str, Any]:
    emr = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
    schedules = {"daily": ("load", ARRIVED), "next": ("report", AFTER), "minutely": ("count", MINUTELY)}
    return {
        "datasets": {"days": {"bucket": bucket, "prefix": "days/", "keys": ["day"]}},
        "workflows": {name: {"target": emr} for name in ("load", "report", "count")},
        "schedules": {name: {"workflow": flow, "enabled": True, **body} for name, (flow, body) in schedules.items()},
    }


def test_o4_a_restore_is_rehearsed_on_the_local_cloud(rehearsal: Rehearsal, tmp_path: Path) -> None:
    old = rehearsal.old
    rehearsal.monkeypatch.setenv("SLUICE_API_URL", old.outputs["ApiUrl"])
    client = Client.from_environment()
    client.put("/v1/namespaces/demo", {})
    client.put("/v1/namespaces/demo/apps/shop", app(rehearsal.bucket))
    for day in (1, 2):
        rehearsal.arrives(day)
    rehearsal.has_loaded(2)

    # Three instants: what starts after the copy of the runs is known to EMR alone.
    restored_to = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for day, table in enumerate(TABLES, 3):
        rehearsal.restores(table)
        rehearsal.arrives(day)
        rehearsal.has_loaded(day)
    known_before = {run["name"] for run in rehearsal.at_emr()}

    rehearsal.new = new = rehearsal.again()
    with ThreadPoolExecutor(2) as pool:  # each waits for the longest timeout of a Lambda
        list(pool.map(lambda made: made.sluice("freeze", "--stack", made.name), (old, new)))
    rehearsal.arrives(6)
    tables = [word for table, copy in rehearsal.restored.items() for word in ("--table", f"{table}={copy}")]
    place = str(tmp_path / "restored")
    old.sluice("export", "--to", place, "--stack", old.name, *tables)
    new.sluice("import", place, "--stack", new.name, "--copy")
    rehearsal.copies_control()
    repair = ("repair", "--stack", new.name, "--restored-to", restored_to, "--json")
    would = new.sluice(*repair, "--dry-run")["items"]
    found = new.sluice(*repair)["items"]
    assert found == would
    adopted = {each["name"] for each in found if each["kind"] == "unknown run" and each["done"].startswith("adopted")}
    assert {name for name in adopted if ".daily." in name}, found
    assert adopted <= {run["name"] for run in rehearsal.at_emr()}
    new.sluice("unfreeze", "--stack", new.name)

    def caught_up() -> bool:
        done = Counter(run["schedule"] for run in new.runs(rehearsal.monkeypatch) if run["state"] == "SUCCEEDED")
        return done["demo.shop.daily"] >= 6 and done["demo.shop.next"] >= 6 and minutes_are_whole()

    def minutes_are_whole() -> bool:
        """The latest fire is of a minute ago, so nothing earlier is on its way."""
        runs = [run for run in new.runs(rehearsal.monkeypatch) if run["schedule"] == "demo.shop.minutely"]
        return max(instant(run["due_at"]) for run in runs) > datetime.now(UTC) - timedelta(seconds=110)

    eventually(caught_up, "the new stack to have caught up")
    rehearsal.monkeypatch.setenv("SLUICE_API_URL", new.outputs["ApiUrl"])
    Client.from_environment().post("/v1/namespaces/demo/apps/shop/schedules/minutely/disable", {})
    time.sleep(15)  # anything that was started twice by now would have its run at EMR

    at_emr = {run["name"]: run["id"] for run in rehearsal.at_emr()}
    assert [name for name, count in Counter(run["name"] for run in rehearsal.at_emr()).items() if count > 1] == []
    runs = new.runs(rehearsal.monkeypatch)
    followed = {run["target_id"].rpartition("/")[2] for run in runs}
    assert followed == set(at_emr.values()), "one run for each run of EMR, and none unknown"
    assert known_before <= set(at_emr)
    per_schedule = Counter(run["schedule"] for run in runs)
    assert (per_schedule["demo.shop.daily"], per_schedule["demo.shop.next"]) == (6, 6)
    nominals = sorted(instant(run["due_at"]) for run in runs if run["schedule"] == "demo.shop.minutely")
    assert [late - early for early, late in pairwise(nominals) if late - early != timedelta(minutes=1)] == []
    eventually(
        lambda: {run["state"] for run in new.runs(rehearsal.monkeypatch)} == {"SUCCEEDED"},
        "every run to have succeeded, as far as the new stack has asked EMR",
    )


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
