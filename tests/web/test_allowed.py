"""The routes of allow-lists: who changes them, who reads them, and what they refuse (O10)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.web.routes import access, definitions
from tests.web.conftest import APP, NS, Api
from tests.web.signed import Signer, authorizing, member, role

ADMIN = Signer(role("platform"))
BOSS = Signer(role("boss"))
TARGET_ROLE = "arn:aws:iam::123456789012:role/sluice-target-demo"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:team-a-*"
TARGET = {"type": "sqs", "queue_url": "https://sqs.eu-west-1.amazonaws.com/123456789012/team-b"}


@pytest.fixture
def enforced(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    authorizing(monkeypatch, "enforce")
    ADMIN.send("PUT", f"{NS}/access", {"members": [{"member": member("boss"), "roles": ["admin"]}]})
    return api


@pytest.mark.usefixtures("enforced")
def test_only_platform_administrators_change_the_list() -> None:
    error = BOSS.error("PUT", f"{NS}/allowed", {"queues": [QUEUE]})
    assert error["code"] == "forbidden"
    assert error["message"].startswith("expected an administrator of the installation, to change what the namespace")
    assert ADMIN.send("PUT", f"{NS}/allowed", {"queues": [QUEUE]})[0] == 201
    status, view = BOSS.send("GET", f"{NS}/allowed")
    assert (status, view["queues"], view["version"]) == (200, [QUEUE], 1)
    assert view["updated_by"] == "arn:aws:sts::123456789012:assumed-role/platform/ada"
    assert Signer(role("stranger")).status("GET", f"{NS}/allowed") == 404


def test_a_namespace_without_a_list_says_what_holds(api: Api) -> None:
    error = api.refused(404, "GET", f"{NS}/allowed")
    assert error["hint"].startswith("without one, the namespace may use what the parameters of the stack allow, and ")
    assert error["hint"].endswith("sluice allowed demo --propose")


def test_a_workflow_outside_the_list_is_not_stored(api: Api) -> None:
    api.put(f"{NS}/allowed", {"queues": [QUEUE]})
    error = api.refused(400, "PUT", f"{APP}/workflows/w", {"target": TARGET})
    assert error["field"] == "target.queue_url"
    api.refused(404, "GET", f"{APP}/workflows/w")


def test_a_bad_pattern_names_its_field_and_an_example(api: Api) -> None:
    error = api.refused(400, "PUT", f"{NS}/allowed", {"queues": ["arn:aws:sqs:*:*:x"]})
    assert error["field"] == "queues.0"
    assert "arn:aws:sqs:eu-west-1:123456789012:team-a-*" in error["message"]


def test_a_stale_version_of_a_list_is_not_replaced(api: Api) -> None:
    api.put(f"{NS}/allowed", {"queues": [QUEUE]})
    api.put(f"{NS}/allowed", {"queues": []}, if_match='"1"')
    api.refused(412, "PUT", f"{NS}/allowed", {}, if_match='"1"')


@pytest.mark.usefixtures("enforced")
def test_o10_only_a_platform_administrator_names_a_target_role(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = access.ports()
    settings = replace(checked.settings, target_role_arns=("arn:aws:iam::123456789012:role/sluice-target-*",))
    monkeypatch.setattr(access, "ports", lambda: replace(checked, settings=settings))
    assert BOSS.error("PUT", f"{NS}/allowed", {"target_role": TARGET_ROLE})["code"] == "forbidden"
    assert ADMIN.send("PUT", f"{NS}/allowed", {"target_role": TARGET_ROLE})[0] == 201
    assert BOSS.send("GET", f"{NS}/allowed")[1]["target_role"] == TARGET_ROLE
    [record] = [each for each in ADMIN.send("GET", f"{NS}/audit")[1]["items"] if each["operation"] == "put_allowed"]
    assert record["after"]["document"]["target_role"] == TARGET_ROLE
    assert ADMIN.send("PUT", f"{NS}/allowed", {})[0] == 200
    assert "target_role" not in BOSS.send("GET", f"{NS}/allowed")[1]


@pytest.mark.parametrize("arn", ["arn:aws:iam::123456789012:role/a*", "arn:aws:iam::123456789012:user/a", "a", ""])
def test_o10_a_target_role_is_the_arn_of_one_role(api: Api, arn: str) -> None:
    error = api.refused(400, "PUT", f"{NS}/allowed", {"target_role": arn})
    assert error["field"] == "target_role"
    assert error["message"].startswith("expected the ARN of an IAM role, such as ")


def test_o10_without_the_parameter_no_role_is_allowed(api: Api) -> None:
    error = api.refused(400, "PUT", f"{NS}/allowed", {"target_role": TARGET_ROLE})
    assert error["field"] == "target_role"
    assert error["message"].startswith("expected a role that TargetRoleArns of the stack names (none)")


# What the documents of `conftest.installation` use, and the queue of another workflow.
PROPOSED = {
    "execution_roles": ["arn:aws:iam::123456789012:role/job"],
    "entry_points": ["s3://code/clean.py"],
    "queues": ["arn:aws:sqs:eu-west-1:123456789012:team-b", "arn:aws:sqs:us-east-1:123456789012:target"],
}


@pytest.fixture
def limited(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    """An installation that enforces roles, knows its account, and has a namespace with one workflow."""
    api.put(f"{APP}/workflows/w", {"target": TARGET})
    authorizing(monkeypatch, "enforce")
    checked = access.ports()
    settings = replace(checked.settings, account="123456789012")
    for module in (access, definitions):
        monkeypatch.setattr(module, "ports", lambda: replace(checked, settings=settings))
    return api


@pytest.mark.usefixtures("limited")
def test_o14_a_second_namespace_waits_for_the_first_list() -> None:
    second = "/v1/namespaces/second"
    for target in (f"{second}?dry_run=true", second):
        error = ADMIN.error("PUT", target, {})
        assert error["code"] == "conflict"
        assert "target.queue_url of workflow demo.flights.w" in error["message"]
        assert error["hint"].endswith("sluice allowed demo --propose")
    assert ADMIN.status("GET", second) == 404
    status, view = ADMIN.send("GET", f"{NS}/allowed/proposal")
    assert (status, view["complete"], view["left_out"]) == (200, True, [])
    assert view["allowed"] == PROPOSED
    [use] = [each for each in view["refused"] if each["document"] == "workflow demo.flights.w"]
    assert use["field"] == "target.queue_url"
    assert use["why"].startswith("expected a queue of namespace demo, named sluice-target-demo-<one word>")
    assert ADMIN.send("PUT", f"{NS}/allowed", view["allowed"])[0] == 201
    assert ADMIN.send("PUT", f"{second}?dry_run=true", {})[0] == 200
    assert ADMIN.status("GET", second) == 404
    assert ADMIN.send("PUT", second, {})[0] == 201
    assert ADMIN.send("PUT", f"{second}?dry_run=true", {"description": "x"}) == (
        200, {"name": "second", "kind": "namespace", "did": "replaced", "version": 2}
    )  # fmt: skip


@pytest.mark.usefixtures("limited")
def test_o14_beside_another_a_workflow_names_its_own_queues() -> None:
    ADMIN.send("PUT", f"{NS}/allowed", PROPOSED)
    assert ADMIN.send("PUT", "/v1/namespaces/second", {})[0] == 201
    assert ADMIN.send("PUT", "/v1/namespaces/second/apps/x", {})[0] == 200
    path = "/v1/namespaces/second/apps/x/workflows/w"
    assert ADMIN.error("PUT", path, {"target": TARGET})["field"] == "target.queue_url"
    own = TARGET | {"queue_url": TARGET["queue_url"].replace("team-b", "sluice-target-second-orders")}
    assert ADMIN.send("PUT", path, {"target": own})[0] == 201


@pytest.mark.usefixtures("enforced")
def test_o14_admins_of_a_namespace_read_the_proposal() -> None:
    assert BOSS.send("GET", f"{NS}/allowed/proposal")[1]["name"] == "demo"
    assert Signer(role("stranger")).status("GET", f"{NS}/allowed/proposal") == 404
