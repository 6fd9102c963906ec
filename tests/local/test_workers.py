"""A process of a Lambda that is killed on the local cloud ends alone (`infra/local/workers.py`)."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local import workers

# Its first process is killed while it starts.
CODE = """
import os, pathlib, signal
before = pathlib.Path({marker!r})
if not before.exists():
    before.touch()
    os.kill(os.getpid(), signal.SIGKILL)

def handle(event, context):
    return event
"""


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from ministack.core import lambda_runtime
    from ministack.services import lambda_svc

    monkeypatch.setattr(lambda_runtime.Worker, "invoke", lambda_runtime.Worker.invoke)  # restored at the end
    workers.install(lambda_runtime)
    yield lambda_runtime, lambda_svc
    lambda_runtime.reset()


def _zipped(code: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("app.py", code)
    return packed.getvalue()


def test_a_process_that_is_killed_while_it_starts_ends_alone(runtime: Any, tmp_path: Path) -> None:
    lambda_runtime, lambda_svc = runtime
    marker = tmp_path / "started"
    arn = "arn:aws:lambda:us-east-1:000000000000:function:check"
    config = {"FunctionName": "check", "FunctionArn": arn, "Runtime": "python3.11", "Handler": "app.handle"}
    function = {"config": config, "code_zip": _zipped(CODE.format(marker=str(marker)))}
    marker.touch()
    other, _ = lambda_runtime.acquire_worker("check", config, function["code_zip"])
    assert other.invoke({"n": 1}, "r1")["status"] == "ok"
    process = other._proc
    marker.unlink()

    failed = lambda_svc._execute_function_warm(function, {"n": 2}, "r2")

    assert failed["error"]
    assert other._proc is process
    assert process.poll() is None
    assert lambda_svc._execute_function_warm(function, {"n": 3}, "r3")["body"] == {"n": 3}
