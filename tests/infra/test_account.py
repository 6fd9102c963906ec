"""The list of what only an AWS account can settle, and the answers that a smoke test gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra import account, smoke

OUTPUTS = {
    "ApiUrl": "https://abc123.execute-api.eu-west-1.amazonaws.com/api",
    "EmrApplicationId": "00app",
    "LakeBucket": "lake",
    "ControlBucket": "control",
}


class Account:
    """An account with these answers of AWS, by the name of the operation."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {
            "get_stages": {"item": [{"stageName": "api"}]},
            "get_account_settings": {
                "AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 900}
            },
            "get_application": {"application": {"releaseLabel": "emr-7.14.0"}},
            **answers,
        }

    def client(self, service: str) -> Account:
        return self

    def __getattr__(self, operation: str) -> Any:
        def call(**request: Any) -> Any:
            answer = self.answers[operation]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def answered(made: Account | None, results: Mapping[str, tuple[bool, str]] | None = None) -> dict[str, account.Answer]:
    return account.answers(results or {}, made.client if made else None, OUTPUTS)


def test_every_entry_says_what_is_assumed_and_how_to_check_it() -> None:
    for name, question in account.questions().items():
        assert question.claim.endswith("."), name
        assert question.how, name
        assert len([each for each in (question.look, question.shown_by, question.measured_by) if each]) <= 1, name
        assert not question.look or question.look in account.LOOKS, name


def test_every_entry_names_a_check_of_the_smoke_test_or_none() -> None:
    stage = smoke.Stage("x", None, lambda service: None, OUTPUTS, 1)
    names = [name for name, _ in smoke.Smoke(stage, lambda text: None).checks()]
    for question in account.questions().values():
        wanted = question.shown_by or question.measured_by
        assert not wanted or [name for name in names if name.startswith(wanted)], question


def test_the_local_cloud_settles_nothing() -> None:
    passed = {"partition to Spark": (True, ""), "burst of 1,000": (True, "late_ms 400")}
    answers = answered(None, passed)
    assert {answer.verdict for answer in answers.values()} == {account.OPEN}
    assert [answer.seen for answer in answers.values()] == [each.how for each in account.questions().values()]


def test_o7_an_account_answers_what_a_check_or_a_look_shows() -> None:
    passed = {"partition to Spark": (True, "start_ms 900"), "burst of 1,000": (True, "late_ms 400, last_ms 900")}
    answers = answered(Account(), passed)
    assert answers["job_run_tags"] == account.Answer(account.YES, "start_ms 900")
    assert answers["one_stage"] == account.Answer(account.YES, "api")
    assert answers["release"].verdict == account.YES
    assert answers["concurrent_lambdas"].verdict == account.YES
    assert answers["poller_growth"].verdict == account.OPEN
    assert answers["poller_growth"].seen.startswith("late_ms 400, last_ms 900. Compare")
    assert answers["started_application"].verdict == account.OPEN


def test_an_account_that_differs_is_told_what_to_do() -> None:
    old = Account(
        get_stages={"item": [{"stageName": "Stage"}, {"stageName": "api"}]},
        get_account_settings={"AccountLimit": {"ConcurrentExecutions": 100, "UnreservedConcurrentExecutions": 10}},
        get_application={"application": {"releaseLabel": "emr-7.5.0"}},
    )
    answers = answered(old, {"partition to Spark": (False, "expected run r to succeed, got FAILED: AccessDenied")})
    assert answers["job_run_tags"] == account.Answer(account.NO, "expected run r to succeed, got FAILED: AccessDenied")
    assert answers["one_stage"].verdict == account.NO
    assert "aws apigateway delete-stage --rest-api-id abc123 --stage-name Stage" in answers["one_stage"].seen
    assert "--stage-name api" not in answers["one_stage"].seen
    assert answers["concurrent_lambdas"].verdict == account.NO
    assert (answers["release"].verdict, "emr-7.14.0" in answers["release"].seen) == (account.NO, True)


def test_what_the_credentials_may_not_read_stays_open() -> None:
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetStages")
    answer = answered(Account(get_stages=denied))["one_stage"]
    assert answer.verdict == account.OPEN
    assert "aws apigateway get-stages" in answer.seen
    unknown = Account(get_application={"application": {"releaseLabel": "emr-8.0.0"}})
    assert answered(unknown)["release"].verdict == account.OPEN


class Quiet:
    """The API of a stack in which nothing happens."""

    def __getattr__(self, name: str) -> Any:
        def answer(*_: Any, **__: Any) -> Any:
            raise smoke.Failure("the API says no")

        return answer


def test_a_burst_is_not_tried_with_ten_lambdas_left() -> None:
    few = Account(
        get_account_settings={"AccountLimit": {"ConcurrentExecutions": 100, "UnreservedConcurrentExecutions": 10}}
    )
    stage = smoke.Stage("x", Quiet(), few.client, OUTPUTS, 1, measured_as="dev")
    with pytest.raises(
        smoke.NotTried,
        match=r"has 10 concurrent Lambdas that are not reserved, and the burst needs 23\. Ask AWS for a higher",
    ):
        smoke.Smoke(stage, lambda text: None)._burst()
    enough = smoke.Stage("x", Quiet(), Account().client, OUTPUTS, 1, measured_as="dev")
    with pytest.raises(smoke.Failure):
        smoke.Smoke(enough, lambda text: None)._burst()


def test_a_check_that_was_not_tried_has_not_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = Account(
        get_account_settings={"AccountLimit": {"ConcurrentExecutions": 100, "UnreservedConcurrentExecutions": 10}}
    )
    stage = smoke.Stage("x", Quiet(), few.client, OUTPUTS, 1, measured_as="dev")
    monkeypatch.setattr(smoke, "deployed", lambda name: stage)
    monkeypatch.setattr(smoke.Smoke, "checks", lambda self: [("burst of 1,000", self._burst)])
    monkeypatch.setattr(smoke.Smoke, "remove", lambda self: [])
    monkeypatch.setattr(smoke.Smoke, "throttled", lambda self, since: None)
    assert smoke.main(["--stage", "dev", "--accept-cost"]) == 0
    printed = capsys.readouterr().out
    summary = json.loads(printed.strip().splitlines()[-1])
    assert (summary["smoke"], summary["account"]["concurrent_lambdas"]) == ("ok", "no")
    assert summary["checks"]["burst of 1,000"].startswith("the account has 10 concurrent Lambdas")
    assert "what only an account can settle" in printed
    assert "CallerAccounts" in printed
