# ruff: noqa: F811 - a test's argument is the fixture that is imported
"""The deployed template on the local cloud: signatures, messages, policies and rules behave as they do in AWS."""

import json
import os
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from infra.local import cloud as local_cloud
from infra.local.endpoints import Endpoints
from infra.local.layout import Layout
from infra.local.rollout import STACK

# Imported, so that it replaces the fixture of this name in conftest.py, which is only an S3.
from tests.support.cloud import cloud  # noqa: F401 - a fixture

pytestmark = pytest.mark.cloud


def test_a_signed_request_is_answered(cloud: Endpoints) -> None:
    status, body = local_cloud.signed(cloud, "GET", "/v1/health")
    assert (status, json.loads(body)["status"]) == (200, "ok")


def test_an_unsigned_request_is_refused(cloud: Endpoints) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(cloud.api_url + "/v1/health")
    assert refused.value.code == 403


def test_a_wrong_signature_is_refused(cloud: Endpoints) -> None:
    status, body = local_cloud.signed(cloud, "GET", "/v1/health", secret_key="not-the-secret")
    assert status == 403
    assert b"signature" in body


def test_the_stack_names_what_users_need(cloud: Endpoints) -> None:
    assert {"ApiUrl", "LakeBucket", "ControlBucket", "CatalogTable", "JobsTable", "RunsTable"} < set(cloud.outputs)
    found = cloud.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]
    assert found["StackStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE")


def test_a_shell_can_source_the_endpoints_file(cloud: Endpoints) -> None:
    names = sorted(cloud.environment())
    script = f'. "{Layout().endpoints}" && printf "%s\\n" ' + " ".join(f'"${name}"' for name in names)
    done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert done.stdout.splitlines() == [cloud.environment()[name] for name in names]


def test_a_second_up_changes_nothing_in_the_cloud(cloud: Endpoints) -> None:
    again = local_cloud.up()
    assert (again.started, again.stack, again.endpoints) == (False, "unchanged", cloud)


def test_all_ports_are_on_the_loopback_interface(cloud: Endpoints) -> None:
    if not Path("/proc/net/tcp").exists():
        pytest.skip("listening sockets are read from /proc, which this system has not")
    ports = {int(url.rsplit(":", 1)[1]) for url in (cloud.aws_url, cloud.emr_url)}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {(row[1].split(":")[0], int(row[1].split(":")[1], 16)) for row in rows if row[3] == "0A"}
    assert {address for address, port in listening if port in ports} == {"0100007F"}


@pytest.mark.parametrize(
    ("action", "resource", "decision"),
    [
        ("dynamodb:GetItem", "arn:aws:dynamodb:us-east-1:000000000000:table/{JobsTable}", "allowed"),
        ("dynamodb:Query", "arn:aws:dynamodb:us-east-1:000000000000:table/{JobsTable}/index/wake", "allowed"),
        ("dynamodb:Scan", "arn:aws:dynamodb:us-east-1:000000000000:table/{JobsTable}", "implicitDeny"),
        ("s3:PutObject", "arn:aws:s3:::{LakeBucket}/x", "implicitDeny"),
    ],
)
def test_policies_are_enforced_as_deployed(cloud: Endpoints, action: str, resource: str, decision: str) -> None:
    """The emulator decides every call of a Lambda by these roles, so a developer's machine shows a
    missing permission.
    """
    iam = cloud.client("iam")
    (tick,) = (r["Arn"] for r in iam.list_roles()["Roles"] if r["RoleName"].startswith(f"{STACK}-TickRole"))
    named = resource.format(**cloud.outputs)
    done = iam.simulate_principal_policy(PolicySourceArn=tick, ActionNames=[action], ResourceArns=[named])
    assert [r["EvalDecision"] for r in done["EvaluationResults"]] == [decision]


def test_the_queues_are_mapped_with_partial_batch_answers(cloud: Endpoints) -> None:
    functions = {f"{STACK}-objects", f"{STACK}-check", f"{STACK}-burst"}
    listed = cloud.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    mappings = [m for m in listed if m["FunctionArn"].rsplit(":", 1)[1] in functions]
    assert {m["FunctionArn"].rsplit(":", 1)[1] for m in mappings} == functions
    assert all(m["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for m in mappings)
    assert all(m["State"] == "Enabled" for m in mappings)


def test_rows_expire_in_the_local_cloud(cloud: Endpoints) -> None:
    for table in ("CatalogTable", "JobsTable", "RunsTable"):
        found = cloud.client("dynamodb").describe_time_to_live(TableName=cloud.outputs[table])
        assert found["TimeToLiveDescription"] == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}
