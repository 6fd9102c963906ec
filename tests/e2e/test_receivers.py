"""`sluice local` on the local cloud: what a schedule sends is printed as it comes."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from infra.local.endpoints import Endpoints
from sluice.cli import app
from sluice.client import Client

pytestmark = pytest.mark.cloud
PATIENCE = "60s"


def sluice(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def place(cloud: Endpoints, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A namespace with an app; its name is new, so that the receivers are, too."""
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    namespace, client = f"recv{uuid.uuid4().hex[:8]}", Client.from_environment()
    client.put(f"/v1/namespaces/{namespace}", {})
    client.put(f"/v1/namespaces/{namespace}/apps/shop", {})
    yield namespace
    client.delete(f"/v1/namespaces/{namespace}/apps/shop")
    client.delete(f"/v1/namespaces/{namespace}")


def received(namespace: str, kind: str, *more: str) -> Any:
    """Make a receiver, send a message to it, and wait for it."""
    made = json.loads(sluice("local", kind, "orders", "-n", namespace, "--count", "0", "--json", *more))
    target, name = json.dumps(made["target"]), f"{namespace}.shop.{kind}"
    printed: list[str] = []
    waits = ("local", kind, "orders", "-n", namespace, "--once", "--timeout", PATIENCE, "--json", *more)
    reader = threading.Thread(target=lambda: printed.append(sluice(*waits)))
    reader.start()
    sluice("message", "put", name, "--due", "2s", "-d", f'{{"to": "{kind}"}}', "-t", target)
    reader.join()
    return json.loads(printed[0].splitlines()[1])


@pytest.mark.parametrize("kind", ["queue", "topic", "hook"])
def test_a_message_is_printed_with_its_schedule(place: str, kind: str) -> None:
    if kind == "hook":  # hosts need a list beside other namespaces
        Client.from_environment().put(f"/v1/namespaces/{place}/allowed", {"hosts": ["127.0.0.1"]})
    message = received(place, kind)
    assert json.loads(message["body"]) == {"to": kind}
    assert message["schedule"].startswith(f"{place}.shop.")
