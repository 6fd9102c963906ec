"""The command of a container runs as a process of this machine (`infra/local/containers.py`)."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import pytest

from infra.local import processes
from infra.local.containers import CannotPull, CannotStart, Container, command_of, environment, log_into

PLAIN = environment({"DAY": "2026-11-24"}, "http://127.0.0.1:4566", "us-east-1")


def run(command: list[str], given: dict[str, str] | None = None) -> tuple[int | None, list[str]]:
    lines: list[str] = []
    return Container(command, given or PLAIN, lines.append).wait(20), lines


def test_a_container_writes_its_lines_and_has_an_exit_code() -> None:
    assert run(["sh", "-c", 'echo "day $DAY"; echo wrong >&2; exit 3']) == (3, ["day 2026-11-24", "wrong"])


def test_a_container_sees_only_its_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the server")
    given = environment({}, "http://127.0.0.1:4566", "us-east-1", {"AWS_ACCESS_KEY_ID": "of the role"})
    code, lines = run(["sh", "-c", "env"], given)
    assert code == 0 and "AWS_ENDPOINT_URL=http://127.0.0.1:4566" in lines
    assert "AWS_ACCESS_KEY_ID=of the role" in lines and not any("of the server" in line for line in lines)


def test_a_stopped_container_ends_with_its_children() -> None:
    lines: list[str] = []
    container = Container(["sh", "-c", "sleep 600 & echo $$; wait"], PLAIN, lines.append)
    while not lines:
        time.sleep(0.01)
    assert container.wait(0.01) is None
    assert container.stop() == 128 + 15
    ended = time.monotonic() + 5
    while processes.members(int(lines[0])) and time.monotonic() < ended:
        time.sleep(0.01)
    assert not processes.members(int(lines[0]))


def test_a_container_that_ignores_sigterm_is_killed() -> None:
    lines: list[str] = []
    container = Container(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"], PLAIN, lines.append)
    while not lines:
        time.sleep(0.01)
    assert container.stop(0.1) == 128 + 9


def test_a_command_that_is_not_here_is_named() -> None:
    with pytest.raises(CannotStart, match='exec: "no-such-program": executable file not found'):
        Container(["no-such-program"], PLAIN, None)
    with pytest.raises(CannotStart, match="null byte"):
        Container(["sh", "a\0b"], PLAIN, None)


def test_an_image_without_a_command_is_not_here() -> None:
    assert command_of("etl:1", entry_point=["sh"], command=["-c", "true"]) == ["sh", "-c", "true"]
    with pytest.raises(CannotPull, match="does not know the command of etl:1"):
        command_of("etl:1")


def test_lines_go_into_a_stream_of_cloudwatch_logs() -> None:
    from ministack.services import cloudwatch_logs as logs

    group, scope = "/ecs/containers-test", nullcontext
    assert log_into(logs, scope, group, "a/b/1", create_group=False) is None
    write = log_into(logs, scope, group, "a/b/1", create_group=True)
    try:
        assert write is not None
        Container(["sh", "-c", "echo one; echo; echo two"], PLAIN, write).wait()
        events: list[dict[str, Any]] = logs._log_groups[group]["streams"]["a/b/1"]["events"]
        assert [event["message"] for event in events] == ["one", " ", "two"]
    finally:
        logs._delete_log_group({"logGroupName": group})
