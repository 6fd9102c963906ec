"""Further EMR applications and roles, as parameters: who may use them, whose state events arrive, and the settings of
the Lambdas.
"""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.settings import Settings

from .resolve import PSEUDO, Resolver
from .test_policies import LAMBDAS, actions, statements

OWN, ROLE = "00own", "arn:aws:iam::123456789012:role/own"
EXACT = "arn:aws:emr-serverless:eu-west-1:123456789012:/applications/"
ANYWHERE = "arn:*:emr-serverless:*:*:/applications/"
MADE = {"EmrApplication.ApplicationId": OWN, "EmrJobRole.Arn": ROLE}
TWO_MORE = {"EmrApplicationIds": "00one,00two"}
GIVEN = {"EmrApplicationId": "00given", "EmrJobRoleArn": "arn:aws:iam::123456789012:role/given"}
# What follows the ARN of an application. A start with tags needs TagResource on the application or on the run.
# AWS leaves it open which one.
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonemrserverless.html
USING = {
    "Check": {
        "emr-serverless:StartJobRun": ("",),
        "emr-serverless:GetApplication": ("",),
        "emr-serverless:ListJobRuns": ("",),
        "emr-serverless:GetJobRun": ("/jobruns/*",),
        "emr-serverless:CancelJobRun": ("/jobruns/*",),
        "emr-serverless:TagResource": ("", "/jobruns/*"),
    },
    "RunState": {"emr-serverless:GetJobRun": ("/jobruns/*",)},
}
CASES = [(function, action, below) for function, used in USING.items() for action, below in used.items()]


def granted(template: dict[str, Any], function: str, action: str, **parameters: str) -> list[str]:
    """The resources on which a Lambda may do an action, in a stack with these parameters."""
    resolve = Resolver(template, MADE, **parameters)
    found = [s["Resource"] for s in statements(template["Resources"], f"{function}Role") if action in actions(s)]
    arns = [arn for each in map(resolve, found) for arn in (each if isinstance(each, list) else [each])]
    return [str(arn) for arn in arns]


@pytest.mark.parametrize(("function", "action", "below"), CASES)
def test_a_lambda_may_use_only_the_stack_and_listed_applications(
    template: dict[str, Any], function: str, action: str, below: tuple[str, ...]
) -> None:
    def each(*applications: str) -> list[str]:
        return [f"{application}{suffix}" for suffix in below for application in applications]

    assert granted(template, function, action) == each(f"{EXACT}{OWN}")
    more = each(f"{EXACT}{OWN}", f"{ANYWHERE}00one", f"{ANYWHERE}00two")
    assert granted(template, function, action, **TWO_MORE) == more
    listed = each(f"{EXACT}00given", f"{ANYWHERE}00one")
    assert granted(template, function, action, **GIVEN, EmrApplicationIds="00one") == listed


@pytest.mark.parametrize(("function", "action"), [case[:2] for case in CASES])
def test_o14_applications_are_those_of_the_account_and_region(
    template: dict[str, Any], function: str, action: str
) -> None:
    """The ARN of a listed application leaves both open."""
    own = {"aws:ResourceAccount": {"Ref": "AWS::AccountId"}, "aws:RequestedRegion": {"Ref": "AWS::Region"}}
    found = [s["Condition"] for s in statements(template["Resources"], f"{function}Role") if action in actions(s)]
    assert found and all(condition == {"StringEqualsIfExists": own} for condition in found)


def test_no_other_lambda_may_use_an_application(template: dict[str, Any]) -> None:
    for function in set(LAMBDAS) - set(USING):
        allowed = {a for s in statements(template["Resources"], f"{function}Role") for a in actions(s)}
        assert not [action for action in allowed if action.startswith("emr-serverless:")]


def test_only_the_stack_and_listed_roles_are_passed_to_emr(template: dict[str, Any]) -> None:
    more = "arn:aws:iam::123456789012:role/path/sales,arn:aws:iam::123456789012:role/hr"
    assert granted(template, "Check", "iam:PassRole") == [ROLE]
    assert granted(template, "Check", "iam:PassRole", EmrRoleArns=more) == [ROLE, *more.split(",")]
    assert granted(template, "Check", "iam:PassRole", **GIVEN, EmrRoleArns=ROLE) == [GIVEN["EmrJobRoleArn"], ROLE]
    (passing,) = (s for s in statements(template["Resources"], "CheckRole") if "iam:PassRole" in actions(s))
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}


@pytest.mark.parametrize(
    ("parameters", "followed"),
    [
        ({}, [OWN]),
        (TWO_MORE, [OWN, "00one", "00two"]),
        ({**GIVEN, "EmrApplicationIds": "00one"}, ["00given", "00one"]),
    ],
)
def test_run_states_of_all_listed_applications_are_received(
    template: dict[str, Any], parameters: dict[str, str], followed: list[str]
) -> None:
    event = template["Resources"]["RunState"]["Properties"]["Events"]["RunStateEvent"]
    pattern = Resolver(template, MADE, **parameters)(event["Properties"]["Pattern"])
    assert pattern["detail"]["applicationId"] == followed


@pytest.mark.parametrize(
    ("parameters", "applications", "roles", "limits"),
    [
        ({}, (OWN,), (ROLE,), {OWN: 1}),
        (
            {**TWO_MORE, "EmrRoleArns": "arn:aws:iam::123456789012:role/x"},
            (OWN, "00one", "00two"),
            (ROLE, "arn:aws:iam::123456789012:role/x"),
            {OWN: 1},
        ),
        (
            {"EmrMaximumRuns": "8", "EmrRunLimits": "00one=3,00two=40"},
            (OWN,),
            (ROLE,),
            {OWN: 8, "00one": 3, "00two": 40},
        ),
        (GIVEN, ("00given",), (GIVEN["EmrJobRoleArn"],), {}),
        ({**GIVEN, "EmrRunLimits": "00given=15"}, ("00given",), (GIVEN["EmrJobRoleArn"],), {"00given": 15}),
    ],
)
def test_lambdas_have_the_applications_roles_and_limits(
    template: dict[str, Any],
    parameters: dict[str, str],
    applications: tuple[str, ...],
    roles: tuple[str, ...],
    limits: dict[str, int],
) -> None:
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    environment = Resolver(template, MADE, **parameters)(variables)
    made = Settings.from_environment(environment)
    assert (made.all_emr_applications, made.all_emr_roles, dict(made.emr_run_limits)) == (applications, roles, limits)
    assert (made.start_rate_per_second, made.start_burst) == (1.0, 20)


def test_emr_has_the_same_limit_of_runs_as_sluice(template: dict[str, Any]) -> None:
    resolve = Resolver(template, MADE, EmrMaximumRuns="7", EmrMaximumVcpu="112 vCPU", EmrMaximumMemory="448 GB")
    properties = resolve(template["Resources"]["EmrApplication"]["Properties"])
    assert properties["SchedulerConfiguration"] == {"MaxConcurrentRuns": "7", "QueueTimeoutMinutes": "360"}
    assert properties["MaximumCapacity"] == {"Cpu": "112 vCPU", "Memory": "448 GB"}
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    assert Settings.from_environment(resolve(variables)).emr_run_limits == ((OWN, 7),)


def test_an_application_in_china_has_no_queue(template: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS's announcement excludes China. Sluice's own limit holds all the same."""
    monkeypatch.setitem(PSEUDO, "AWS::Partition", "aws-cn")
    resolve = Resolver(template, MADE)
    assert "SchedulerConfiguration" not in resolve(template["Resources"]["EmrApplication"]["Properties"])
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    assert Settings.from_environment(resolve(variables)).emr_run_limits == ((OWN, 1),)


def test_the_default_run_limit_is_what_default_capacity_allows(template: dict[str, Any]) -> None:
    """A run of the usual size has a driver and three executors of 4 vCPUs. EMR fails runs beyond the capacity."""
    parameters = template["Parameters"]
    vcpus = int(parameters["EmrMaximumVcpu"]["Default"].partition(" ")[0])
    assert parameters["EmrMaximumRuns"]["Default"] == vcpus // 16


@pytest.mark.parametrize(
    ("parameter", "wrong"),
    [
        ("EmrApplicationIds", "00ok,00/jobruns"),
        ("EmrApplicationIds", "*"),
        ("EmrApplicationIds", "00one, 00two"),
        ("EmrApplicationIds", "00one,"),
        ("EmrRoleArns", "arn:aws:iam::123456789012:role/*"),
        ("EmrRoleArns", "arn:aws:iam::123456789012:user/me"),
        ("EmrRoleArns", "*"),
        ("EmrRunLimits", "00app=0"),
        ("EmrRunLimits", "00app"),
    ],
)
def test_an_invalid_list_is_refused(template: dict[str, Any], parameter: str, wrong: str) -> None:
    with pytest.raises(AssertionError, match="does not allow"):
        Resolver(template, MADE, **{parameter: wrong})
