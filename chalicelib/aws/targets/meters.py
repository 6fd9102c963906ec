"""What is measured of AWS for load constraints: metrics, the capacity of an application, free addresses (C6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.core.targets.answers import Never, NoAnswer

# How far back the newest value of a metric is looked for, in periods: services publish minutes late.
PERIODS = 10


class Meters:
    """Each client is made when it is first needed, by what makes it."""

    def __init__(self, client: Callable[[str], Any], now: Callable[[], int]) -> None:
        self._client, self._now = client, now

    def measure(self, source: Mapping[str, Any]) -> float | Never | NoAnswer:
        """The value of one source (`core.asked.Measured`); never raises for what AWS says."""
        try:
            if "cloudwatch" in source:
                return self._newest(_stat(source["cloudwatch"]), int(source["cloudwatch"]["period"]))
            if "subnet" in source:
                found = self._client("ec2").describe_subnets(SubnetIds=[source["subnet"]])["Subnets"]
                return float(found[0]["AvailableIpAddressCount"])
            return self._application(str(source["emr_application"]))
        except ClientError as error:
            told = error.response["Error"]
            return NoAnswer(f"{error.operation_name} was refused: {told['Code']}: {told['Message']}")
        except BotoCoreError as error:
            return NoAnswer(f"AWS gave no answer: {error}")

    def _newest(self, query: dict[str, Any], period: int) -> float | NoAnswer:
        end = datetime.fromtimestamp(self._now() / 1000, UTC)
        start = end - timedelta(seconds=max(PERIODS * period, 600))
        told = self._client("cloudwatch").get_metric_data(
            MetricDataQueries=[{"Id": "value", **query}], StartTime=start, EndTime=end, ScanBy="TimestampDescending"
        )
        values = told["MetricDataResults"][0]["Values"] if told["MetricDataResults"] else []
        return float(values[0]) if values else NoAnswer("CloudWatch has no value of the metric")

    def _application(self, application_id: str) -> float | NoAnswer:
        """vCPUs allocated, as a share of the application's maximum if it has one. Of the series that EMR Serverless
        publishes (https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-job-metrics.html) the largest
        is the application's; nothing is published while no worker runs."""
        capacity = self._client("emr-serverless").get_application(applicationId=application_id)["application"]
        words = f'Namespace="AWS/EMRServerless" MetricName="CPUAllocated" ApplicationId="{application_id}"'
        query = {"Expression": f"MAX(SEARCH('{words}', 'Maximum', 60))", "Period": 60}
        found = self._newest(query, 60)
        used = 0.0 if isinstance(found, NoAnswer) else found
        most = str((capacity.get("maximumCapacity") or {}).get("cpu", "")).partition(" ")[0]
        return used / float(most) if most else used


def _stat(metric: Mapping[str, Any]) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in sorted(metric["dimensions"].items())]
    told = {"Namespace": metric["namespace"], "MetricName": metric["metric"], "Dimensions": dimensions}
    return {"MetricStat": {"Metric": told, "Period": metric["period"], "Stat": metric["statistic"]}}
