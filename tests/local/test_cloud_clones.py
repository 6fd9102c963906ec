"""Clones of the checkout, each with its own local cloud: side by side, stopped, killed, changed, started again."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.local import cloud as local_cloud
from infra.local import ports, processes
from infra.local.endpoints import Endpoints
from infra.local.layout import ROOT, SOURCES, Layout

pytestmark = pytest.mark.cloud

# Ports are chosen by each clone; Spark is not started.
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(("SLUICE_", "AWS_"))} | {
    "SLUICE_EMR_DRIVER": "instant",
    "SLUICE_EMR_CLASS_ARCHIVE": "off",
}


@dataclass
class Clone:
    """A copy of the files that the local cloud needs."""

    root: Path

    @property
    def layout(self) -> Layout:
        return Layout(self.root)

    def run(self, verb: str, **environment: str) -> tuple[int, str]:
        """Exit code and output of `make <verb>`."""
        done = subprocess.run(
            [sys.executable, "-m", "infra.local.cloud", verb],
            cwd=self.root,
            env=ENVIRONMENT | environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def up(self, **environment: str) -> str:
        """Start the cloud. Returns its output."""
        code, said = self.run("up", **environment)
        assert code == 0, said
        return said

    def endpoints(self) -> Endpoints:
        """The endpoints from the file that the cloud wrote for shells, with the outputs from CloudFormation."""
        written = dict(re.findall(r"export (\w+)=(.*)", self.layout.endpoints.read_text()))
        found = Endpoints(
            written["AWS_ENDPOINT_URL"],
            written["AWS_ENDPOINT_URL_EMR_SERVERLESS"],
            written["AWS_ACCESS_KEY_ID"],
            written["AWS_SECRET_ACCESS_KEY"],
            {"ApiUrl": written["SLUICE_API_URL"]},
        )
        (described,) = found.client("cloudformation").describe_stacks()["Stacks"]
        found.outputs.update({o["OutputKey"]: o["OutputValue"] for o in described["Outputs"]})
        return found

    def is_healthy(self) -> bool:
        return local_cloud.signed(self.endpoints(), "GET", "/v1/health")[0] == 200


def make_clone(folder: Path) -> Clone:
    """Copy the checkout's sources."""
    for name in SOURCES:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    return Clone(folder)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A clone whose cloud has been up once. Tests leave it up."""
    made = make_clone(tmp_path_factory.mktemp("clone"))
    try:
        assert "with a new stack" in made.up()
        yield made
    finally:
        made.run("reset")


def test_the_data_of_a_cloud_survives_down_and_up(clone: Clone) -> None:
    before = clone.endpoints()
    table, bucket, queue = (before.outputs[name] for name in ("JobsTable", "ControlBucket", "HintsQueueUrl"))
    dead = _dead_letters(before, queue)
    row = {"pk": {"S": "a"}, "sk": {"S": "b"}, "wake_shard": {"S": "0"}, "wake_at": {"S": "2030"}}
    before.client("dynamodb").put_item(TableName=table, Item=row)
    before.client("s3").put_object(Bucket=bucket, Key="context/kept", Body=b"kept")
    before.client("sqs").send_message(QueueUrl=dead, MessageBody="kept", DelaySeconds=1)

    held = processes.find(clone.layout.aws_process)
    assert held is not None
    code, said = clone.run("down")
    assert (code, said) == (0, "Stopped: EMR Serverless, AWS. The state is kept.")
    assert not processes.members(held.pid), "Lambdas were left behind"
    assert "up again, unchanged" in clone.up()

    after = clone.endpoints()
    assert after == before
    read = after.client("dynamodb").query(
        TableName=table,
        IndexName="wake",
        KeyConditionExpression="wake_shard = :s",
        ExpressionAttributeValues={":s": {"S": "0"}},
    )
    assert [item["pk"] for item in read["Items"]] == [{"S": "a"}]
    assert after.client("s3").get_object(Bucket=bucket, Key="context/kept")["Body"].read() == b"kept"
    assert [m["Body"] for m in _receive(after, dead)] == ["kept"]
    mappings = after.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    assert [m["State"] for m in mappings] == ["Enabled"] * 5, "four queues and the stream of the runs"
    rules = after.client("events").list_rules()["Rules"]
    schedules = [r.get("ScheduleExpression", "pattern") for r in rules]
    assert sorted(schedules) == ["pattern"] * 5 + ["rate(1 minute)"]
    assert {r["State"] for r in rules} == {"ENABLED"}
    assert clone.is_healthy()


def test_a_killed_cloud_comes_up_again(clone: Clone) -> None:
    held = processes.find(clone.layout.aws_process)
    assert held is not None
    os.kill(held.pid, signal.SIGKILL)
    while processes.find(clone.layout.aws_process):
        time.sleep(0.05)
    assert "up again, unchanged" in clone.up()
    assert clone.is_healthy()


def test_changed_code_is_deployed(clone: Clone) -> None:
    assert "up already, and the code is unchanged" in clone.up()
    with (clone.root / "chalicelib/__init__.py").open("a") as source:
        source.write("\n# changed\n")
    assert "the code has changed, and the stack was updated" in clone.up()
    assert "the code is unchanged" in clone.up()
    assert clone.is_healthy()


@pytest.mark.long
def test_a_cloud_can_be_moved_to_another_port(clone: Clone) -> None:
    code, said = clone.run("up", SLUICE_PORT="1")
    assert code == 1
    assert "SLUICE_PORT asks for port 1, but this checkout's local cloud is up on port" in said
    clone.run("down")
    port = ports.any_free()
    clone.up(SLUICE_PORT=str(port))
    moved = clone.endpoints()
    assert moved.aws_url == f"http://127.0.0.1:{port}"
    assert moved.api_url.startswith(moved.aws_url)
    assert clone.is_healthy()
    hints = moved.outputs["HintsQueueUrl"]
    assert f":{port}/" in hints
    moved.client("sqs").send_message(QueueUrl=hints, MessageBody='{"due": 0, "refs": []}')
    assert _is_emptied(moved, hints), "no Lambda gets the messages of the queue"
    dead = _dead_letters(moved, hints)
    moved.client("sqs").send_message(QueueUrl=dead, MessageBody="moved")
    assert "moved" in [m["Body"] for m in _receive(moved, dead)]


@pytest.mark.long
def test_two_clones_run_side_by_side(clone: Clone, tmp_path: Path) -> None:
    second = make_clone(tmp_path)
    taken = clone.endpoints().aws_url.rsplit(":", 1)[1]
    code, said = second.run("up", SLUICE_PORT=taken)
    assert code == 1
    assert f"Port {taken}, set by SLUICE_PORT, is in use by another program" in said
    try:
        _start_twice_at_once(second)
        assert second.is_healthy()
        assert clone.is_healthy()
        assert second.endpoints().aws_url != clone.endpoints().aws_url
        first_bucket = clone.endpoints().outputs["ControlBucket"]
        clone.endpoints().client("s3").put_object(Bucket=first_bucket, Key="only/here", Body=b"")
        listed = second.endpoints().client("s3").list_objects_v2(Bucket=first_bucket, Prefix="only/")
        assert listed["KeyCount"] == 0
    finally:
        code, said = second.run("reset")
    assert (code, said) == (0, "The local cloud is stopped and its state removed.")
    assert [p.name for p in second.layout.home.iterdir()] == ["lock"]


def _start_twice_at_once(clone: Clone) -> None:
    """Start two at once, as two terminals would. One of them starts the cloud, the other waits and finds it up."""
    command = [sys.executable, "-m", "infra.local.cloud", "up"]
    both = [subprocess.Popen(command, cwd=clone.root, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) for _ in "ab"]
    said = [" ".join(one.communicate(timeout=120)[0].split()) for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert sorted("up already" in one for one in said) == [False, True]


def _dead_letters(endpoints: Endpoints, queue: str) -> str:
    sqs = endpoints.client("sqs")
    redrive = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["RedrivePolicy"])["Attributes"]["RedrivePolicy"]
    (arn,) = re.findall(r"arn:[^\"]+", redrive)
    return str(sqs.get_queue_url(QueueName=arn.rsplit(":", 1)[1])["QueueUrl"])


def _is_emptied(endpoints: Endpoints, queue: str) -> bool:
    """Whether a Lambda takes all messages of a queue within half a minute."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    ends_at = time.monotonic() + 30
    while time.monotonic() < ends_at:
        found = endpoints.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
        if all(found[name] == "0" for name in names):
            return True
        time.sleep(0.2)
    return False


def _receive(endpoints: Endpoints, queue: str) -> list[dict[str, Any]]:
    sqs = endpoints.client("sqs")
    messages = list(sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5, MaxNumberOfMessages=10).get("Messages", []))
    for message in messages:
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return messages
