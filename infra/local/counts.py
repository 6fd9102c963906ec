"""Counts of the calls that the local cloud answers, second by second, for measurements.

They are kept if the file of counts exists when the cloud starts, and written to it each second: for each second since
1970, the number of calls by `service:Operation`. The operation of S3 and Lambda is the HTTP method."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

WRITTEN_EVERY_S = 1.0
Counts = dict[int, Counter[str]]


def install(services: Mapping[str, Any], path: Path) -> None:
    """Count the calls of ministack's services, by their names in AWS, if the file exists."""
    if not path.exists():
        return
    counts: Counts = {}
    for name, service in services.items():
        service.handle_request = _counted(name, service.handle_request, counts)
    threading.Thread(target=_write, args=(counts, path), name="counts", daemon=True).start()


def read(path: Path) -> Counts:
    """The counts that were written last."""
    return {int(second): Counter(calls) for second, calls in json.loads(path.read_text() or "{}").items()}


def _counted(service: str, handle: Callable[..., Any], counts: Counts) -> Callable[..., Any]:
    async def handle_request(method: str, path: str, headers: dict[str, str], *more: Any, **named: Any) -> Any:
        operation = headers.get("x-amz-target", "").rpartition(".")[2] or method
        counts.setdefault(int(time.time()), Counter())[f"{service}:{operation}"] += 1
        return await handle(method, path, headers, *more, **named)

    return handle_request


def _write(counts: Counts, path: Path) -> None:
    part = path.with_suffix(".part")
    while True:
        time.sleep(WRITTEN_EVERY_S)
        part.write_text(json.dumps({str(second): counts[second] for second in list(counts)}))
        part.replace(path)
