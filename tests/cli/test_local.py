"""`sluice local`: a queue, a topic and an HTTP address, and what comes there; SQS and SNS are moto's, behind HTTP."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.cli.conftest import Sluice
from tests.cli.played_api import KEY, REGION, SECRET, Played, PlayedApi

SPACES = "/v1/namespaces"
FIELDS = {"sluice-schedule": "demo.flights.tell", "sluice-event-id": "demo.flights.tell.1"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    made = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    made.start()
    host, port = made.get_host_and_port()
    yield f"http://{host}:{port}"
    made.stop()


@pytest.fixture
def local(server: str, api: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a cloud on this machine, where nothing limits what a namespace may use."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    api.play("GET", "/v1/health", {"status": "ok"})
    api.refuse("GET", f"{SPACES}/demo/allowed", 404, "not_found", "no allow-list")
    api.lists[SPACES] = [{"name": "demo"}]
    return server


def aws(service: str, url: str) -> Any:
    return boto3.client(service, REGION, endpoint_url=url, aws_access_key_id=KEY, aws_secret_access_key=SECRET)


def fields(**more: str) -> dict[str, Any]:
    return {name: {"DataType": "String", "StringValue": value} for name, value in {**FIELDS, **more}.items()}


def test_a_queue_is_made_found_and_its_messages_printed(local: str, sluice: Sluice) -> None:
    made = sluice("local", "queue", "orders", "-n", "demo", "--count", "0")
    arn, target = made.stdout.splitlines()
    assert arn == "queue arn:aws:sqs:eu-central-1:123456789012:sluice-target-demo-orders"
    url = target.partition('queue_url: "')[2].removesuffix('"}')
    assert target == f'target: {{type: sqs, queue_url: "{url}"}}'
    sqs = aws("sqs", local)
    for body in ("one", '{"two": [2]}'):
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=fields())
    done = sluice("local", "queue", "orders", "-n", "demo", "--count", "2", "--timeout", "20s")
    assert done.exit_code == 0
    assert done.stdout.startswith(made.stdout), "the same queue is found"
    for words in ("demo.flights.tell", "sluice-event-id  demo.flights.tell.1", "\none\n", '\n{"two": [2]}\n', "UTC ("):
        assert words in done.stdout
    left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert left["ApproximateNumberOfMessages"] == left["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_a_script_gets_the_address_and_each_message(local: str, sluice: Sluice) -> None:
    full = aws("sqs", local).create_queue(QueueName="sluice-target-late")["QueueUrl"]
    aws("sqs", local).send_message(QueueUrl=full, MessageBody="x", MessageAttributes=fields())
    done = sluice("local", "queue", "late", "--once", "--json")
    place, message = (json.loads(line) for line in done.stdout.splitlines())
    assert place["target"] == {"type": "sqs", "queue_url": full}
    assert place["address"].endswith(":sluice-target-late")
    assert (message["body"], message["schedule"], message["attributes"]) == ("x", "demo.flights.tell", FIELDS)


def test_fewer_messages_than_wanted_are_an_error_in_time(local: str, sluice: Sluice) -> None:
    begun = time.monotonic()
    done = sluice("local", "queue", "empty", "--count", "1", "--timeout", "300ms")
    assert done.exit_code == 1
    assert "0 messages came, of 1 to wait for" in done.stderr
    assert time.monotonic() - begun < 5
    assert sluice("local", "queue", "empty", "--timeout", "200ms").exit_code == 0, "no number was wanted"


def test_a_topic_keeps_what_comes_between_two_uses(local: str, sluice: Sluice) -> None:
    made = sluice("local", "topic", "alerts", "-n", "demo", "--count", "0", "--json")
    arn = json.loads(made.stdout)["target"]["topic_arn"]
    assert arn.endswith(":sluice-target-demo-alerts")
    aws("sns", local).publish(TopicArn=arn, Message="wake up", MessageAttributes=fields())
    done = sluice("local", "topic", "alerts", "-n", "demo", "--once", "--timeout", "20s", "--json")
    message = json.loads(done.stdout.splitlines()[1])
    assert (message["body"], message["schedule"]) == ("wake up", "demo.flights.tell")


def test_a_hook_prints_each_call_and_its_address_stays(local: str, sluice: Sluice) -> None:
    address = sluice("local", "hook", "orders", "--count", "0").stdout.splitlines()[0].split()[1]
    assert sluice("local", "hook", "orders", "--count", "0").stdout.split()[1] == address
    answers: list[int] = []

    def call() -> None:
        asked = urllib.request.Request(address, b"paid", {"Sluice-Schedule": "demo.flights.tell"})
        for _ in range(100):
            try:
                with urllib.request.urlopen(asked, timeout=5) as answer:
                    answers.append(answer.status)
                    return
            except OSError:
                time.sleep(0.05)

    caller = threading.Thread(target=call)
    caller.start()
    done = sluice("local", "hook", "orders", "--once", "--timeout", "20s", "--json")
    caller.join()
    message = json.loads(done.stdout.splitlines()[1])
    assert answers == [204]
    assert (message["body"], message["schedule"]) == ("paid", "demo.flights.tell")
    assert (message["attributes"]["method"], message["attributes"]["path"]) == ("POST", "/orders")


def test_a_port_in_use_is_refused_with_what_to_do(local: str, sluice: Sluice) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = sluice("local", "hook", "orders", "--port", str(taken.getsockname()[1]))
    assert done.exit_code == 2
    assert "expected a free port" in done.stderr and "--port N" in done.stderr


@pytest.mark.parametrize(
    ("words", "kind", "wanted"),
    [
        (("queue", "x"), "queues", "arn:aws:sqs:eu-central-1:123456789012:sluice-target-demo-x"),
        (("topic", "x"), "topics", "arn:aws:sns:eu-central-1:123456789012:sluice-target-demo-x"),
        (("hook", "x"), "hosts", "127.0.0.1"),
    ],
)
def test_what_an_allow_list_lacks_is_said_with_the_command(
    local: str, api: PlayedApi, sluice: Sluice, words: tuple[str, str], kind: str, wanted: str
) -> None:
    api.play("GET", f"{SPACES}/demo/allowed", {"name": "demo", kind: []}, {"name": "demo", kind: [wanted[:-1] + "*"]})
    done = sluice("local", *words, "-n", "demo", "--count", "0")
    assert f"add '{wanted}' to the list {kind} of its allow-list" in done.stderr
    assert "sluice allowed demo --file allowed.yaml" in done.stderr
    assert sluice("local", *words, "-n", "demo", "--count", "0").stderr == ""


def test_beside_another_namespace_a_hook_needs_a_list(local: str, api: PlayedApi, sluice: Sluice) -> None:
    assert sluice("local", "hook", "x", "-n", "demo", "--count", "0").stderr == ""
    api.lists[SPACES] = [{"name": "demo"}, {"name": "other"}, {"name": "system"}]
    assert "to the list hosts" in sluice("local", "hook", "x", "-n", "demo", "--count", "0").stderr
    assert sluice("local", "queue", "x", "-n", "demo", "--count", "0").stderr == "", "its name says whose it is"


@pytest.mark.parametrize("name", ["late-orders", "late-orders.fifo"])
def test_a_name_with_a_hyphen_belongs_to_its_namespace(local: str, sluice: Sluice, name: str) -> None:
    done = sluice("local", "queue", name, "-n", "demo", "--count", "0")
    assert done.stdout.splitlines()[0].endswith(f":sluice-target-demo--{name}")


@pytest.mark.parametrize("address", [None, "https://sqs.eu-west-1.amazonaws.com", "http://192.0.2.1:4566"])
@pytest.mark.parametrize("kind", ["queue", "topic", "hook"])
def test_nothing_is_made_on_aws(
    sluice: Sluice, monkeypatch: pytest.MonkeyPatch, kind: str, address: str | None
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    if address is not None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    done = sluice("local", kind, "orders", "--count", "0")
    assert done.exit_code == 2
    assert "expected the address of the local cloud" in done.stderr and "make up" in done.stderr


def test_a_local_cloud_that_does_not_run_is_an_error(sluice: Sluice, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    done = sluice("local", "queue", "orders", "--count", "0")
    assert done.exit_code == 3
    assert "the local cloud does not answer" in done.stderr and "make up starts it" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a.b",), "expected a name of letters"),
        (("x", "--once", "--count", "2"), "expected one of --once and --count"),
        (("x", "--timeout", "30"), "add the unit"),
    ],
)
def test_wrong_usage_of_a_receiver_makes_nothing(local: str, sluice: Sluice, words: tuple[str, ...], said: str) -> None:
    before = aws("sqs", local).list_queues().get("QueueUrls", [])
    done = sluice("local", "queue", *words)
    assert (done.exit_code, said in done.stderr) == (2, True)
    assert aws("sqs", local).list_queues().get("QueueUrls", []) == before


def test_ctrl_c_ends_it_and_what_was_not_printed_stays(local: str) -> None:
    sqs = aws("sqs", local)
    url = sqs.create_queue(QueueName="sluice-target-until", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    # A shell starts a command in the background with SIGINT ignored, which its children inherit.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); sys.argv[0] = 'sluice'; "
        "from sluice.cli import app; app()"
    )
    command = [sys.executable, "-c", code, "local", "queue", "until"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("queue ")
            process.send_signal(2)
            process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 0
    sqs.send_message(QueueUrl=url, MessageBody="later")
    assert (
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]["ApproximateNumberOfMessages"]
        == "1"
    )


def test_an_api_that_does_not_answer_ends_a_hook(local: str, api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", "/v1/health", Played(403, {"message": "no"}))
    assert sluice("local", "hook", "x", "--count", "0").exit_code == 1
