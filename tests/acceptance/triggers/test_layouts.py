"""Layouts of folders as other tools write them: padded, hyphenated, underscored and escaped (T7)."""

from __future__ import annotations

from typing import Any

from tests.acceptance.words import all_of, on, partition
from tests.support.backfills import begin, living
from tests.support.world import World, flights

AWS_LOGS = ["aws-account-id", "aws-service", "aws_region", "_hour"]
TRAIL = "raw/trail/aws-account-id=000123456789/aws-service=s3/aws_region=us-east-1/_hour=07/"


def app_of(schedules: dict[str, Any], **keys: list[str]) -> dict[str, Any]:
    """An app with these datasets, each with its keys."""
    datasets = {name: {"bucket": "lake", "prefix": f"raw/{name}/", "keys": each} for name, each in keys.items()}
    return flights(schedules) | {"datasets": datasets}


def test_t7_t19_keys_with_hyphens_reach_runs_correlation_and_backfills(world: World) -> None:
    world.deploy(app_of({"s": on(partition("trail"), by=["aws-account-id", "_hour"])}, trail=AWS_LOGS))
    world.upload(f"{TRAIL}part-0.json.gz")
    world.settle()
    [run] = world.runs("s")
    assert run.correlation == {"aws-account-id": "000123456789", "_hour": "07"}
    [event] = world.context(run)["events"]
    assert (event["partition"]["aws-service"], event["path"]) == ("s3", f"s3://lake-bucket/{TRAIL}")
    world.finish()

    begin(world, "s", partitions={"from": {"aws-account-id": "123456789"}})
    world.settle()
    assert living(world, "s") == ["000123456789/s3/us-east-1/07"]
