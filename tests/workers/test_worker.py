"""The worker of the command line against a simulated API: heartbeats, cancels, lost leases, answers that do not come
(W5).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice import worker as worker_module
from sluice.client import Client
from sluice.errors import ApiRefused
from sluice.worker import Plan, Worker
from tests.cli.played_api import KEY, REGION, SECRET, Played, PlayedApi, playing

CLAIM = "/v1/workers/demo.etl/claim"
RUN = "demo.flights.pull.1.abc"
ALIVE = {"state": "RUNNING", "cancel": False, "reason": None, "expires_at": None}
ENDED = {"state": "SUCCEEDED"}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedApi]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    with playing() as made:
        yield made


def lease(number: int = 1, beat: float = 60) -> dict[str, Any]:
    return {
        "lease": f"{RUN}-1-{number}",
        "run_id": RUN,
        "attempt": 1,
        "schedule": "demo.flights.pull",
        "workflow": "demo.flights.pulled",
        "arguments": ["a"],
        "properties": {"day": 1},
        "context": {"run_id": RUN},
        "heartbeat_seconds": beat,
    }


def path(what: str, number: int = 1) -> str:
    return f"/v1/leases/{RUN}-1-{number}/{what}"


def work(api: PlayedApi, *command: str, grace: float = 5, leases: Any = None, **more: Any) -> tuple[Worker, list[str]]:
    """A worker does the work of one claim, and ends."""
    answer: list[str] = []
    api.play("POST", CLAIM, {"leases": leases or [lease()]}, {"leases": []})
    plan = Plan("demo.etl", "ann", command, grace=grace, **more)
    worker = Worker(Client(api.url, pause=lambda _: None), plan, lambda text, run=None: answer.append(text), once=True)
    worker.run()
    return worker, answer


def reports(api: PlayedApi) -> list[Any]:
    return [request.body for request in api.sent("POST", path("report"))]


def test_w5_a_heartbeat_precedes_the_work_and_a_report_follows(api: PlayedApi) -> None:
    api.play("POST", path("heartbeat"), ALIVE)
    api.play("POST", path("report"), ENDED)
    work(api, "sh", "-c", "echo one; echo two >&2; exit 3")
    asked = [request.path.rpartition("/")[2] for request in api.requests]
    assert asked == ["claim", "heartbeat", "report", "claim"]
    assert reports(api) == [{"worker": "ann", "state": "failed", "exit_code": 3, "output": "one\ntwo\n"}]


def test_w5_a_missing_command_is_a_failure_that_says_so(api: PlayedApi) -> None:
    api.play("POST", path("heartbeat"), ALIVE)
    api.play("POST", path("report"), ENDED)
    work(api, "/no/such/command")
    assert (reports(api)[0]["state"], reports(api)[0]["exit_code"]) == ("failed", 127)
    assert "/no/such/command could not be started" in reports(api)[0]["message"]


def test_w5_a_cancel_ends_the_command_and_all_it_started(api: PlayedApi, tmp_path: Path) -> None:
    api.play("POST", path("heartbeat"), ALIVE, {**ALIVE, "cancel": True, "reason": "somebody said so"})
    api.play("POST", path("report"), ENDED)
    child = tmp_path / "child"
    began = time.monotonic()
    work(api, "sh", "-c", f"sleep 60 & echo $! > {child}; wait", leases=[lease(beat=0.3)])
    assert time.monotonic() - began < 50, "nobody waited for the sleeper"
    assert (reports(api)[0]["state"], reports(api)[0]["exit_code"]) == ("failed", -15)
    assert not is_alive(int(child.read_text()))


def test_w5_a_command_that_ignores_its_end_is_killed_after_grace(api: PlayedApi) -> None:
    api.play("POST", path("heartbeat"), ALIVE, {**ALIVE, "cancel": True, "reason": "somebody said so"})
    api.play("POST", path("report"), ENDED)
    work(api, "sh", "-c", "trap '' TERM; while true; do sleep 0.1; done", grace=0.3, leases=[lease(beat=0.3)])
    assert reports(api)[0]["exit_code"] == -9


def test_w5_a_lost_lease_ends_the_command_and_reports_nothing(api: PlayedApi) -> None:
    error = {"code": "lease_lost", "message": "attempt 2 is held by bob", "field": None, "hint": None}
    api.play("POST", path("heartbeat"), ALIVE, Played(409, {"error": error}))
    _, answer = work(api, "sleep", "60", leases=[lease(beat=0.3)])
    assert reports(api) == []
    assert "lease lost: another worker has the run" in answer


def test_w5_work_cancelled_before_it_began_is_never_begun(api: PlayedApi, tmp_path: Path) -> None:
    api.play("POST", path("heartbeat"), {**ALIVE, "cancel": True, "reason": "somebody said so"})
    api.play("POST", path("report"), ENDED)
    work(api, "touch", str(tmp_path / "begun"))
    assert not (tmp_path / "begun").exists()
    assert reports(api)[0]["message"] == "not started: somebody said so"


def test_w5_metrics_written_by_the_command_are_reported(api: PlayedApi) -> None:
    api.play("POST", path("heartbeat"), ALIVE)
    api.play("POST", path("report"), ENDED)
    work(api, "sh", "-c", """echo '{"rows": 12, "deep": {"no": 1}}' > "$SLUICE_METRICS_FILE"; sleep 0.3""")
    assert reports(api)[0]["metrics"] == {"rows": 12}


def test_w5_an_unanswered_report_is_repeated(api: PlayedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "pause_after", lambda tries: 0.01)
    api.play("POST", path("heartbeat"), ALIVE)
    api.play("POST", path("report"), *[Played(503, {}) for _ in range(9)], ENDED)
    _, answer = work(api, "true")
    assert len(reports(api)) == 10
    assert any("will be repeated" in text for text in answer)


def test_w5_an_unanswered_claim_is_repeated_and_a_refusal_shown(
    api: PlayedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "pause_after", lambda tries: 0.01)
    api.play("POST", CLAIM, Played(hang_up=True), Played(502, {}), {"leases": []})
    plan = Plan("demo.etl", "ann", ("true",))
    assert Worker(Client(api.url), plan, lambda text, run=None: None, once=True).run() == 0
    api.refuse("POST", CLAIM, 400, "invalid", "expected a pool's full name")
    with pytest.raises(ApiRefused, match="expected a pool's full name"):
        Worker(Client(api.url), plan, lambda text, run=None: None).run()


def test_w5_work_claimed_during_the_stop_of_a_worker_is_released(api: PlayedApi) -> None:
    api.play("POST", CLAIM, {"leases": [lease()]})
    api.play("POST", path("release"), {"state": "STARTING"})
    worker = Worker(Client(api.url), Plan("demo.etl", "ann", ("true",)), lambda text, run=None: None)
    claim = worker.client.post

    def stopped_meanwhile(where: str, *given: Any, **more: Any) -> Any:
        worker.stop.set()
        return claim(where, *given, **more)

    worker.client.post = stopped_meanwhile
    worker.run()
    assert len(api.sent("POST", path("release"))) == 1


def test_w5_delays_grow_are_bounded_and_scattered() -> None:
    assert all(0.5 <= worker_module.pause_after(1) <= 1 for _ in range(20))
    assert all(15 <= worker_module.pause_after(40) <= 30 for _ in range(20))
    assert len({worker_module.pause_after(5) for _ in range(20)}) > 1


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"  # killed, not reaped yet


def claims_until(api: PlayedApi, count: int) -> tuple[list[Any], float]:
    """A worker that finds no work claims this often. Returns its requests, and how long it took."""
    worker = Worker(Client(api.url), Plan("demo.etl", "ann", ("true",)), lambda text, run=None: None)
    claim, began = worker.client.post, time.monotonic()

    def counted(where: str, *given: Any, **more: Any) -> Any:
        if len(api.sent("POST", CLAIM)) == count - 1:
            worker.stop.set()
        return claim(where, *given, **more)

    worker.client.post = counted
    worker.run()
    return [request.body["wait"] for request in api.sent("POST", CLAIM)], time.monotonic() - began


def test_w5_a_worker_without_work_asks_again_after_given_delay(api: PlayedApi) -> None:
    api.play("POST", CLAIM, {"leases": [], "retry_after": 0.5, "wait": 0})
    waits, took = claims_until(api, 3)
    assert waits == [0, 0, 0]
    assert took >= 2 * 0.8 * 0.5


def test_w5_a_worker_waits_as_long_as_the_api_allows(api: PlayedApi) -> None:
    api.play("POST", CLAIM, {"leases": [], "retry_after": 0, "wait": 12.0})
    assert claims_until(api, 3)[0] == [0, 12, 12]


def test_w5_without_a_given_delay_a_worker_waits_as_before(api: PlayedApi) -> None:
    api.play("POST", CLAIM, {"leases": []})
    assert claims_until(api, 3)[0] == [0, 20, 20]


def test_w18_the_result_of_a_command_goes_with_its_report(api: PlayedApi) -> None:
    api.play("POST", path("heartbeat"), ALIVE)
    api.play("POST", path("report"), {**ENDED, "result_refused": "expected a result in JSON, got 'mode: full'"})
    _, answer = work(api, "sh", "-c", """printf 'mode: full' > "$SLUICE_RESULT_FILE"; sleep 0.1""")
    assert reports(api)[0]["result_text"] == "mode: full"
    assert "result refused: expected a result in JSON, got 'mode: full'" in answer


def test_w18_of_a_long_result_as_much_is_sent_as_refuses_it(api: PlayedApi) -> None:
    api.play("POST", path("heartbeat"), ALIVE)
    api.play("POST", path("report"), ENDED)
    work(api, "sh", "-c", """head -c 1000000 /dev/zero | tr '\\0' 'x' > "$SLUICE_RESULT_FILE"; sleep 0.1""")
    assert len(reports(api)[0]["result_text"]) == 70_000


def test_w18_a_command_without_a_result_reports_none(api: PlayedApi) -> None:
    api.play("POST", path("heartbeat"), ALIVE)
    api.play("POST", path("report"), ENDED)
    work(api, "true")
    assert "result_text" not in reports(api)[0]
