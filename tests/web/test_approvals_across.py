"""Who approves a job whose workflow asks for it: those with the duty in the namespace of the workflow (C16, O5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.core.access.roles import ROLES
from chalicelib.web import audit
from tests.web.conftest import APP, NS, WEEKDAYS, Api
from tests.web.signed import Signer, authorizing, member, role

LAKE = "/v1/namespaces/lake"
BOSS = Signer(role("boss"))
ADMIN = Signer(role("platform"))
ASKS = {"type": "approval", "people": [member("owner"), member("both"), member("here"), member("asks")]}
QUEUE = {"type": "sqs", "queue_url": "https://sqs.us-east-1.amazonaws.com/123456789012/sluice-target-q"}
OWNER, HERE, STRANGER = (Signer(role(name)) for name in ("owner", "here", "stranger"))
ASKING, BOTH = Signer(role("asks")), Signer(role("both"))
OTHERS = {name: Signer(role(f"lake-{name}")) for name in ROLES if name != "approver"}


@pytest.fixture
def job(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A job of namespace ``demo`` whose workflow, of namespace ``lake``, asks for an approval."""
    notify = api.get(f"{APP}/workflows/notify")
    api.put(LAKE)
    api.put(f"{LAKE}/apps/core")
    api.put(f"{LAKE}/apps/core/workflows/send", {"target": notify["target"], "approval": ASKS})
    api.put(f"{LAKE}/grants", {"grants": [{"to": "demo", "run": ["*"]}]})
    api.schedule("nightly", workflow="lake.core.send", trigger=WEEKDAYS, enabled=True)
    here = [("boss", ["admin"]), ("here", ["approver"]), ("asks", ["operator"]), ("both", ["approver"])]
    there = [("boss", ["admin"]), ("owner", ["approver"]), ("asks", ["approver"]), ("both", ["approver"])]
    there += [(f"lake-{name}", [name]) for name in OTHERS]
    api.put(f"{NS}/access", {"members": [{"member": member(name), "roles": roles} for name, roles in here]})
    api.put(f"{LAKE}/access", {"members": [{"member": member(name), "roles": roles} for name, roles in there]})
    authorizing(monkeypatch, "enforce")
    audit.refusals.cache_clear()
    status, made = ASKING.send("POST", f"{APP}/schedules/nightly/run", {})
    assert status < 300, made
    api.work()
    yield made["job_id"]
    audit.refusals.cache_clear()


def seen(path: str) -> Any:
    status, view = BOSS.send("GET", path)
    assert status == 200, view
    return view


def put(path: str, document: dict[str, Any]) -> None:
    assert BOSS.status("PUT", path, document) in (200, 201)


def test_c16_the_owners_of_a_workflow_read_and_approve_its_job(api: Api, job: str) -> None:
    waits = "for workflow lake.core.send, else wait: waits for approval"
    assert OWNER.send("GET", f"/v1/jobs/{job}")[1]["reason"].endswith(waits)
    assert OWNER.status("GET", f"/v1/jobs/{job}/why") == 200
    assert OWNER.status("GET", f"{APP}/schedules/nightly") == 404, "nothing else there"
    assert OWNER.status("POST", f"/v1/jobs/{job}/cancel") == 404
    status, answer = OWNER.send("POST", f"/v1/jobs/{job}/approve", {})
    assert (status, [each["by"] for each in answer["approvals"]]) == (200, [role("owner")])
    api.work()
    assert ASKING.send("GET", f"/v1/runs/{job}")[1]["state"] == "SUCCEEDED"
    assert OWNER.status("GET", f"/v1/runs/{job}") == 404


@pytest.mark.parametrize("verdict", ["approve", "refuse"])
def test_c16_an_approver_of_the_schedule_alone_may_not(job: str, verdict: str) -> None:
    before = seen(f"/v1/jobs/{job}")
    error = HERE.error("POST", f"/v1/jobs/{job}/{verdict}", {})
    assert (error["code"], error["hint"]) == ("forbidden", "an admin of lake can give it: sluice access lake")
    assert seen(f"/v1/jobs/{job}") == before


@pytest.mark.parametrize("verdict", ["approve", "refuse"])
def test_c16_no_other_role_of_the_owners_approves_the_job(job: str, verdict: str) -> None:
    absent = job.replace("nightly", "nowhere")
    for signer in (*OTHERS.values(), STRANGER):
        here, there = (signer.error("POST", f"/v1/jobs/{each}/{verdict}", {}) for each in (job, absent))
        assert here["code"] == "not_found"
        assert here["message"].replace("nightly", "nowhere") == there["message"]
    assert ADMIN.error("POST", f"/v1/jobs/{job}/{verdict}", {})["code"] == "forbidden", "no administrator has the duty"


def test_c16_no_user_approves_their_job_of_a_foreign_workflow(job: str) -> None:
    error = ASKING.error("POST", f"/v1/jobs/{job}/approve", {})
    assert error["code"] == "forbidden"
    assert error["message"].startswith("expected an approval by a person who has not arranged the job, got ")
    assert error["hint"].startswith(
        "ask another person to approve it (approved by arn:aws:iam::123456789012:role/owner"
    )
    assert ASKING.status("POST", f"/v1/jobs/{job}/refuse", {}) == 200


def test_c16_a_job_without_an_approval_stays_hidden_from_owners(api: Api, job: str) -> None:
    document: dict[str, Any] = seen(f"{LAKE}/apps/core/workflows/send")
    put(f"{LAKE}/apps/core/workflows/send", {"target": document["target"]})
    assert OWNER.status("GET", f"/v1/jobs/{job}") == 404
    assert OWNER.error("POST", f"/v1/jobs/{job}/approve", {})["code"] == "not_found"
    api.work()
    assert ASKING.send("GET", f"/v1/runs/{job}")[1]["state"] == "SUCCEEDED", "the change wakes what waited"


def test_c16_a_workflow_keeps_its_approval_and_names_it(job: str) -> None:
    assert job
    path = f"{LAKE}/apps/core/workflows/send"
    assert seen(path)["approval"]["people"] == ASKS["people"]
    assert "approval" not in seen(f"{APP}/workflows/notify")
    error = BOSS.error("PUT", path, {"target": QUEUE, "approval": {"type": "approval"}})
    assert (error["code"], error["field"]) == ("invalid", "approval")
