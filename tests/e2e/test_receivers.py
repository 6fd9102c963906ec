"""`sluice local` on the local cloud: what a schedule sends is printed as it comes."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from infra.local.endpoints import Endpoints
from sluice.cli import app
from sluice.client import Client

pytestmark = pytest.mark.cloud
PATIENCE = "2m"


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


def received(namespace: str, kind: str) -> Any:
    """Start a receiver in a process of its own, send a message to it, and wait for it."""
    words = ("local", kind, "orders", "-n", namespace, "--once", "--timeout", PATIENCE, "--json")
    code = "import sys; sys.argv[0] = 'sluice'; from sluice.cli import app; app()"
    with subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        made = json.loads(process.stdout.readline())
        name = f"{namespace}.shop.{kind}"
        sluice("message", "put", name, "--due", "2s", "-d", f'{{"to": "{kind}"}}', "-t", json.dumps(made["target"]))
        printed, _ = process.communicate(timeout=150)
    assert process.returncode == 0
    return json.loads(printed)


@pytest.mark.parametrize("kind", ["queue", "topic", "hook"])
def test_a_message_is_printed_with_its_schedule(place: str, kind: str) -> None:
    if kind == "hook":  # hosts need a list beside other namespaces
        Client.from_environment().put(f"/v1/namespaces/{place}/allowed", {"hosts": ["127.0.0.1"]})
    message = received(place, kind)
    assert json.loads(message["body"]) == {"to": kind}
    assert message["schedule"].startswith(f"{place}.shop.")
