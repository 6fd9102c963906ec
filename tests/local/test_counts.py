"""Counts of the calls that the local cloud answers (W11)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from infra.local import counts


def service() -> Any:
    async def handle_request(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[str, str]:
        return method, path

    return SimpleNamespace(handle_request=handle_request)


def ask(each: Any, method: str, headers: dict[str, str]) -> object:
    return asyncio.run(each.handle_request(method, "/", headers, b""))


def test_w11_calls_are_counted_by_operation(tmp_path: Path) -> None:
    path, dynamodb, s3 = tmp_path / "counts.json", service(), service()
    path.touch()
    counts.install({"dynamodb": dynamodb, "s3": s3}, path)
    begun = int(time.time())
    assert ask(s3, "PUT", {}) == ("PUT", "/")
    for _ in range(2):
        ask(dynamodb, "POST", {"x-amz-target": "DynamoDB_20120810.GetItem"})
    found: dict[str, int] = {}
    gives_up = time.monotonic() + 60
    while sum(found.values()) < 3 and time.monotonic() < gives_up:
        time.sleep(0.05)
        found = {}
        for second, calls in counts.read(path).items():
            assert second >= begun
            for name, count in calls.items():
                found[name] = found.get(name, 0) + count
    assert found == {"s3:PUT": 1, "dynamodb:GetItem": 2}


def test_w11_nothing_is_counted_without_the_file(tmp_path: Path) -> None:
    s3 = service()
    before = s3.handle_request
    counts.install({"s3": s3}, tmp_path / "counts.json")
    assert s3.handle_request is before
