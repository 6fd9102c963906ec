"""``sluice hold``, ``release``, ``export`` and ``import`` on two stacks of moto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from chalicelib.flow.definitions import store
from sluice.cli import app
from tests.support import tables
from tests.support.world import World, flights

ROLE = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"},
                                                "Action": "sts:AssumeRole"}]}  # fmt: skip


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield


def stack(name: str) -> World:
    """A stack with two Lambdas and three tables, and a world on its tables."""
    names = tables.create(boto3.client("dynamodb"), name)
    variables = {f"SLUICE_{field.upper()}": value for field, value in names.items()}
    variables |= {"SLUICE_HINTS_QUEUE_URL": "https://sqs", "SLUICE_LAKE_BUCKET": f"{name}-lake"}
    variables |= {"SLUICE_CONTROL_BUCKET": f"{name}-control", "SLUICE_WAKE_SHARDS": "1"}
    function = {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Handler": "index.handler",
            "Runtime": "python3.11",
            "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            "Code": {"ZipFile": "def handler(event, context): pass"},
            "Timeout": 60,
            "Environment": {"Variables": variables},
        },
    }
    template = {
        "Resources": {
            "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": ROLE}},
            "Check": function,
            "Tick": function,
        },
        "Outputs": {"CheckFunction": {"Value": {"Ref": "Check"}}},
    }
    boto3.client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))
    return World(boto3.client("dynamodb"), names, wake_shards=1, history_shards=1)


def sluice(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        app(list(words))
    return int(str(ended.value.code or 0))


def functions(name: str) -> list[str]:
    found = boto3.client("cloudformation").list_stack_resources(StackName=name)["StackResourceSummaries"]
    return sorted(each["PhysicalResourceId"] for each in found if each["ResourceType"] == "AWS::Lambda::Function")


def reserved(name: str) -> list[int | None]:
    client = boto3.client("lambda")
    return [client.get_function_concurrency(FunctionName=each).get("ReservedConcurrentExecutions")
            for each in functions(name)]  # fmt: skip


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    world = stack("sluice-old")
    world.deploy(flights({}))
    return world


def test_o4_a_hold_keeps_what_was_reserved(source: World) -> None:
    client = boto3.client("lambda")
    client.put_function_concurrency(FunctionName=functions("sluice-old")[0], ReservedConcurrentExecutions=7)
    for _ in range(2):
        assert sluice("hold", "--stack", "sluice-old") == 0
        assert reserved("sluice-old") == [0, 0]
    assert sluice("release", "--stack", "sluice-old") == 0
    assert reserved("sluice-old") == [7, None]


@pytest.mark.parametrize("where", ["folder", "bucket"])
def test_l14_a_namespace_moves_from_stack_to_stack(source: World, where: str, tmp_path: Path, capsys: Any) -> None:
    new = stack("sluice-new")
    boto3.client("s3").create_bucket(Bucket="backups")
    place = str(tmp_path / "export") if where == "folder" else "s3://backups/sluice"
    assert sluice("hold", "--stack", "sluice-old") == 0
    assert sluice("export", "demo", "--to", place, "--stack", "sluice-old", "--move", "--yes") == 0
    assert sluice("import", place, "--stack", "sluice-new", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["closed"] and made["rows"]["Definition"] >= 6
    dataset = store.get(new.ports, "dataset", "demo.flights")
    assert dataset.document["bucket"] == "lake-bucket", "the world's own bucket is no bucket of the stack"
    assert source.ports.catalog.definition("namespace", "demo") is None


def test_l14_wrong_stacks_and_places_say_what_to_do(source: World, tmp_path: Path, capsys: Any) -> None:
    wrong = {
        ("export", "--to", str(tmp_path), "--stack", "none"): "cloudformation list-stacks",
        ("export", "--to", str(tmp_path), "--stack", "sluice-old", "--table", "job=x"): "--table jobs=NAME",
        ("export", "--to", "s3:/x", "--stack", "sluice-old"): "s3://backups",
        ("export", "--to", str(tmp_path), "--stack", "sluice-old", "--move", "--yes"): "sluice hold --stack sluice-old",
    }
    for words, hint in wrong.items():
        assert sluice(*words) == 2, words
        assert hint in capsys.readouterr().err, words
    assert sluice("import", str(tmp_path / "nothing"), "--stack", "sluice-old") == 1
    assert "run `sluice export`" in capsys.readouterr().err
