"""Sentences and events in answers name nothing of namespaces that the signer may not read (O5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.core.errors import HIDDEN, SluiceError
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.writes import Replace
from chalicelib.flow.runs import complete
from chalicelib.flow.schedules import bulk
from chalicelib.web import unseen
from chalicelib.wiring import ports
from tests.support.reasons import says
from tests.support.schedules import after
from tests.web.conftest import APP, NS, WEEKDAYS, installation, settle_in
from tests.web.signed import Signer, enforcing, member, role

OTHER = "/v1/namespaces/other"
SECRET = f"{OTHER}/apps/secret"
EMR = {"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}}
OURS, BOTH = Signer(role("ours")), Signer(role("both"))
JOB = "other.secret.up.mf3k0p2q.0a1b2c3d4e5f60718293"
MINE = "demo.flights.up.mf3k0p2q.0a1b2c3d4e5f60718293"


def ours(name: str) -> bool:
    return name.startswith("demo")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"cancelled to make room for job {JOB}", f"cancelled to make room for job {HIDDEN}"),
        (f"(run {JOB}) and run {MINE}.", f"(run {HIDDEN}) and run {MINE}."),
        ("priority 9, inherited from other.secret.up", f"priority 9, inherited from {HIDDEN}"),
        ("priority 9, inherited from dataset other.raw", f"priority 9, inherited from {HIDDEN}"),
        ("priority 9, inherited from demo.flights.up", "priority 9, inherited from demo.flights.up"),
        ("waits for a grant of other to run other.secret.up", "waits for a grant of other to run other.secret.up"),
        ("see a.b.c.d.e", "see a.b.c.d.e"),
    ],
)
def test_sentences_and_events_name_nothing_hidden(text: str, left: str) -> None:
    for field in ("reason", "why", "fired_by", "message"):
        assert unseen.texts({"items": [{field: text}]}, ours) == {"items": [{field: left}]}
    assert unseen.texts({"arrived": [text]}, ours) == {"arrived": [left]}
    assert unseen.texts({"properties": {"note": text}}, ours) == {"properties": {"note": text}}


def test_an_event_of_a_hidden_run_keeps_what_the_schedule_counts() -> None:
    event = {"kind": "program_status", "id": f"{JOB}-1", "instant": 1, "run_id": JOB, "workflow": "other.secret.plan"}
    assert unseen.texts([event], ours) == [{**event, "id": HIDDEN, "run_id": HIDDEN}]
    refs = [{"kind": "run", "name": JOB}, {"kind": "run", "name": MINE}, {"kind": "pool", "name": "other.etl"}]
    assert unseen.texts({"refs": refs}, ours)["refs"] == refs[1:]


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
    why = f"cancelled to make room for job {JOB}"
    assert ports().ledger.commit([Replace(replace(row, reason=says(why), rev=row.rev + 1))]) is None
    for target in (f"/v1/runs/{run}", f"/v1/runs/{run}/why", f"{APP}/schedules/down/runs", f"{NS}/runs"):
        assert why in read(BOTH, target), target
        text = read(OURS, target)
        assert (JOB in text, f"for job {HIDDEN}" in text) == (False, True), target


def test_a_bulk_change_names_nothing_hidden(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run

    def fails(*_: Any) -> Any:
        raise SluiceError(
            "conflict", "taken by other.secret.up", None, "ask other.secret.up", mentions=["other.secret.up"]
        )

    monkeypatch.setitem(bulk.ACTIONS, "disable", fails)  # type: ignore[arg-type]
    request = {"action": "disable", "names": ["down"]}
    shown = {signer: json.dumps(signer.send("POST", f"{APP}/bulk", request)[1]["failed"]) for signer in (OURS, BOTH)}
    assert "other." not in shown[OURS]
    assert HIDDEN in shown[OURS]
    assert "taken by other.secret.up" in shown[BOTH]
