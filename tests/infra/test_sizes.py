"""Whether lists in parameters fit into policies, environments and patterns, before a deployment finds out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from infra import sizes
from infra.place import Place
from infra.stack import DeployError, Step

PLACE = Place("sluice-prod", "123456789012", "ap-southeast-2")
LISTS = ("applications", "roles", "limits")


def long_names(count: int) -> dict[str, str]:
    """As many applications and job roles, each role with a name of 60 characters, and a limit for each application."""
    applications = [f"00{number:014d}" for number in range(count)]
    return {
        "EmrApplicationIds": ",".join(applications),
        "EmrRunLimits": ",".join(f"{name}=1000" for name in applications),
        "EmrRoleArns": ",".join(role(number) for number in range(count)),
    }


def role(number: int) -> str:
    return f"arn:aws:iam::123456789012:role/{f'team-{number:02d}-spark-job-execution-role':x<60}"


def check(template: dict[str, Any], **parameters: str) -> list[Step]:
    """The steps that a check has reported."""
    steps: list[Step] = []
    sizes.check(template, parameters, PLACE, steps.append)
    return steps


def used(template: dict[str, Any], what: str, **parameters: str) -> int:
    [found] = [each.used for each in sizes.sizes(template, parameters, PLACE) if each.what == what]
    return found


def test_the_defaults_fit(template: dict[str, Any]) -> None:
    assert check(template) == []
    named = {each.what for each in sizes.sizes(template, {}, PLACE)}
    assert {"the policies of CheckRole", "the environment of the Lambda APIHandler"} <= named
    assert {"an event pattern of RunState", "an event pattern of CustomEventsRule"} <= named


def test_o7_names_that_do_not_fit_are_refused_with_what_to_do(template: dict[str, Any]) -> None:
    assert len(role(7).rpartition("/")[2]) == 60
    fitting = [count for count in range(40) if fits(template, long_names(count))]
    assert fitting == list(range(len(fitting))), "fewer entries fit whenever more do"
    assert 10 <= len(fitting) - 1 < 25, "docs/deployment.md names a number"
    with pytest.raises(DeployError) as refused:
        check(template, **long_names(25))
    said = str(refused.value)
    assert re.match(
        r"expected at most (4,096|10,240) characters in the (environment|policies) of [\w ]+, got [\d,]+: ", said
    )
    assert "EmrRoleArns (" in said
    assert "Name fewer entries there, or shorter ones" in said


def fits(template: dict[str, Any], parameters: dict[str, str]) -> bool:
    return all(each.used <= each.limit for each in sizes.sizes(template, parameters, PLACE))


KNOWN = {"Ref", "Fn::GetAtt", "Fn::If", "Fn::Join", "Fn::Split", "Fn::Sub", "Fn::Not", "Fn::And", "Fn::Equals"}


def test_every_function_of_the_template_is_known(template: dict[str, Any]) -> None:
    """A branch of a condition is resolved only with the parameters that choose it."""
    unknown = {name for name in functions({**template, "Rules": {}}) if name not in KNOWN}
    assert not unknown, "add them to infra/resolver.py"


def functions(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from functions(each)
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref")):
            yield next(iter(value))
        for each in value.values():
            yield from functions(each)


def test_a_policy_that_is_attached_to_a_role_counts(template: dict[str, Any]) -> None:
    """Roles of targets are in a policy of their own, which counts together with the role's others."""
    before = used(template, "the policies of CheckRole")
    after = used(template, "the policies of CheckRole", TargetRoleArns=role(1))
    assert after > before + len(role(1))


def test_white_space_in_a_policy_is_not_counted(template: dict[str, Any]) -> None:
    assert sizes._dense({"Sid": "a", "Action": ["b", "c"]}) == '{"Sid":"a","Action":["b","c"]}'


def test_addresses_in_china_count_with_their_longer_domain(template: dict[str, Any]) -> None:
    def environment(partition: str) -> int:
        place = Place("sluice-prod", "123456789012", "cn-northwest-1", partition)
        found = sizes.sizes(template, {}, place)
        return next(each.used for each in found if each.what == "the environment of the Lambda APIHandler")

    in_china, elsewhere = environment("aws-cn"), environment("aws")
    text = json.dumps(template["Globals"]["Function"]["Environment"])
    assert in_china - elsewhere >= 3 * text.count("Queue")


def test_the_environment_counts_as_one_json_text(template: dict[str, Any]) -> None:
    """Lambda's refusal shows the text that it measured."""
    before = used(template, "the environment of the Lambda Tick")
    assert used(template, "the environment of the Lambda Tick", EmrRoleArns="x" * 100) == before + 100
    shared = template["Globals"]["Function"]["Environment"]["Variables"]
    assert before > len(json.dumps(sorted(shared)))


def test_more_buckets_than_a_rule_holds_by_default_are_named(template: dict[str, Any]) -> None:
    """An account may have a larger quota, so the deployment goes on."""
    buckets = [f"{number:02d}-{'b' * 57}" for number in range(36)]
    assert check(template, WatchedBuckets=",".join(buckets[:20])) == []
    [step] = check(template, WatchedBuckets=",".join(buckets))
    assert step.status == "WARNING"
    assert step.reason.startswith("expected at most 2,048 characters in an event pattern of ")
    assert "WatchedBuckets (" in step.reason
    assert "ask AWS for a larger quota (Service Quotas, EventBridge, Event pattern size)" in step.reason


def test_only_parameters_that_make_it_large_are_named(template: dict[str, Any]) -> None:
    with pytest.raises(DeployError) as refused:
        check(template, **long_names(40), Stage="prod", CheckConcurrency="100")
    assert "CheckConcurrency" not in str(refused.value)
