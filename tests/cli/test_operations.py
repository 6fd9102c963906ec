"""``sluice freeze``, ``unfreeze``, ``export`` and ``import`` on two stacks of moto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from chalicelib.core.limits.permits import Slots
from chalicelib.core.limits.writes import AcquirePermit
from chalicelib.core.rows.definition import Definition
from chalicelib.flow.definitions import store
from sluice.cli import app
from tests.support import tables
from tests.support.schedules import partitions
from tests.support.world import World, day, flights

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
    boto3.client("s3").create_bucket(Bucket="lake-bucket")
    world.deploy(flights({}))
    return world


def test_o4_a_freeze_keeps_what_was_reserved(source: World) -> None:
    client = boto3.client("lambda")
    client.put_function_concurrency(FunctionName=functions("sluice-old")[0], ReservedConcurrentExecutions=7)
    for _ in range(2):
        assert sluice("freeze", "--stack", "sluice-old") == 0
        assert reserved("sluice-old") == [0, 0]
    assert sluice("unfreeze", "--stack", "sluice-old") == 0
    assert reserved("sluice-old") == [7, None]


def test_l14_an_import_replaces_the_buckets_that_it_is_told(source: World, tmp_path: Path) -> None:
    new = stack("sluice-new")
    place = str(tmp_path / "export")
    assert sluice("freeze", "--stack", "sluice-old") == 0
    assert sluice("export", "demo", "--to", place, "--stack", "sluice-old") == 0
    replaced = ("--bucket", "lake-bucket=other", "--copy")
    assert sluice("import", place, "--stack", "sluice-new", *replaced) == 0
    assert store.get(new.ports, "dataset", "demo.flights").document["bucket"] == "other"


@pytest.mark.parametrize("where", ["folder", "bucket"])
def test_l14_a_namespace_moves_from_stack_to_stack(source: World, where: str, tmp_path: Path, capsys: Any) -> None:
    new = stack("sluice-new")
    boto3.client("s3").create_bucket(Bucket="backups")
    place = str(tmp_path / "export") if where == "folder" else "s3://backups/sluice"
    assert sluice("freeze", "--stack", "sluice-old") == 0
    assert sluice("export", "demo", "--to", place, "--stack", "sluice-old", "--move", "--yes") == 0
    assert sluice("import", place, "--stack", "sluice-new", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["closed"] and made["rows"]["Definition"] >= 6
    dataset = store.get(new.ports, "dataset", "demo.flights")
    assert dataset.document["bucket"] == "lake-bucket", "the world's own bucket is no bucket of the stack"
    assert source.ports.rows.get(Definition, "namespace", "demo") is None


def test_l14_wrong_stacks_and_places_say_what_to_do(source: World, tmp_path: Path, capsys: Any) -> None:
    moved = ("export", "--to", str(tmp_path), "--stack", "sluice-old", "--move", "--yes")
    wrong = {
        ("export", "--to", str(tmp_path), "--stack", "none"): "cloudformation list-stacks",
        ("export", "--to", str(tmp_path), "--stack", "sluice-old", "--table", "job=x"): "--table jobs=NAME",
        ("export", "--to", "s3:/x", "--stack", "sluice-old"): "s3://backups",
        moved: "sluice freeze --stack sluice-old",
    }
    for words, hint in wrong.items():
        assert sluice(*words) == 2, words
        assert hint in capsys.readouterr().err, words
    assert sluice("import", str(tmp_path / "nothing"), "--stack", "sluice-old") == 1
    assert "run `sluice export`" in capsys.readouterr().err


def test_o4_a_repair_needs_a_frozen_installation(source: World, capsys: Any) -> None:
    words = ("repair", "--stack", "sluice-old", "--restored-to", "2026-03-02T12:00:00Z")
    assert sluice(*words) == 2
    assert "sluice freeze --stack sluice-old" in capsys.readouterr().err
    assert sluice(*words, "--unknown", "forget") == 2
    assert "expected adopt, cancel or leave, got forget" in capsys.readouterr().err
    assert sluice(*words, "--dry-run") == 0
    assert "nothing was changed" in capsys.readouterr().err


def test_o4_a_repair_says_what_it_mends(source: World, capsys: Any) -> None:
    """A limit that counts a run which no table has. The objects of the lake are compared, too."""
    name = "workflow:demo.flights.clean"
    source.ports.ledger.commit([AcquirePermit(Slots(name, 2), 0, source.limit_state(name), False)])
    assert source.limit_state(name).active == 1
    assert sluice("freeze", "--stack", "sluice-old") == 0
    assert sluice("repair", "--stack", "sluice-old", "--restored-to", "2026-03-02T12:00:00Z", "--json") == 0
    found = json.loads(capsys.readouterr().out)["items"]
    assert {"kind": "limit", "name": name, "done": "recounted: 0 in use instead of 1"} in found
    assert source.limit_state(name).active == 0


def test_o4_the_procedure_after_a_loss_is_rehearsed(source: World, tmp_path: Path, capsys: Any) -> None:
    """The steps of docs/operations.md, in order. A partition comes, the rows are lost, and its run starts elsewhere."""
    source.put("daily", partitions())
    source.upload(day(1))
    client, tables_of, again = boto3.client("dynamodb"), ("catalog", "jobs", "runs"), stack("sluice-again")
    assert sluice("freeze", "--stack", "sluice-old") == 0
    words = []
    for table in tables_of:
        name = getattr(source.ports.settings, f"{table}_table")
        client.restore_table_to_point_in_time(
            SourceTableName=name, TargetTableName=f"restored-{table}", UseLatestRestorableTime=True
        )
        words += ["--table", f"{table}=restored-{table}"]
    place = str(tmp_path / "restored")
    assert sluice("freeze", "--stack", "sluice-again") == 0
    assert sluice("export", "--to", place, "--stack", "sluice-old", *words) == 0
    assert sluice("import", place, "--stack", "sluice-again", "--copy") == 0
    repaired = ("repair", "--stack", "sluice-again", "--restored-to", "2026-03-02T11:59:00Z")
    capsys.readouterr()
    assert sluice(*repaired, "--dry-run", "--json") == 0
    found = json.loads(capsys.readouterr().out)["items"]
    assert sluice(*repaired, "--json") == 0
    assert json.loads(capsys.readouterr().out)["items"] == found
    assert [each["kind"] for each in found] == ["outboxes"]
    assert sluice("unfreeze", "--stack", "sluice-again") == 0
    again.pass_by("2m")
    assert [run.state for run in again.runs("daily")] == ["STARTING"]
    again.finish()
    assert [run.state for run in again.runs("daily")] == ["SUCCEEDED"]
