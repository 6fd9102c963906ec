"""The measurements of load constraints in AWS, on moto (C6)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto import mock_aws

from chalicelib.aws.targets.meters import Meters
from chalicelib.core.targets.answers import NoAnswer

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def meters() -> Meters:
    return Meters(lambda name: boto3.client(name, region_name="us-east-1"), lambda: round(NOW.timestamp() * 1000))


def metric(name: str) -> dict[str, Any]:
    dimensions = {"Database": "lake"}
    answer = {"namespace": "Ours", "metric": name, "dimensions": dimensions, "statistic": "Average", "period": 60}
    return {"cloudwatch": answer}


@mock_aws
def test_c6_a_meter_reads_newest_metric_value_and_free_addresses() -> None:
    client = boto3.client("cloudwatch", region_name="us-east-1")
    for minutes, value in ((5, 80.0), (2, 30.0)):
        point = {
            "MetricName": "CPU",
            "Dimensions": [{"Name": "Database", "Value": "lake"}],
            "Timestamp": NOW - timedelta(minutes=minutes),
            "Value": value,
        }
        client.put_metric_data(Namespace="Ours", MetricData=[point])
    assert meters().measure(metric("CPU")) == 30.0

    ec2 = boto3.client("ec2", region_name="us-east-1")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]
    assert meters().measure({"subnet": subnet["SubnetId"]}) == 251.0


@mock_aws
def test_c6_a_missing_metric_has_no_value_and_no_traceback() -> None:
    assert meters().measure(metric("Gone")) == NoAnswer("CloudWatch has no value of the metric")
    refused = meters().measure({"subnet": "subnet-0123456789abcdef0"})
    assert isinstance(refused, NoAnswer)
    assert "InvalidSubnetID.NotFound" in refused.why
    missing = meters().measure({"emr_application": "00nothing"})
    assert isinstance(missing, NoAnswer)
    assert "ResourceNotFoundException" in missing.why


@mock_aws
def test_c6_an_idle_application_uses_nothing_of_its_capacity() -> None:
    emr = boto3.client("emr-serverless", region_name="us-east-1")
    capacity = {"cpu": "400 vCPU", "memory": "3000 GB"}
    made = emr.create_application(releaseLabel="emr-7.0.0", type="SPARK", maximumCapacity=capacity)
    assert meters().measure({"emr_application": made["applicationId"]}) == 0.0


class PublishedByEmr:
    """CloudWatch with metrics of EMR Serverless. moto has no search expressions."""

    def __init__(self, vcpus: dict[str, float]) -> None:
        self.vcpus = vcpus

    def get_metric_data(self, MetricDataQueries: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        [query] = MetricDataQueries
        asked = re.fullmatch(
            r"""MAX\(SEARCH\('Namespace="AWS/EMRServerless" MetricName="CPUAllocated" ApplicationId="(\w+)"', """
            r"""'Maximum', 60\)\)""",
            query["Expression"],
        )
        assert asked, query
        found = self.vcpus.get(asked[1])
        return {"MetricDataResults": [{"Id": query["Id"], "Values": [] if found is None else [found]}]}


@mock_aws
@pytest.mark.parametrize(("most", "used"), [({"cpu": "400 vCPU", "memory": "3000 GB"}, 0.4), (None, 160.0)])
def test_c6_vcpus_in_use_are_a_share_of_the_application_maximum(most: dict[str, str] | None, used: float) -> None:
    """An application without a maximum is measured in vCPUs."""
    emr = boto3.client("emr-serverless", region_name="us-east-1")
    limited = {"maximumCapacity": most} if most else {}
    busy, idle = (emr.create_application(releaseLabel="emr-7.0.0", type="SPARK", **limited) for _ in range(2))
    clients = {"emr-serverless": emr, "cloudwatch": PublishedByEmr({busy["applicationId"]: 160.0})}
    measured = Meters(clients.__getitem__, lambda: round(NOW.timestamp() * 1000))
    assert measured.measure({"emr_application": busy["applicationId"]}) == used
    assert measured.measure({"emr_application": idle["applicationId"]}) == 0.0
