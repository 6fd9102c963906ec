"""Sluice's own app is deployed through its own API, and a late day starts its compaction (H3)."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest

from chalicelib.core.history.lines import LATE_SLOT
from chalicelib.core.instants import SECOND, duration
from infra import system_app
from infra.system_app import ROOT
from sluice.client import Document
from tests.web.conftest import Api

OUTPUTS = {"LakeBucket": "lake-bucket", "ControlBucket": "control"}
APP = "/v1/namespaces/system/apps/history"


class Wire:
    """The one method of the client that is needed, on the API in this process."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def put(self, path: str, body: Document) -> Document:
        answer: Document = self.api.put(path, body)
        return answer


@pytest.fixture
def installed(empty: Api) -> Any:
    return system_app.install(boto3.client("s3"), OUTPUTS, Wire(empty))


def test_h3_sluice_schedules_its_own_history(empty: Api, installed: Any) -> None:
    schedules = {each["name"]: each for each in empty.get(f"{APP}/schedules")["items"]}
    assert {name.rpartition(".")[2]: one["triggered_by"] for name, one in schedules.items()} == {
        "compact": schedules["system.history.compact"]["triggered_by"],
        "compact_late": "1 partition of system.late",
        "report": "system.history.compact reaching COMPLETED",
    }
    assert all(one["enabled"] for one in schedules.values())
    assert "01:10" in schedules["system.history.compact"]["triggered_by"]


def test_h3_the_late_compaction_waits_for_the_whole_slot(empty: Api, installed: Any) -> None:
    """A partition of late days counts once. So all late lines under the same partition must be written before its days
    are compacted.
    """
    (late,) = [each for each in empty.get(f"{APP}/schedules")["items"] if each["name"] == "system.history.compact_late"]
    (waits,) = [duration(each["after"]) for each in late["constraints"] if each["type"] == "delay"]
    configured = json.loads((ROOT / ".chalice/config.json").read_text())["stages"]["sluice"]
    assert LATE_SLOT + configured["lambda_functions"]["lake"]["lambda_timeout"] * SECOND < waits


def test_h3_every_file_of_the_system_jobs_is_in_control_bucket(empty: Api, installed: Any) -> None:
    s3 = boto3.client("s3")
    stored = {f"s3://control/{each['Key']}" for each in s3.list_objects_v2(Bucket="control")["Contents"]}
    for name in ("compact", "report"):
        target = empty.get(f"{APP}/workflows/{name}")["target"]
        assert {target["entry_point"], *target["py_files"]} <= stored


def test_h3_deploying_the_system_app_again_changes_nothing(empty: Api, installed: Any) -> None:
    before = {each["name"]: each["version"] for each in empty.get(f"{APP}/schedules")["items"]}
    report = system_app.install(boto3.client("s3"), OUTPUTS, Wire(empty))
    assert report["created"] == [] and report.get("replaced", []) == []
    assert {each["name"]: each["version"] for each in empty.get(f"{APP}/schedules")["items"]} == before
