"""``sluice local``: a queue, a topic or an HTTP address on the local cloud, and each message that comes there."""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from sluice import checks, render, wording
from sluice.cli import frame
from sluice.client import Document, segment
from sluice.errors import ApiRefused, NotReachable, WrongUsage

app = typer.Typer(
    no_args_is_help=True,
    help="Make a queue, a topic or an HTTP address on the local cloud, and print each message that comes there.",
)

PREFIX = "sluice-target-"  # of what the stack may send to
FIFO = ".fifo"
POLL = 5  # seconds of a request for messages, so that ctrl-c ends the command soon
LOCAL = ("127.0.0.1", "localhost", "::1")
PORTS = range(20_000, 30_000)  # of HTTP addresses; that of a name is always the same

Name = Annotated[str, typer.Argument(metavar="NAME", help="A short name, such as orders; orders.fifo keeps an order.")]
HookName = Annotated[str, typer.Argument(metavar="NAME", help="The path of the address, such as orders.")]
Once = Annotated[bool, typer.Option("--once", metavar="", help="End after the first message, as --count 1 does.")]
Count = Annotated[
    int | None, typer.Option("--count", min=0, metavar="N", help="End after N messages; 0 prints the address only.")
]
Timeout = Annotated[
    str | None,
    typer.Option("--timeout", metavar="SPAN", help="End after this long, such as 30s; 1 if fewer than N came."),
]
Port = Annotated[
    int | None, typer.Option("--port", min=1024, max=65535, metavar="PORT", help="The port; by default from the name.")
]


@dataclass(frozen=True, slots=True)
class Until:
    """When a command ends: after ``count`` messages, or after ``seconds``; None: never."""

    count: int | None
    seconds: float | None
    begun: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float | None:
        return None if self.seconds is None else self.begun + self.seconds - time.monotonic()

    def is_over(self, came: int) -> bool:
        return (self.count is not None and came >= self.count) or (self.left is not None and self.left <= 0)


@dataclass(frozen=True, slots=True)
class Receiver:
    """What receives messages: its kind and address, and the target that names it in a document. The list ``allowed`` of
    an allow-list has to have ``wanted``."""

    kind: str
    address: str
    target: Document
    allowed: str
    wanted: str


@app.command()
def queue(
    name: Name,
    once: Once = False,
    count: Count = None,
    timeout: Timeout = None,
    namespace: frame.Namespace = None,
    as_json: frame.Json = False,
) -> None:
    """Make or find a queue, and print each message that comes. What is printed is removed from the queue.

    With -n the name has that of the namespace, so that the namespace may use it without an allow-list.
    """
    until = _until(once, count, timeout)
    sqs = _aws("sqs")
    with _answers():
        url, arn = _queue(sqs, _full(name, namespace))
    target = {"type": "sqs", "queue_url": url}
    _listen(Receiver("queue", arn, target, "queues", arn), namespace, _received(sqs, url, until), until, as_json)


@app.command()
def topic(
    name: Name,
    once: Once = False,
    count: Count = None,
    timeout: Timeout = None,
    namespace: frame.Namespace = None,
    as_json: frame.Json = False,
) -> None:
    """Make or find a topic, and print each message that comes. A queue subscribes to it, and keeps them meanwhile.

    With -n the name has that of the namespace, so that the namespace may use it without an allow-list.
    """
    until = _until(once, count, timeout)
    sqs, sns, full = _aws("sqs"), _aws("sns"), _full(name, namespace)
    with _answers():
        arn = sns.create_topic(Name=full, Attributes={"FifoTopic": "true"} if full.endswith(FIFO) else {})["TopicArn"]
        url, own = _queue(sqs, full.replace(PREFIX, "sluice-local-topic-", 1))
        allow = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage"}
        statement = {**allow, "Resource": own, "Condition": {"ArnEquals": {"aws:SourceArn": arn}}}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=own, Attributes={"RawMessageDelivery": "true"})
    target = {"type": "sns", "topic_arn": arn}
    _listen(Receiver("topic", arn, target, "topics", arn), namespace, _received(sqs, url, until), until, as_json)


@app.command()
def hook(
    name: HookName,
    port: Port = None,
    once: Once = False,
    count: Count = None,
    timeout: Timeout = None,
    namespace: frame.Namespace = None,
    as_json: frame.Json = False,
) -> None:
    """Serve an HTTP address on this machine, and print each call that comes; each is answered 204.

    The address of a name stays the same. Calls that come while the command does not run find nothing, and are tried
    again.
    """
    until = _until(once, count, timeout)
    _endpoint()
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", name):
        raise WrongUsage(f"expected a name of letters, digits, - and _, got {name!r}", "NAME", "such as orders")
    number = port if port is not None else PORTS[zlib.crc32(name.encode()) % len(PORTS)]
    url = f"http://127.0.0.1:{number}/{name}"
    frame.connect().get("/v1/health")
    target = {"type": "http", "url": url}
    with _serving(number, until) as calls:
        _listen(Receiver("hook", url, target, "hosts", "127.0.0.1"), namespace, calls, until, as_json)


def _until(once: bool, count: int | None, timeout: str | None) -> Until:
    if once and count is not None:
        raise WrongUsage("expected one of --once and --count, got both", "--once", "--once is --count 1")
    return Until(1 if once else count, None if timeout is None else checks.seconds(timeout, "--timeout"))


def _full(name: str, namespace: str | None) -> str:
    """The name on the cloud. ``sluice-target-demo-orders`` belongs to the namespace demo (docs/security.md)."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}(\.fifo)?", name):
        expected = "a name of letters, digits, - and _, which may end with .fifo"
        raise WrongUsage(f"expected {expected}, got {name!r}", "NAME", "such as orders")
    if name.startswith(PREFIX):
        return name
    if namespace is None:
        return f"{PREFIX}{name}"
    return f"{PREFIX}{namespace}{'--' if '-' in name else '-'}{name}"


def _endpoint() -> str:
    """The address of the local cloud. Raises ``WrongUsage`` for any other: on AWS this would make things that cost."""
    url = os.environ.get("AWS_ENDPOINT_URL") or ""
    if urlsplit(url).hostname not in LOCAL:
        got = f"got {url!r}" if url else "got none"
        hint = "make up, then source .local/endpoints.env"
        raise WrongUsage(f"expected the address of the local cloud, {got}", "AWS_ENDPOINT_URL", hint)
    return url


def _aws(service: str) -> Any:
    from botocore.session import Session  # imported here: it takes longer than the rest of the command

    url = _endpoint()
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    return Session().create_client(service, region, endpoint_url=url)


@contextmanager
def _answers() -> Iterator[None]:
    """Errors of the local cloud in the words of the command line."""
    from botocore import exceptions

    try:
        yield
    except exceptions.ClientError as error:
        refusal = error.response.get("Error", {})
        message = f"the local cloud refused it: {refusal.get('Code')}: {refusal.get('Message')}"
        raise NotReachable(message, "AWS_ENDPOINT_URL", "source .local/endpoints.env, which has its key") from None
    except exceptions.BotoCoreError as error:
        message = f"the local cloud does not answer: {error}"
        raise NotReachable(message, "AWS_ENDPOINT_URL", "make up starts it; make demo, too") from None


def _queue(sqs: Any, full: str) -> tuple[str, str]:
    """The URL and the ARN of a queue, which is made if there is none."""
    url = str(
        sqs.create_queue(QueueName=full, Attributes={"FifoQueue": "true"} if full.endswith(FIFO) else {})["QueueUrl"]
    )
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    return url, str(attributes["QueueArn"])


def _listen(
    receiver: Receiver, namespace: str | None, messages: Iterator[Document | None], until: Until, as_json: bool
) -> None:
    """Introduce a receiver, and print each of its messages. Ctrl-C ends it with exit code 0."""
    with suppress(KeyboardInterrupt):
        _introduce(receiver, as_json)
        _note_allowed(namespace, receiver.allowed, receiver.wanted)
        _print_each(messages, until, as_json)


def _introduce(receiver: Receiver, as_json: bool) -> None:
    """Print the address, and the target to paste into a document."""
    kind, address, target = receiver.kind, receiver.address, receiver.target
    if as_json:
        render.machine({"kind": kind, "address": address, "target": target})
        return
    pairs = ", ".join(f"{key}: {json.dumps(value) if ':' in value else value}" for key, value in target.items())
    print(f"{kind} {address}\ntarget: {{{pairs}}}", flush=True)


def _note_allowed(namespace: str | None, kind: str, wanted: str) -> None:
    """Say what to do if the allow-list of the namespace does not have an address, or if it needs one for it."""
    if namespace is None:
        return
    client, path = frame.connect(), f"/v1/namespaces/{segment(namespace)}"
    try:
        patterns = client.get(f"{path}/allowed").get(kind)
    except ApiRefused:  # there is no list, or it may not be read
        patterns = None
    if patterns is None and kind == "hosts":
        others = [
            each for each in client.listing("/v1/namespaces")["items"] if each["name"] not in (namespace, "system")
        ]
        patterns = [] if others else None
    if patterns is not None and not any(fnmatchcase(wanted, pattern) for pattern in patterns):
        render.note(f"{namespace} may not use it yet: add {wanted!r} to the list {kind} of its allow-list, and run")
        render.note(f"sluice allowed {namespace} --file allowed.yaml")


def _received(sqs: Any, url: str, until: Until) -> Iterator[Document | None]:
    """The messages of a queue as they come; None after each request, so that the time can be looked at."""
    while True:
        left = until.left
        wait = POLL if left is None else max(0, min(POLL, int(left)))
        most = 10 if until.count is None else 1
        with _answers():
            found = sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=most,
                WaitTimeSeconds=wait,
                MessageSystemAttributeNames=["SentTimestamp"],
                MessageAttributeNames=["All"],
            ).get("Messages", [])
        for message in found:
            try:
                yield _of_message(message)
            finally:  # it has been printed, also if it is the last one to wait for
                with _answers():
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        if not found and wait == 0:
            time.sleep(0.05)
        yield None


def _of_message(message: Document) -> Document:
    given = message.get("MessageAttributes", {})
    attributes = {name: value.get("StringValue", "(binary)") for name, value in sorted(given.items())}
    sent = datetime.fromtimestamp(int(message["Attributes"]["SentTimestamp"]) / 1000, UTC)
    return _shown(message["Body"], attributes, attributes.get("sluice-schedule"), sent)


def _shown(body: str, attributes: Document, schedule: str | None, sent: datetime) -> Document:
    at = f"{sent:%Y-%m-%dT%H:%M:%S}.{sent.microsecond // 1000:03d}Z"
    return {"schedule": schedule, "sent_at": at, "attributes": attributes, "body": body}


@contextmanager
def _serving(port: int, until: Until) -> Iterator[Iterator[Document | None]]:
    """The calls of an HTTP server as they come."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer  # imported here: only a hook serves
    from queue import Empty, SimpleQueue
    from threading import Thread

    came: SimpleQueue[Document] = SimpleQueue()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            attributes = {"method": self.command, "path": self.path, **dict(sorted(self.headers.items()))}
            schedule = self.headers.get("Sluice-Schedule")
            came.put(_shown(content.decode(errors="replace"), attributes, schedule, datetime.now(UTC)))
            self.send_response(204)
            self.end_headers()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        hint = "add --port N; or stop the other program"
        raise WrongUsage(f"expected a free port, got {port}: {error.strerror}", "--port", hint) from None
    server.daemon_threads = True
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def calls() -> Iterator[Document | None]:
        while True:
            left = until.left
            try:
                yield came.get(timeout=1.0 if left is None else max(0.01, min(1.0, left)))
            except Empty:
                yield None

    try:
        yield calls()
    finally:
        server.shutdown()
        server.server_close()


def _print_each(messages: Iterator[Document | None], until: Until, as_json: bool) -> None:
    """Print messages until the command ends. Exits with 1 if fewer came than it was to wait for."""
    came = 0
    try:
        while not until.is_over(came):
            message = next(messages)
            if message is not None:
                came += 1
                _print(message, as_json)
            elif came and until.is_over(came):
                break
    finally:
        if hasattr(messages, "close"):
            messages.close()
    if until.count is not None and came < until.count:
        render.note(f"{wording.count(came, 'message')} came, of {until.count} to wait for")
        raise typer.Exit(1)


def _print(message: Document, as_json: bool) -> None:
    if as_json:
        render.machine(message)
        return
    console = render.stdout()
    console.print()
    render.title(
        console, "message", wording.both(message["sent_at"], frame.now()), message["schedule"] or "no schedule"
    )
    render.fields(console, list(message["attributes"].items()))
    render.plain(message["body"])
