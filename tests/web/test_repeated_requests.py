"""The answer to a repeated `POST .../run` over HTTP: the first job, and its state (L11)."""

from __future__ import annotations

from tests.web.conftest import APP, Api

ONE = f"{APP}/schedules/nightly"


def test_a_repeated_request_answers_the_state_of_the_first(api: Api) -> None:
    api.schedule("nightly")
    first = api.post(f"{ONE}/run", {"at": "2h"}, idempotency_key="k1")
    assert (first["state"], first["reason"][:6]) == ("PENDING_CONSTRAINTS", "due at")
    api.schedule("nightly", properties={"new": True}, on_update="drop")

    again = api.post(f"{ONE}/run", {"at": "2h"}, idempotency_key="k1")
    assert (again["job_id"], again["state"]) == (first["job_id"], "DROPPED")
    assert again["reason"] == "the schedule was replaced or enabled again"
    api.delete(ONE)
    assert api.post(f"{ONE}/run", idempotency_key="k1") == again
    assert api.refused(404, "POST", f"{ONE}/run", idempotency_key="k2")["code"] == "not_found"
