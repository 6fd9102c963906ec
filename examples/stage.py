"""The parts that all examples share: a namespace on the local cloud, its buckets, and waiting with a time limit.

Each run of an example has its own namespace, so that examples can be repeated, and run at the same time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from infra.local.endpoints import Endpoints
from sluice import documents
from sluice.client import Client
from sluice.errors import Failure

Document = dict[str, Any]
JOBS = Path(__file__).parents[1] / "jobs"
LIBRARY = Path(__file__).parents[1] / "job_library" / "sluice_job.py"  # what the jobs import
POLL_EVERY = 1.0  # seconds
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "ABORTED")


class Failed(SystemExit):
    """The example has failed. Its message goes to stderr, and the exit code is 1."""


def exit_code_of(name: str, main: Callable[[], int]) -> int:
    """Run an example. Raises `Failed` with one sentence, not a traceback, if the API refuses a request or gives no
    answer."""
    try:
        return main()
    except Failure as failure:
        hint = failure.hint or f"run it again; `make up` brings the local cloud up, `make {name}` starts the example"
        raise Failed(f"{name}: {failure.message}; {hint}") from None


class Stage:
    """A namespace on the local cloud, and the clients to use it."""

    def __init__(self, endpoints: Endpoints, name: str, console: Console) -> None:
        self.console, self.endpoints = console, endpoints
        self.name = f"{name}-{datetime.now(UTC):%m%d-%H%M%S}"
        self.base = f"/v1/namespaces/{self.name}"
        os.environ.update(endpoints.environment())
        self.client = Client.from_environment()
        self.s3 = endpoints.client("s3")
        self.lake, self.control = endpoints.outputs["LakeBucket"], endpoints.outputs["ControlBucket"]
        self.prefix = f"{self.name}/"
        self.client.put(self.base, {"description": f"make example NAME={name}"})
        self.say("namespace", f"{self.name}  [bold]api[/] {endpoints.api_url}")

    def say(self, what: str, text: str) -> None:
        self.console.print(f"[bold]{what}[/] {text}", highlight=False, soft_wrap=True)

    def upload_jobs(self, *names: str) -> str:
        """Upload files of ``jobs/``, and the library that they import, to the control bucket. Returns the URI of their
        folder."""
        folder = f"code/{self.name}/"
        for path in (*(JOBS / name for name in names), LIBRARY):
            self.s3.put_object(Bucket=self.control, Key=folder + path.name, Body=path.read_bytes())
        return f"s3://{self.control}/{folder}"

    def deploy(self, app: str, document: Path, values: Mapping[str, str], **added: Any) -> Document:
        """Deploy the document of an app, with the definitions in ``added``. Returns the report of the deployment."""
        filled = documents.load(str(document), {"namespace": self.name, "prefix": self.prefix, **values})
        for group, members in added.items():
            filled[group] = {**filled.get(group, {}), **members}
        return self.client.put(f"{self.base}/apps/{app}", filled)

    def runs(self, path: str = "/runs") -> list[Document]:
        """All runs below a path of the namespace, oldest first."""
        found = self.client.listing(f"{self.base}{path}")["items"]
        return sorted(found, key=lambda run: str(run["claimed_at"]))

    def until(self, look: Callable[[], bool], waited_for: str, patience: float) -> None:
        """Call ``look`` until it returns True. Raises `Failed` after ``patience`` seconds."""
        deadline = time.monotonic() + patience
        while not look():
            if time.monotonic() > deadline:
                raise Failed(f"expected {waited_for} within {patience:.0f} s; see `sluice runs list -n {self.name}`")
            time.sleep(POLL_EVERY)

    def text(self, bucket: str, key: str) -> str:
        body: bytes = self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body.decode()

    def keys(self, prefix: str) -> list[str]:
        """The keys of all objects below a prefix of the lake, in order."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.lake, Prefix=prefix)
        return sorted(row["Key"] for page in pages for row in page.get("Contents", ()))


def most_at_once(spans: Sequence[tuple[datetime, datetime]]) -> int:
    """The largest number of spans that share an instant; one that begins as another ends does not share it."""
    steps = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def check(holds: bool, expected: str, got: object) -> None:
    """Check one property of the result. Raises `Failed`, with the expected and actual value, if it does not hold."""
    if not holds:
        raise Failed(f"expected {expected}, got {got}")
