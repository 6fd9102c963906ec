"""`sluice console` in front of a local cloud, and its views in Chromium."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.cloud import Running
from benchmarks.console.views import View
from benchmarks.console.world import NAMESPACE
from benchmarks.machine import ROOT
from infra.local import ports

NODE = ROOT / "build" / "console-venv" / "bin"
PAGE = ROOT / "sluice" / "console" / "static" / "index.html"
DRIVER = ROOT / "console" / "tests" / "browser" / "at-size.ts"
SLUICE = "import sys; sys.argv[0] = 'sluice'; from sluice.cli import app; app()"
PATIENCE_S = 900.0


def require_page() -> None:
    """Raise RuntimeError unless the page is built and Node is there."""
    if not PAGE.exists() or not (NODE / "node").exists():
        raise RuntimeError("expected the page of the console and Node, got none: run make console")


@contextmanager
def console(cloud: Running) -> Iterator[str]:
    """The address of a running `sluice console`, with its token."""
    port = ports.any_free()
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("SLUICE_", "AWS_"))}
    environment = kept | cloud.endpoints.environment() | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", SLUICE, "console", "-n", NAMESPACE, "--port", str(port), "--no-open"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("expected the output of sluice console, got none")
            yield next(line.strip() for line in process.stdout if "#token=" in line)
        finally:
            process.terminate()


def warm_up(address: str, views: Sequence[View], tries: int = 3) -> None:
    """Open views once, so that the Lambdas of parallel requests have started. The first try may end without rows: the
    emulators have just stored everything. Raises RuntimeError if the last one does."""
    for left in range(tries - 1, -1, -1):
        try:
            opened(address, views, 1)
            return
        except RuntimeError:
            if not left:
                raise


def opened(address: str, views: Sequence[View], times: int) -> list[dict[str, Any]]:
    """Open each view this many times. Each entry has the view's ``view``, the ms to its ``first`` rows and until it was
    ``whole``, its ``longest`` task, ``bytesOfPage``, and its ``requests``."""
    asked = json.dumps([view.asked() for view in views])
    done = subprocess.run(
        [str(NODE / "node"), str(DRIVER), address, asked, str(times)],
        capture_output=True,
        text=True,
        cwd=DRIVER.parents[2],
        timeout=PATIENCE_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"expected the views to open, got:\n{done.stderr[-3000:]}")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
