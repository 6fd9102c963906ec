"""Measured values of AWS for load constraints: metrics, the capacity of an application, free addresses (C6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from chalicelib.aws.targets.aws_errors import code_of, message_of
from chalicelib.core.targets import denials
from chalicelib.core.targets.answers import Never, NoAnswer

# How many periods back the newest value of a metric is searched: services publish minutes late.
PERIODS = 10


class Meters:
    """The values of load sources. Each client is made when it is first needed."""

    def __init__(self, client: Callable[[str], Any], now: Callable[[], int]) -> None:
        self._client, self._now = client, now

    def measure(self, source: Mapping[str, Any]) -> float | Never | NoAnswer:
        """The value of the source of a load constraint, or why there is none. Never raises for an error of AWS."""
        try:
            if "cloudwatch" in source:
                return self._newest(_stat(source["cloudwatch"]), int(source["cloudwatch"]["period"]))
            if "subnet" in source:
                found = self._client("ec2").describe_subnets(SubnetIds=[source["subnet"]])["Subnets"]
                return float(found[0]["AvailableIpAddressCount"])
            return self._application(str(source["emr_application"]))
        except ClientError as error:
            remedy = denials.with_remedy(code_of(error), message_of(error))
            return NoAnswer(f"{error.operation_name} was refused: {remedy}")
        except BotoCoreError as error:
            return NoAnswer(f"AWS gave no answer: {error}")

    def _newest(self, query: dict[str, Any], period: int) -> float | NoAnswer:
        end = datetime.fromtimestamp(self._now() / 1000, UTC)
        start = end - timedelta(seconds=max(PERIODS * period, 600))
        answer = self._client("cloudwatch").get_metric_data(
            MetricDataQueries=[{"Id": "value", **query}], StartTime=start, EndTime=end, ScanBy="TimestampDescending"
        )
        values = answer["MetricDataResults"][0]["Values"] if answer["MetricDataResults"] else []
        return float(values[0]) if values else NoAnswer("CloudWatch has no value of the metric")

    def _application(self, application_id: str) -> float | NoAnswer:
        """The allocated vCPUs, as a share of the application's maximum if it has one. EMR Serverless publishes several
        series (https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-job-metrics.html); the largest is
        that of the application. It publishes nothing while no worker runs."""
        capacity = self._client("emr-serverless").get_application(applicationId=application_id)["application"]
        search = f'Namespace="AWS/EMRServerless" MetricName="CPUAllocated" ApplicationId="{application_id}"'
        query = {"Expression": f"MAX(SEARCH('{search}', 'Maximum', 60))", "Period": 60}
        found = self._newest(query, 60)
        used = 0.0 if isinstance(found, NoAnswer) else found
        maximum = str((capacity.get("maximumCapacity") or {}).get("cpu", "")).partition(" ")[0]
        return used / float(maximum) if maximum else used


def _stat(metric: Mapping[str, Any]) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in sorted(metric["dimensions"].items())]
    metric_spec = {"Namespace": metric["namespace"], "MetricName": metric["metric"], "Dimensions": dimensions}
    return {"MetricStat": {"Metric": metric_spec, "Period": metric["period"], "Stat": metric["statistic"]}}
