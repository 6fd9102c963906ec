"""The worker of the command line when its command or its report is faulty (W5)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sluice import worker as worker_module
from sluice import worker_command
from tests.cli.played_api import Played, PlayedApi
from tests.workers.test_worker import ALIVE, ENDED, api, lease, path, reports, work

__all__ = ["api"]


@pytest.fixture
def pool_api(api: PlayedApi) -> PlayedApi:
    api.play("POST", path("heartbeat"), ALIVE)
    api.play("POST", path("report"), ENDED)
    return api


@pytest.mark.parametrize(
    ("written", "reported"),
    [
        ('{"long": "%s", "rows": 12}' % ("x" * 2_000), {"rows": 12}),
        ('{"rows": 12, "share": NaN, "rest": -Infinity}', {"rows": 12}),
        ('{"%s": 1, "rows": 12}' % ("ä" * 500), {"rows": 12}),
        ("[1]", None),
        ("{", None),
    ],
)
def test_w5_invalid_metrics_stop_no_heartbeat_and_no_report(
    pool_api: PlayedApi, tmp_path: Path, written: str, reported: dict[str, Any] | None
) -> None:
    file = tmp_path / "metrics"
    file.write_text(written)
    work(pool_api, "sh", "-c", f"cp {file} $SLUICE_METRICS_FILE; sleep 0.5", leases=[lease(beat=0.3)])
    bodies = [*reports(pool_api), *(each.body for each in pool_api.sent("POST", path("heartbeat"))[1:])]
    assert [body.get("metrics") for body in bodies] == [reported] * len(bodies)
    assert len(bodies) > 1


def test_w5_metrics_are_reported_as_far_as_they_fit(pool_api: PlayedApi, tmp_path: Path) -> None:
    file = tmp_path / "metrics"
    file.write_text(json.dumps({f"metric{number}": "x" * 90 for number in range(20)}))
    work(pool_api, "sh", "-c", f"cp {file} $SLUICE_METRICS_FILE")
    answer = reports(pool_api)[0]["metrics"]
    assert list(answer) == [f"metric{number}" for number in range(9)]
    assert len(json.dumps(answer).encode()) <= 1_000


@pytest.mark.parametrize(
    ("words", "arguments", "why"),
    [
        (("echo", "{args}"), ["a\x00b"], "echo could not be started: embedded null byte"),
        (("/" + "no/" * 300 + "such",), [], "/no/no/no/"),
        (("echo", "{args}"), ["x" * 200_000], "echo could not be started: Argument list too long"),
        (("echo", "{args}"), ["a", "--config=/etc/x"], "expected arguments that do not begin with '-'"),
    ],
)
def test_w5_a_command_that_cannot_start_is_a_failure(
    pool_api: PlayedApi, words: tuple[str, ...], arguments: list[str], why: str
) -> None:
    work(pool_api, *words, leases=[{**lease(), "arguments": arguments}])
    [answer] = reports(pool_api)
    assert (answer["state"], answer["exit_code"]) == ("failed", 127)
    assert answer["message"].startswith(why)
    assert len(answer["message"]) <= 500


@pytest.mark.parametrize(
    ("words", "arguments", "more"),
    [
        (("echo", "--", "{args}"), ["-n"], {}),
        (("echo", "{args}"), ["-n", "x"], {"allow_dashes": True}),
        (("{args}",), ["echo", "-n"], {}),
        (("echo", "x"), ["-n"], {}),
    ],
)
def test_arguments_with_dashes_run_where_they_are_no_options(
    pool_api: PlayedApi, words: tuple[str, ...], arguments: list[str], more: dict[str, bool]
) -> None:
    work(pool_api, *words, leases=[{**lease(), "arguments": arguments}], **more)
    assert reports(pool_api)[0]["state"] == "succeeded"


@pytest.mark.parametrize("aws_keys", [False, True])
def test_a_command_gets_the_keys_of_its_worker_on_request(
    pool_api: PlayedApi, monkeypatch: pytest.MonkeyPatch, aws_keys: bool
) -> None:
    monkeypatch.setenv("AWS_ROLE_SESSION_NAME", "me")
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ROLE_SESSION_NAME", "AWS_REGION")
    work(pool_api, "sh", "-c", "; ".join(f"echo ${name}" for name in names), aws_keys=aws_keys)
    kept = [os.environ[name] if aws_keys or name == "AWS_REGION" else "" for name in names]
    assert os.environ["AWS_SECRET_ACCESS_KEY"]
    assert reports(pool_api)[0]["output"].splitlines() == kept


def test_w5_a_worker_without_disk_space_reports_a_failed_attempt(
    pool_api: PlayedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worker_command, "TemporaryDirectory", full)
    work(pool_api, "true")
    [answer] = reports(pool_api)
    assert (answer["state"], answer["message"]) == ("failed", "the worker failed: [Errno 28] No space left on device")


def test_w5_a_long_cancel_reason_is_truncated_in_the_report(api: PlayedApi) -> None:
    api.play("POST", path("heartbeat"), {**ALIVE, "cancel": True, "reason": "so " * 500})
    api.play("POST", path("report"), ENDED)
    work(api, "true")
    [answer] = reports(api)
    assert len(answer["message"]) == 500


def test_w5_an_unanswered_result_is_repeated_at_heartbeat_rate(api: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even after a long outage of the API, the lease may still be held when the API is back."""
    slept: list[float] = []
    monkeypatch.setattr(worker_module, "_sleep", lambda seconds, hurried: slept.append(seconds))
    api.play("POST", path("heartbeat"), ALIVE)
    api.play("POST", path("report"), *[Played(503, {}) for _ in range(40)], ENDED)
    work(api, "true", leases=[lease(beat=15)])
    assert len(reports(api)) == 41
    assert len(slept) == 10, "four tries at a time"
    assert max(slept) == 5
