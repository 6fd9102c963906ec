"""An approval: who may give it, its words, what a job keeps of it, and the approval that a workflow asks for (C16)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core import errors
from chalicelib.core.constraints import approval
from chalicelib.core.constraints.approval import Approval, WorkflowApproval
from chalicelib.core.constraints.constraint import Situation
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, MINUTE
from tests.core.builders import NOON, job, met, schedule

IAM, STS = "arn:aws:iam::123456789012:", "arn:aws:sts::123456789012:"
ANN, BOB = f"{IAM}user/ann", f"{IAM}user/team/bob"
WORKFLOW = "demo.flights.clean"


def constraints(*documents: dict[str, Any]) -> Any:
    return schedule(constraints=[{"type": "approval", **document} for document in documents]).constraints


def asks(**document: Any) -> Any:
    [made] = constraints(document)
    return made


def of_workflow(**document: Any) -> Any:
    [made] = approval.of_workflow(Approval(type="approval", **document), WORKFLOW)
    return made


def refused(*documents: dict[str, Any]) -> SluiceError:
    with pytest.raises(ValidationError) as caught:
        constraints(*documents)
    return errors.from_validation(caught.value)


def situation(**fields: Any) -> Situation:
    known: dict[str, Any] = {"job": met(), "now": NOON, **fields}
    return Situation(workflow=WORKFLOW, namespace="demo", limit_states={}, successes={}, **known)


# -- documents -----------------------------------------------------------------------------------------------------


def test_c16_an_approval_without_approvers_is_refused() -> None:
    error = refused({})
    assert (error.code, error.field) == ("invalid", "constraints.0")
    assert error.message == "expected a role, people, or both, got 'neither'"
    assert error.hint == "say who may approve"


@pytest.mark.parametrize(
    "person",
    [ANN, BOB, f"{IAM}role/owner", f"{STS}assumed-role/owner/ann", "arn:aws-us-gov:iam::123456789012:user/ann"],
)
def test_c16_a_user_a_role_or_a_session_may_be_an_approver(person: str) -> None:
    assert asks(people=[person]).people == (person,)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"people": ["ann"]}, "people.0"),
        ({"people": [f"{IAM}root"]}, "people.0"),
        ({"people": [ANN, "arn:aws:iam::12345:user/ann"]}, "people.1"),
        ({"people": [ANN] * 51}, "people"),
        ({"role": "two words"}, "role"),
        ({"role": "r" * 65}, "role"),
        ({"role": "owner", "timeout": "soon"}, "timeout"),
        ({"role": "owner", "on_unmet": "abort"}, "on_unmet"),
    ],
)
def test_c16_an_invalid_field_of_an_approval_is_named(document: dict[str, Any], field: str) -> None:
    assert refused(document).field == f"constraints.0.{field}"


def test_c16_one_schedule_asks_each_role_for_one_approval() -> None:
    error = refused({"role": "owner"}, {"people": [ANN]}, {"role": "owner", "timeout": "1h"})
    assert (error.code, error.field) == ("invalid", "constraints")
    assert error.message == f"expected one approval for each role, got ['owner', '{ANN}', 'owner']"
    assert error.hint == "keep one approval for each role"
    assert len(constraints({"role": "owner"}, {"role": "lead"}, {"people": [ANN]})) == 3


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"role": "owner"}, "owner"),
        ({"role": "owner", "people": [ANN]}, "owner"),
        ({"people": [ANN, BOB]}, ANN),
    ],
)
def test_c16_an_approval_has_the_key_of_its_role_or_first_person(document: dict[str, Any], key: str) -> None:
    assert asks(**document).key == key
    assert of_workflow(**document).key == f"{key} for {WORKFLOW}"


# -- who may approve -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "caller", "may"),
    [
        ({"role": "owner"}, f"{STS}assumed-role/owner/ann", True),
        ({"role": "owner"}, f"{STS}assumed-role/owner/a/b", True),
        ({"role": "owner"}, f"{STS}assumed-role/coowner/ann", False),
        ({"role": "owner"}, f"{STS}assumed-role/owners/ann", False),
        ({"role": "owner"}, f"{STS}assumed-role/other/owner", False),
        ({"role": "owner"}, f"{STS}assumed-role/owner", False),
        ({"role": "owner"}, f"{IAM}role/owner", True),
        ({"role": "owner"}, f"{IAM}role/team/owner", True),
        ({"role": "owner"}, f"{IAM}role/owner/team", False),
        ({"role": "owner"}, f"{IAM}user/owner", False),
        ({"role": "owner"}, f"{STS}federated-user/owner", False),
        ({"role": "owner"}, f"x{IAM}role/owner", False),
        ({"role": "owner"}, "arn:aws-cn:iam::123456789012:role/owner", True),
        ({"role": "owner"}, "arn:aws-cn:sts::123456789012:assumed-role/owner/ann", True),
        ({"people": [ANN]}, ANN, True),
        ({"people": [ANN, BOB]}, BOB, True),
        ({"people": [ANN]}, BOB, False),
        ({"people": [ANN]}, f"{ANN}e", False),
        ({"people": [f"{IAM}role/owner"]}, f"{STS}assumed-role/owner/ann", True),
        ({"people": [f"{IAM}role/owner"]}, "arn:aws:sts::999999999999:assumed-role/owner/ann", False),
        ({"people": [f"{STS}assumed-role/owner/ann"]}, f"{STS}assumed-role/owner/ann", True),
        ({"people": [f"{STS}assumed-role/owner/ann"]}, f"{STS}assumed-role/owner/bob", False),
        ({"role": "owner", "people": [ANN]}, ANN, True),
        ({"role": "owner", "people": [ANN]}, f"{STS}assumed-role/owner/bob", True),
        ({"role": "owner", "people": [ANN]}, BOB, False),
        ({"people": [f"{IAM}role/owner"]}, f"{IAM}role/team/owner", False),
        (
            {"people": ["arn:aws-cn:iam::123456789012:role/owner"]},
            "arn:aws-cn:sts::123456789012:assumed-role/owner/a",
            True,
        ),
    ],
)
def test_c16_only_its_role_and_its_people_may_approve(document: dict[str, Any], caller: str, may: bool) -> None:
    assert asks(**document).may_be_given_by(caller) is may
    assert of_workflow(**document).may_be_given_by(caller) is may


def test_c16_the_duty_to_approve_is_of_the_job_or_its_workflow() -> None:
    assert asks(role="owner").place("demo.flights.daily.7.first") == "demo.flights.daily.7.first"
    assert of_workflow(role="owner").place("other.app.daily.7.first") == WORKFLOW


# -- words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"role": "owner"}, "approved by a owner"),
        ({"people": [ANN]}, f"approved by {ANN}"),
        (
            {"role": "owner", "people": [ANN, BOB], "timeout": "90m"},
            f"approved by a owner or {ANN} or {BOB} within 1h 30m",
        ),
    ],
)
def test_c14_an_approval_says_who_may_give_it_and_until_when(document: dict[str, Any], words: str) -> None:
    assert asks(**document).rule == f"{words}, else wait"
    assert of_workflow(**document).rule == f"{words} for workflow {WORKFLOW}, else wait"


def test_c16_an_approval_names_its_user_instant_and_reason() -> None:
    bare = {"by": ANN, "at": NOON}
    assert approval.approved_by(bare) == f"by {ANN} at 2026-03-02T12:00:00.000Z"
    assert approval.approved_by(bare | {"why": ""}) == approval.approved_by(bare)
    assert approval.approved_by(bare | {"why": "month end"}) == f"by {ANN} at 2026-03-02T12:00:00.000Z: month end"


def test_c16_a_start_names_all_its_approvals_in_order_of_keys() -> None:
    said = {"owner": {"by": ANN, "at": NOON, "why": "fine"}, "lead": {"by": BOB, "at": NOON + 1}}
    assert approval.words_of(said) == (
        f"; approved by {BOB} at 2026-03-02T12:00:00.001Z; approved by {ANN} at 2026-03-02T12:00:00.000Z: fine"
    )
    assert approval.words_of({}) == ""


def test_c16_a_wait_for_the_workflows_approval_is_recognised() -> None:
    """A job that waits for its workflow is found by its reason when the workflow no longer asks."""
    waits = of_workflow(role="owner").evaluate(situation())
    assert not waits.met
    assert waits.why.named("approval") == (WORKFLOW,)
    assert asks(role="owner").evaluate(situation()).why.named("approval") == ()


# -- the approval of a workflow ------------------------------------------------------------------------------------


def test_c16_a_workflow_asks_for_an_approval_of_its_own() -> None:
    made = of_workflow(role="owner", people=[ANN], timeout="1h")
    assert made == WorkflowApproval(type="approval", role="owner", people=(ANN,), timeout="1h", workflow=WORKFLOW)
    assert approval.of_workflow(None, WORKFLOW) == ()
    assert approval.waiters_key(WORKFLOW) == "approval:demo.flights.clean"


def test_c16_an_approval_of_the_schedule_is_none_of_its_workflow() -> None:
    said = {"by": ANN, "at": NOON}
    by_schedule, by_workflow = asks(role="owner"), of_workflow(role="owner")
    own = situation(job=met(approvals={"owner": said}))
    assert (by_schedule.evaluate(own).met, by_workflow.evaluate(own).met) == (True, False)
    other = situation(job=met(approvals={f"owner for {WORKFLOW}": said}))
    assert (by_schedule.evaluate(other).met, by_workflow.evaluate(other).met) == (False, True)


def test_c16_approvals_are_found_among_other_constraints() -> None:
    delay, found = schedule(
        constraints=[{"type": "delay", "after": "1m"}, {"type": "approval", "role": "owner"}]
    ).constraints
    assert approval.approvals_of([delay, found, of_workflow(role="owner")]) == [found, of_workflow(role="owner")]


# -- judgement -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"now": NOON}, "waits"),
        ({"now": NOON + HOUR - 1}, "waits"),
        ({"now": NOON + HOUR}, "aborts"),
        ({"now": NOON + DAY, "job": job("retry")}, "met"),  # of a run that earlier code stored
        ({"now": NOON, "job": job("retry", approvals={})}, "waits"),
        ({"now": NOON + DAY, "job": met(approvals={"owner": {"by": ANN, "at": NOON + DAY}})}, "met"),
        ({"now": NOON + HOUR, "job": met(met_at=NOON + MINUTE)}, "waits"),
    ],
)
def test_c16_a_job_waits_until_approval_or_the_end_of_its_time(fields: dict[str, Any], state: str) -> None:
    found = asks(role="owner", timeout="1h").evaluate(situation(**fields))
    assert found.met is (state == "met")
    assert found.aborts is (state == "aborts")
    assert found.waits is (state != "aborts")
