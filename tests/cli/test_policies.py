"""``sluice policies`` and ``describe policy`` (L17, E3); the number of fires a day of a schedule (T1)."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import CLEAN, JOB, past, schedule
from tests.cli.test_pause import described

POLICIES = "/v1/namespaces/demo/policies"
POLICY: dict[str, Any] = {
    "name": "demo.calm",
    "kind": "policy",
    "description": "what the partner bears",
    "tags": {},
    "owner": "",
    "max_events": 20,
    "interval": "1m",
    "version": 2,
    "updated_at": past(minutes=3),
    "updated_by": "tester",
}


def waiter(position: int, attempt: int | None = None) -> dict[str, Any]:
    return {"position": position, "job_id": f"{JOB[:-1]}{position}", "schedule": CLEAN, "attempt": attempt}


def test_l17_policies_are_listed_with_what_they_allow(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[POLICIES] = [POLICY]
    header, row = sluice("policies", "-n", "demo").stdout.splitlines()[:2]
    assert header.split()[:4] == ["NAME", "EVENTS", "PER", "CHANGED"]
    assert row.split()[:3] == ["demo.calm", "20", "1m"]
    assert row.rstrip().endswith("what the partner bears")
    assert json.loads(sluice("policies", "-n", "demo", "--json").stdout)["items"] == [POLICY]


def test_l17_a_namespace_without_policies_says_so(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[POLICIES] = []
    done = sluice("policies", "-n", "demo")
    assert (done.exit_code, done.stdout, done.stderr.strip()) == (0, "", "no policies here")


def test_l17_a_policy_is_described_with_its_queue(api: PlayedApi, sluice: Sluice) -> None:
    parts = [
        {"of": "the next start", "waiting": 1, "queue": [waiter(1)]},
        {"of": "admission, with permits of pool demo.p", "waiting": 6, "queue": [waiter(1), waiter(2, attempt=3)]},
    ]
    view = {**POLICY, "waiting": 7, "next_start_at": past(minutes=-1.5), "parts": parts}
    api.play("GET", f"{POLICIES}/calm", view)
    page = sluice("describe", "policy", "demo.calm")
    assert "1 waiting: the next start" in page.stdout
    assert f"  2  {JOB[:-1]}2  3" in page.stdout, "the attempt of a run that waits again"
    assert "2 shown; sluice jobs ... --limit 0 shows all" in page.stderr
    assert "(in 1 m)" in page.stdout
    answer = {
        line.strip().split("  ")[0]: line for line in sluice("describe", "policy", "demo.calm").stdout.splitlines()
    }
    assert answer["allows"].endswith("20 starts in any 1m")
    assert answer["waiting"].endswith("7")


def test_t1_a_described_schedule_shows_its_fires_per_day(api: PlayedApi, sluice: Sluice) -> None:
    described(api, schedule() | {"fires_per_day": 1440})
    [line] = [line for line in sluice("describe", "schedule", CLEAN).stdout.splitlines() if "fires a day" in line]
    assert line.split()[-1] == "1,440"
    described(api, schedule() | {"fires_per_day": 0})
    assert "fires a day" not in sluice("describe", "schedule", CLEAN).stdout
