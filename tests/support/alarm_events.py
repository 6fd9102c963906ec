"""Changes of alarms as CloudWatch sends them to EventBridge.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
"""

from __future__ import annotations

from typing import Any

ACCOUNT, REGION = "123456789012", "us-east-1"
NAME = "ServerCpuTooHigh"
ARN = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:"
REASON = (
    "Threshold Crossed: 1 out of the last 1 datapoints [99.50160229693434 (02/10/19 16:59:00)] was greater than the "
    "threshold (50.0) (minimum 1 datapoint for OK -> ALARM transition)."
)
AT, AT_MILLIS = "2019-10-02T17:04:40.989+0000", 1_570_035_880_989


def event(
    name: str = NAME, state: str = "ALARM", previous: str = "OK", at: str = AT, event_id: str = "c4c1c1c9"
) -> dict[str, Any]:
    """The event of a metric alarm that has changed its state."""
    metric = {"dimensions": {"InstanceId": "i-12345678901234567"}, "name": "CPUUtilization", "namespace": "AWS/EC2"}
    measured = {"metric": metric, "period": 300, "stat": "Average"}
    return {
        "version": "0",
        "id": f"{event_id}-6542-e61b-6ef0-8c4d36933a92",
        "detail-type": "CloudWatch Alarm State Change",
        "source": "aws.cloudwatch",
        "account": ACCOUNT,
        "time": f"{at[:19]}Z",
        "region": REGION,
        "resources": [ARN + name],
        "detail": {
            "alarmName": name,
            "configuration": {
                "description": "Goes into alarm when server CPU utilization is too high!",
                "metrics": [{"id": "30b6c6b2-a864-43a2-4877-c09a1afc3b87", "metricStat": measured, "returnData": True}],
            },
            "previousState": {
                "reason": "Threshold Crossed: 1 datapoint was not greater than the threshold (50.0).",
                "reasonData": '{"version":"1.0","queryDate":"2019-10-01T13:56:40.985+0000","threshold":50.0}',
                "timestamp": "2019-10-01T13:56:40.987+0000",
                "value": previous,
            },
            "state": {
                "reason": REASON,
                "reasonData": '{"version":"1.0","queryDate":"2019-10-02T17:04:40.985+0000","threshold":50.0}',
                "timestamp": at,
                "value": state,
            },
        },
    }


def suppression_ends(name: str = "ServiceAggregatedAlarm") -> dict[str, Any]:
    """The event of a composite alarm whose actions are no longer suppressed: its state is ALARM, as before."""
    made = event(name, previous="ALARM", at="2022-07-22T15:59:42.462+0000")
    made["detail"]["configuration"] = {
        "alarmRule": "ALARM(ServerCpuTooHigh) OR ALARM(TotalNetworkTrafficTooHigh)",
        "actionsSuppressor": "DeploymentInProgress",
        "actionsSuppressorWaitPeriod": 120,
        "actionsSuppressorExtensionPeriod": 180,
    }
    made["detail"]["previousState"] |= {
        "actionsSuppressedBy": "WaitPeriod",
        "actionsSuppressedReason": "Actions suppressed by WaitPeriod",
    }
    return made
