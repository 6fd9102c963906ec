"""Sentences and events in answers name nothing of namespaces that the signer may not read (O5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.why import HIDDEN, Why, mention, plain
from chalicelib.core.writes import Replace
from chalicelib.flow.runs import complete
from chalicelib.flow.schedules import bulk
from chalicelib.wiring import ports
from tests.support.schedules import after
from tests.web.conftest import APP, NS, WEEKDAYS, installation, settle_in
from tests.web.signed import Signer, enforcing, member, role

OTHER = "/v1/namespaces/other"
SECRET = f"{OTHER}/apps/secret"
EMR = {"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}}
OURS, BOTH = Signer(role("ours")), Signer(role("both"))
JOB = "other.secret.up.mf3k0p2q.0a1b2c3d4e5f60718293"


@pytest.fixture(scope="module")
def run() -> Iterator[str]:
    """A run of ``demo`` that counts a run of ``other``, which lets it follow. Its id."""
    with installation() as api, pytest.MonkeyPatch.context() as patch:
        settle_in(api)
        api.put(OTHER)
        api.put(SECRET)
        api.put(f"{SECRET}/workflows/plan", EMR)
        api.put(f"{SECRET}/schedules/up", {"workflow": "plan", "trigger": WEEKDAYS, "enabled": True})
        api.put(f"{OTHER}/grants", {"grants": [{"to": "demo", "follow": ["*"]}]})
        api.put(f"{APP}/schedules/down", after("other.secret.plan", "clean", by=[]) | {"enabled": True})
        both, boss = ({"member": member(name), "roles": ["admin"]} for name in ("both", "boss"))
        api.put(f"{NS}/access", {"members": [both, {"member": member("ours"), "roles": ["operator"]}]})
        api.put(f"{OTHER}/access", {"members": [both, boss]})
        up = api.post(f"{SECRET}/schedules/up/run")["job_id"]
        api.work()
        for state in ("RUNNING", "SUCCEEDED"):
            complete.advance_run(ports(), up, 1, RunUpdate(state, ports().clock.now(), ""))
        api.work()
        [made] = ports().runs.runs("schedule", "demo.flights.down", 9, None).items
        enforcing(patch)
        yield made.run_id


def read(signer: Signer, target: str) -> str:
    status, view = signer.send("GET", target)
    assert status == 200, view
    return json.dumps(view)


def test_a_run_names_no_hidden_upstream_run(run: str) -> None:
    for target in (f"/v1/runs/{run}", f"/v1/runs/{run}/why", f"{APP}/schedules/down/runs"):
        assert "other.secret.up." not in read(OURS, target), target
    assert "other.secret.up." in read(BOTH, f"/v1/runs/{run}")
    assert "other.secret.plan" in read(OURS, f"/v1/runs/{run}"), "its own schedule names the workflow"


def test_a_stored_reason_names_no_hidden_job(run: str) -> None:
    [row] = ports().runs.attempts(run)
    reason = Why.of("room_made", "cancelled to make room for job ", mention("run", JOB))
    assert ports().ledger.commit([Replace(replace(row, reason=reason, rev=row.rev + 1))]) is None
    why = reason.text
    for target in (f"/v1/runs/{run}", f"/v1/runs/{run}/why", f"{APP}/schedules/down/runs", f"{NS}/runs"):
        assert why in read(BOTH, target), target
        text = read(OURS, target)
        assert (JOB in text, f"for job {HIDDEN}" in text) == (False, True), target


def test_a_bulk_change_names_nothing_hidden(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run

    def fails(*_: Any) -> Any:
        taken = mention("other", "other.secret.up")
        raise SluiceError("conflict", plain("taken by ", taken), None, plain("ask ", taken))

    monkeypatch.setitem(bulk.ACTIONS, "disable", fails)  # type: ignore[arg-type]
    request = {"action": "disable", "names": ["down"]}
    shown = {signer: json.dumps(signer.send("POST", f"{APP}/bulk", request)[1]["failed"]) for signer in (OURS, BOTH)}
    assert "other." not in shown[OURS]
    assert HIDDEN in shown[OURS]
    assert "taken by other.secret.up" in shown[BOTH]
