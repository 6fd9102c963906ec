"""The capacity settings of the template: shares of the account, memory, warm tables; and the protection of tables."""

from typing import Any

import botocore.loaders
import pytest

from benchmarks.aws_model.region import WARM_TABLES
from chalicelib.settings import Settings

from .conftest import of_type

NONE = {"Ref": "AWS::NoValue"}


@pytest.mark.parametrize(
    ("function", "condition", "parameter"),
    [
        ("Tick", "TickIsReserved", "TickReservedConcurrency"),
        ("Check", "CheckIsReserved", "CheckReservedConcurrency"),
        ("Burst", "BurstIsReserved", "BurstReservedConcurrency"),
        ("APIHandler", "ApiIsCapped", "ApiConcurrency"),
    ],
)
def test_shares_of_the_account_are_reserved_only_on_request(
    template: dict[str, Any], function: str, condition: str, parameter: str
) -> None:
    reserved = template["Resources"][function]["Properties"]["ReservedConcurrentExecutions"]
    assert reserved == {"Fn::If": [condition, {"Ref": parameter}, NONE]}
    assert template["Conditions"][condition] == {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, "0"]}]}
    assert template["Parameters"][parameter]["Default"] == 0, "a new account has nothing to reserve of"


def test_the_memory_of_each_lambda_is_a_parameter(template: dict[str, Any]) -> None:
    memory = {
        name: p["MemorySize"]["Fn::If"] for name, p in of_type(template["Resources"], "AWS::Serverless::Function")
    }
    assert {name: asked[2] for name, asked in memory.items()} == {
        "APIHandler": {"Ref": "ApiMemory"},
        "Tick": {"Ref": "TickMemory"},
        "Check": {"Ref": "CheckMemory"},
        "Burst": {"Ref": "BurstMemory"},
        **{name: {"Ref": "EventMemory"} for name in ("Objects", "RunState", "Custom", "Lake", "Lineage")},
    }
    for emulated, local, asked in memory.values():
        assert emulated == "ApiIsEmulated"
        assert template["Parameters"][asked["Ref"]]["Default"] == local


def test_e9_pollers_of_bursts_are_provisioned_only_on_request(template: dict[str, Any]) -> None:
    """Lambda takes a maximum of concurrency or provisioned pollers, and refuses both."""
    source = template["Resources"]["Burst"]["Properties"]["Events"]["BurstSqsEventSource"]["Properties"]
    provisioned = {"MinimumPollers": {"Ref": "BurstMinimumPollers"}, "MaximumPollers": {"Ref": "BurstMaximumPollers"}}
    assert source["ProvisionedPollerConfig"] == {"Fn::If": ["BurstPollersAreProvisioned", provisioned, NONE]}
    assert source["ScalingConfig"]["Fn::If"][:2] == ["BurstPollersAreProvisioned", NONE]
    least, most = (template["Parameters"][f"Burst{which}Pollers"] for which in ("Minimum", "Maximum"))
    assert (least["Default"], least["MinValue"], least["MaxValue"]) == (0, 0, 200)
    assert (most["Default"], most["MinValue"], most["MaxValue"]) == (10, 2, 2000)
    given = botocore.loaders.Loader().load_service_model("lambda", "service-2")["shapes"]
    assert given["MinimumNumberOfPollers"]["max"] == least["MaxValue"]
    assert given["MaximumNumberOfPollers"]["max"] >= most["MaxValue"]


@pytest.mark.parametrize("table", WARM_TABLES)
def test_a_warm_table_has_warm_indexes(resources: dict[str, Any], table: str) -> None:
    """A cold index would throttle the writes of its table."""
    properties = resources[table]["Properties"]
    units = {"ReadUnitsPerSecond": {"Ref": "WarmReadUnits"}, "WriteUnitsPerSecond": {"Ref": "WarmWriteUnits"}}
    for each in (properties, *properties["GlobalSecondaryIndexes"]):
        assert each["WarmThroughput"] == {"Fn::If": ["TablesAreWarm", units, NONE]}


@pytest.mark.parametrize(("parameter", "field"), [("WakeShards", "wake_shards"), ("HistoryShards", "history_shards")])
def test_shards_are_parameters_that_begin_with_the_default(
    template: dict[str, Any], parameter: str, field: str
) -> None:
    given = template["Parameters"][parameter]
    assert given["Default"] == given["MinValue"] == Settings.__dataclass_fields__[field].default
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    assert variables[f"SLUICE_{field.upper()}"] == {"Ref": parameter}


def test_tables_are_protected_unless_the_stage_is_temporary(template: dict[str, Any]) -> None:
    assert template["Parameters"]["DeletionProtection"]["Default"] == "true"
    kept = [
        {"Fn::Equals": [{"Ref": "DeletionProtection"}, "true"]},
        {"Fn::Equals": [{"Ref": "DataRetention"}, "Retain"]},
    ]
    assert template["Conditions"]["TablesAreProtected"] == {"Fn::And": kept}
    for _, properties in of_type(template["Resources"], "AWS::DynamoDB::Table"):
        assert properties["DeletionProtectionEnabled"] == {"Fn::If": ["TablesAreProtected", True, False]}
