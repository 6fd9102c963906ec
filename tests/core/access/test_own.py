"""What a namespace without a list may name in an installation with several namespaces (O14)."""

from __future__ import annotations

import pytest

from chalicelib.core.access import allowed
from chalicelib.core.access.allowed import RULES, Allowed, Installation, Kind, Named, check, own_arn
from chalicelib.core.access.queue_urls import queue_arn
from chalicelib.core.errors import SluiceError

ACCOUNT, OTHER = "123456789012", "210987654321"
SHARED = Installation(ACCOUNT, "", True, "00own", "s3://control/code/")
APPROACHES = {
    "queues": f"arn:aws:sqs:eu-west-1:{ACCOUNT}:{{}}",
    "topics": f"arn:aws:sns:eu-west-1:{ACCOUNT}:{{}}",
    "functions": f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:{{}}",
    "buses": f"arn:aws:events:eu-west-1:{ACCOUNT}:event-bus/{{}}",
    "state_machines": f"arn:aws:states:eu-west-1:{ACCOUNT}:stateMachine:{{}}",
    "execution_roles": f"arn:aws:iam::{ACCOUNT}:role/jobs/{{}}",
    "alarms": "{}",
    "metrics": "{}/Backlog",
}


def refused(kind: Kind, value: str, namespace: str = "demo", at: Installation = SHARED, **lists: list[str]) -> bool:
    try:
        check([Named(kind, value, "x")], Allowed.model_validate(lists) if lists else None, namespace, at)
    except SluiceError as error:
        assert error.hint is not None
        assert f"sluice allowed {namespace}" in error.hint
        return True
    return False


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("sluice-target-demo-orders", "demo"),
        ("sluice-target-demo-orders.fifo", "demo"),
        ("sluice-target-demo-b", "demo"),
        ("sluice-target-demo-b-orders", "demo-b"),
        ("sluice-target-demo-b-", "demo-b"),
        ("sluice-target-demo--b-orders", "demo"),
        ("sluice-target-demo--b--orders", "demo"),
        ("sluice-target-demo-b--orders-late", "demo-b"),
        ("sluice-target-demo_b-orders", "demo_b"),
        ("sluice-target-demo", ""),
        ("sluice-target-", ""),
        ("sluice-target--x", ""),
        ("sluice-demo-orders", ""),
        ("x-sluice-target-demo-orders", ""),
    ],
)
def test_o14_a_name_holds_the_name_of_one_namespace(name: str, owner: str) -> None:
    assert allowed.owner_of(name) == owner


@pytest.mark.parametrize("kind", APPROACHES)
def test_o14_a_namespace_reaches_what_holds_its_own_name(kind: Kind) -> None:
    for name in ("sluice-target-demo-orders", "sluice-target-demo--late-orders"):
        assert not refused(kind, APPROACHES[kind].format(name))
        assert refused(kind, APPROACHES[kind].format(name), "demo-b")
        assert refused(kind, APPROACHES[kind].format(name), "dem")
    for name in ("sluice-target-demo-b-orders", "sluice-target-demo-b--x", "sluice-target-orders", "orders", "demo"):
        assert refused(kind, APPROACHES[kind].format(name))
    assert not refused(kind, APPROACHES[kind].format("sluice-target-demo-b-orders"), "demo-b")


@pytest.mark.parametrize("kind", APPROACHES)
def test_o14_a_list_replaces_the_rule_of_names(kind: Kind) -> None:
    foreign = APPROACHES[kind].format("team-orders")
    assert not refused(kind, foreign, **{kind: [foreign]})
    assert refused(kind, APPROACHES[kind].format("sluice-target-demo-orders"), **{kind: []})
    assert refused(kind, foreign, hosts=["a.example.com"])


@pytest.mark.parametrize("kind", APPROACHES)
def test_o14_one_namespace_is_as_free_as_before(kind: Kind) -> None:
    alone = Installation(ACCOUNT, "", False, "00own", "s3://control/code/")
    assert not refused(kind, APPROACHES[kind].format("anything"), at=alone)


def test_o14_versions_and_aliases_are_no_part_of_a_name() -> None:
    function, machine = APPROACHES["functions"], APPROACHES["state_machines"]
    for qualified in ("sluice-target-demo-load:PROD", "sluice-target-demo-load:3"):
        assert not refused("functions", function.format(qualified))
        assert not refused("state_machines", machine.format(qualified))
    assert refused("functions", function.format("load:sluice-target-demo-load"))
    assert not refused("buses", own_arn("events", "event-bus/sluice-target-demo-orders"))
    assert refused("buses", own_arn("events", "event-bus/default"))
    url = f"https://sqs-fips.us-east-1.amazonaws.com/{ACCOUNT}/sluice-target-demo-orders.fifo"
    assert not refused("queues", queue_arn(url))


@pytest.mark.parametrize("kind", APPROACHES)
def test_o14_a_name_in_another_account_is_refused(kind: Kind) -> None:
    value = APPROACHES[kind].format("sluice-target-demo-orders")
    assert value == value.replace(ACCOUNT, OTHER) or refused(kind, value.replace(ACCOUNT, OTHER))


def test_o14_what_has_no_name_of_a_namespace_needs_a_list() -> None:
    assert refused("hosts", "hooks.example.com")
    assert not refused("hosts", "hooks.example.com", hosts=["hooks.example.com"])
    assert refused("applications", "00other")
    assert not refused("applications", "00own")
    assert refused("spark", "spark.jars.packages")
    assert not refused("spark", "spark.jars.packages", spark=["spark.jars.packages"])
    assert not refused("spark", "spark.sql.shuffle.partitions")
    assert not refused("spark", "spark.jars")


def test_o14_code_lies_in_the_folder_of_the_namespace() -> None:
    assert not refused("entry_points", "s3://control/code/demo/job.py")
    for other in (
        "s3://control/code/demo-b/job.py",
        "s3://control/code/demo/../demo-b/job.py",
        "s3://control/code/demo",
        "s3://control/code/{demo,x}/job.py",
        "s3://other/code/demo/job.py",
        "/usr/lib/x.jar",
    ):
        assert refused("entry_points", other)
    assert not refused("entry_points", "s3://team/jobs/job.py", entry_points=["s3://team/jobs/"])


def test_o14_secrets_and_prefixes_have_rules_of_their_own() -> None:
    assert not refused("secrets", own_arn("ssm", "parameter/sluice-target/demo/hook"))
    assert refused("secrets", own_arn("ssm", "parameter/sluice-target/demo-b/hook"))
    assert not refused("buckets", "s3://lake/raw/")


@pytest.mark.parametrize("kind", RULES)
def test_o14_a_refusal_says_what_is_expected_and_what_to_do(kind: Kind) -> None:
    if kind == "buckets":
        return
    with pytest.raises(SluiceError) as failure:
        check([Named(kind, "arn:aws:x:y:z:w" if kind != "spark" else "spark.x", "target.x")], None, "demo", SHARED)
    assert failure.value.field == "target.x"
    assert failure.value.message.startswith(f"expected a{'n' if RULES[kind].word[0] in 'aeiAE' else ''} ")
    assert f"can add it to {kind}: sluice allowed demo" in str(failure.value.hint)
