"""Alarms, dashboard, traces and access log (O2), compared with `docs/operations.md`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chalicelib.core.runs.metrics import ALL, NAMESPACE

from .conftest import of_type

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text()
LAMBDAS = ("APIHandler", "Tick", "Objects", "Check", "Burst", "RunState", "Custom", "Lake", "Lineage")
OURS = {measure.name: measure for measure in ALL}
# The metrics that AWS sends, with these dimensions.
# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
# https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-metrics-and-dimensions.html
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-monitoring.html
AWS_SENDS = {
    ("AWS/Lambda", "FunctionName"): {
        *("Errors", "Throttles", "Invocations", "Duration", "ConcurrentExecutions"),
        *("IteratorAge", "RecursiveInvocationsDropped"),
    },
    ("AWS/SQS", "QueueName"): {"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"},
    ("AWS/DynamoDB", "TableName"): {"ReadThrottleEvents", "WriteThrottleEvents", "ConsumedWriteCapacityUnits"},
    ("AWS/DynamoDB", "TableName", "GlobalSecondaryIndexName"): {"WriteThrottleEvents"},
    ("AWS/ApiGateway", "ApiName", "Stage"): {"Count", "4XXError", "5XXError", "Latency"},
    ("AWS/Events", "RuleName"): {"FailedInvocations"},
}
Metric = tuple[str, str, tuple[tuple[str, Any], ...]]


def alarms(resources: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return dict(of_type(resources, "AWS::CloudWatch::Alarm"))


def watched(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics of an alarm: one, or several that it adds up."""
    if "Metrics" not in alarm:
        return [alarm]
    return [each["MetricStat"]["Metric"] for each in alarm["Metrics"] if "MetricStat" in each]


def metric(reported: dict[str, Any]) -> Metric:
    return (
        reported["Namespace"],
        reported["MetricName"],
        tuple((each["Name"], each["Value"]) for each in reported["Dimensions"]),
    )


def dashboard(resources: dict[str, Any]) -> dict[str, Any]:
    """The body of the dashboard, with the template's names in place of their values."""
    body = resources["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    return dict(json.loads(re.sub(r'(?<!")\$\{[^}]+\}(?!")', "0", body)))


def shown(resources: dict[str, Any]) -> Iterator[Metric]:
    """The metrics of the dashboard, with the fields that its rows omit."""
    for widget in dashboard(resources)["widgets"]:
        before: list[str] = []
        for row in widget["properties"].get("metrics", ()):
            named = [cell for cell in row if isinstance(cell, str)]
            if named[0] == "...":
                named = [*before[: len(before) - len(named) + 1], *named[1:]]
            before = named
            yield named[0], named[1], tuple(zip(named[2::2], named[3::2], strict=True))


def is_sent(namespace: str, name: str, dimensions: tuple[tuple[str, Any], ...]) -> bool:
    if namespace != NAMESPACE:
        return name in AWS_SENDS.get((namespace, *(each for each, _ in dimensions)), ())
    measure = OURS.get(name)
    if measure is None or dimensions[0] not in (("stage", {"Ref": "Stage"}), ("stage", "${Stage}")):
        return False
    reasons = tuple(value for each, value in dimensions[1:] if each == "reason")
    return len(dimensions) == 1 + len(reasons) and (
        set(reasons) <= set(measure.reasons) if reasons else not measure.reasons
    )


def entries() -> dict[str, str]:
    """The alarms of the page, each with its text."""
    part = PAGE.partition("\n## Alarms\n")[2].partition("\n## ")[0]
    found = re.split(r"^#### (\w+)$", part, flags=re.M)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_o2_each_alarm_has_an_explanation_and_vice_versa(resources: dict[str, Any]) -> None:
    assert sorted(entries()) == sorted(alarms(resources))


@pytest.mark.parametrize("name", sorted(entries()))
def test_o2_an_alarm_explains_its_meaning_and_what_to_do(name: str) -> None:
    text = entries()[name]
    for label in ("**Means**", "**Look**", "**Do**"):
        assert text.count(label) == 1, f"{name} has no {label}"
    look = text.partition("**Look**")[2].partition("**Do**")[0]
    assert re.search(r"`|\]\(#", look), f"{name} names no command and no query to look at"


def test_o2_the_page_counts_the_alarms_that_are_billed(resources: dict[str, Any]) -> None:
    """A metric of an alarm costs $0.10 a month."""
    found = [alarm for name, alarm in alarms(resources).items() if not name.startswith("Lineage")]  # need a receiver
    metrics = sum(len(watched(alarm)) for alarm in found)
    assert f"| alarms | {len(found)} with {metrics} metrics, $0.10 each | {metrics / 10:.2f} |" in PAGE


def test_o2_each_metric_in_an_alarm_or_dashboard_is_sent(resources: dict[str, Any]) -> None:
    used = [metric(each) for alarm in alarms(resources).values() for each in watched(alarm)]
    for each in [*used, *shown(resources)]:
        assert is_sent(*each), f"nobody sends {each}"


def test_o2_each_sluice_metric_is_shown_and_explained(resources: dict[str, Any]) -> None:
    on_page = {
        (name, dict(dimensions).get("reason", "")) for space, name, dimensions in shown(resources) if space == NAMESPACE
    }
    assert on_page == {(measure.name, reason) for measure in ALL for reason in measure.reasons or ("",)}
    for measure in ALL:
        assert f"| `{measure.name}` |" in PAGE


def test_o2_the_dashboard_names_resources_of_the_template(template: dict[str, Any], resources: dict[str, Any]) -> None:
    body = resources["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    named = {name.partition(".")[0] for name in re.findall(r"\$\{([^}]+)\}", body)}
    assert {name for name in named if not name.startswith("AWS::")} <= set(resources) | set(template["Parameters"])
    places = [(each["x"], each["y"]) for each in dashboard(resources)["widgets"]]
    assert len(set(places)) == len(places)


def test_o2_only_what_the_emulator_lacks_is_omitted_locally(
    template: dict[str, Any], resources: dict[str, Any]
) -> None:
    assert template["Conditions"]["IsOnAws"] == {"Fn::Equals": [{"Ref": "ApiBaseUrl"}, ""]}
    left_out = {name for name, each in resources.items() if each.get("Condition") == "IsOnAws"}
    assert left_out == {"Dashboard", *(name for name, alarm in alarms(resources).items() if "Metrics" in alarm)}


def test_o2_each_alarm_is_sent_to_the_alarm_topic(resources: dict[str, Any]) -> None:
    topic = {"Fn::If": ["AlarmsAreSent", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}
    for name, alarm in alarms(resources).items():
        assert alarm["AlarmActions"] == topic, name
        assert alarm["AlarmDescription"].endswith("."), name
        assert alarm["TreatMissingData"] == ("breaching" if name == "TickMissingAlarm" else "notBreaching")


@pytest.mark.parametrize("function", LAMBDAS)
@pytest.mark.parametrize("name", ["Errors", "Throttles"])
def test_o2_a_failing_or_throttled_lambda_raises_an_alarm(resources: dict[str, Any], function: str, name: str) -> None:
    wanted = ("AWS/Lambda", name, (("FunctionName", {"Ref": function}),))
    assert [wanted] == [
        metric(each) for alarm in alarms(resources).values() for each in watched(alarm) if metric(each) == wanted
    ]


@pytest.mark.parametrize("table", ["CatalogTable", "JobsTable", "RunsTable"])
def test_o2_a_throttled_table_or_index_raises_an_alarm(resources: dict[str, Any], table: str) -> None:
    found = {metric(each) for each in map(frozen, watched(alarms(resources)[f"{table}ThrottlesAlarm"]))}
    own = ("TableName", f"Ref {table}")
    indexes = [each["IndexName"] for each in resources[table]["Properties"]["GlobalSecondaryIndexes"]]
    assert found == {
        ("AWS/DynamoDB", "ReadThrottleEvents", (own,)),
        ("AWS/DynamoDB", "WriteThrottleEvents", (own,)),
        *(("AWS/DynamoDB", "WriteThrottleEvents", (own, ("GlobalSecondaryIndexName", name))) for name in indexes),
    }


def frozen(reported: dict[str, Any]) -> dict[str, Any]:
    """A metric whose references can be compared."""
    values = [{"Name": each["Name"], "Value": spelt(each["Value"])} for each in reported["Dimensions"]]
    return {**reported, "Dimensions": values}


def spelt(value: Any) -> str:
    return value if isinstance(value, str) else " ".join(str(part) for part in next(iter(value.items())))


def test_o2_lateness_raises_an_alarm_above_a_parameter(template: dict[str, Any], resources: dict[str, Any]) -> None:
    alarm = alarms(resources)["FireLatenessAlarm"]
    assert metric(alarm) == ("Sluice", "FireLateness", (("stage", {"Ref": "Stage"}),))
    assert (alarm["ExtendedStatistic"], alarm["Threshold"]) == ("p99", {"Ref": "FireLatenessAlarmMillis"})
    assert template["Parameters"]["FireLatenessAlarmMillis"]["Default"] == 10_000


@pytest.mark.parametrize(
    ("name", "queue", "seconds"),
    [
        ("HintsAgeAlarm", "HintsQueue", 1_200),
        ("BurstHintsAgeAlarm", "BurstHintsQueue", 1_200),
        ("ObjectsAgeAlarm", "ObjectsQueue", 300),
    ],
)
def test_o2_an_old_message_in_a_queue_raises_an_alarm(
    resources: dict[str, Any], name: str, queue: str, seconds: int
) -> None:
    alarm = alarms(resources)[name]
    dimension = (("QueueName", {"Fn::GetAtt": [queue, "QueueName"]}),)
    assert metric(alarm) == ("AWS/SQS", "ApproximateAgeOfOldestMessage", dimension)
    assert alarm["Threshold"] == seconds


def test_o2_each_rule_has_an_alarm_under_its_name(resources: dict[str, Any]) -> None:
    named = {
        resources[function]["Properties"]["Events"][event]["Properties"][key]["Fn::Sub"]
        for function, event, key in (
            ("Tick", "TickEvent", "Name"),
            ("RunState", "RunStateEvent", "RuleName"),
            ("RunState", "ExecutionStateEvent", "RuleName"),
        )
    }
    named |= {
        rule["Properties"]["Name"]["Fn::Sub"] for rule in resources.values() if rule["Type"] == "AWS::Events::Rule"
    }
    found = [metric(each) for each in watched(alarms(resources)["RulesFailedAlarm"])]
    assert {value["Fn::Sub"] for _, _, ((_, value),) in found} == named
    assert len(named) == 6


def test_o2_the_api_and_its_metrics_have_the_name_of_their_stack(resources: dict[str, Any]) -> None:
    stack = {"Ref": "AWS::StackName"}
    properties = resources["RestAPI"]["Properties"]
    assert properties["Name"] == properties["DefinitionBody"]["info"]["title"] == stack
    alarm = alarms(resources)["APIServerErrorsAlarm"]
    assert metric(alarm) == ("AWS/ApiGateway", "5XXError", (("ApiName", stack), ("Stage", properties["StageName"])))


@pytest.mark.parametrize("function", LAMBDAS)
def test_o2_a_lambda_may_send_traces_only_if_the_stack_is_traced(
    template: dict[str, Any], resources: dict[str, Any], function: str
) -> None:
    assert template["Parameters"]["Tracing"]["Default"] == "PassThrough"
    assert template["Conditions"]["TracingIsActive"] == {"Fn::Equals": [{"Ref": "Tracing"}, "Active"]}
    assert resources[function]["Properties"]["Tracing"] == {"Ref": "Tracing"}
    role, _ = resources[function]["Properties"]["Role"]["Fn::GetAtt"]
    policies = resources[role]["Properties"]["Policies"]
    [(condition, traces, otherwise)] = [each["Fn::If"] for each in policies if "xray" in json.dumps(each)]
    assert (condition, otherwise) == ("TracingIsActive", {"Ref": "AWS::NoValue"})
    [statement] = traces["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]


def test_o2_the_api_writes_an_access_log_on_request(template: dict[str, Any], resources: dict[str, Any]) -> None:
    assert template["Parameters"]["ApiAccessLog"]["Default"] == "false"
    condition, setting, otherwise = resources["RestAPI"]["Properties"]["AccessLogSetting"]["Fn::If"]
    assert (condition, otherwise) == ("ApiIsLogged", {"Ref": "AWS::NoValue"})
    assert setting["DestinationArn"] == {"Fn::GetAtt": ["ApiRequestsLog", "Arn"]}
    assert "\n" not in setting["Format"], "API Gateway takes a line"
    line = json.loads(setting["Format"])
    assert {"caller", "method", "path", "status", "latency_ms", "request_id"} <= set(line)
    assert all(re.fullmatch(r"\$context\.[\w.]+", value) for value in line.values())
    log = resources["ApiRequestsLog"]
    assert (log["Condition"], log["Properties"]["RetentionInDays"]) == ("ApiIsLogged", {"Ref": "LogRetentionDays"})


def test_o2_the_account_role_for_logs_is_set_only_on_request(
    template: dict[str, Any], resources: dict[str, Any]
) -> None:
    assert template["Parameters"]["ApiLogRole"]["Default"] == "existing"
    for name in ("ApiLogAccount", "ApiLogAccountRole"):
        assert resources[name]["Condition"] == "ApiLogRoleIsMade"
        assert resources[name]["DeletionPolicy"] == resources[name]["UpdateReplacePolicy"] == "Retain"
    [tag] = resources["ApiRequestsLog"]["Properties"]["Tags"]
    assert tag["Value"]["Fn::If"][:2] == ["ApiLogRoleIsMade", {"Ref": "ApiLogAccount"}], (
        "the role is set before the log"
    )


def logged() -> Iterator[ast.Call]:
    """The calls of the service that write a log line."""
    for path in (ROOT / "chalicelib").rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        yield from (call for call in calls if "logger." in ast.unparse(call.func) and call.args)


def messages() -> set[str]:
    """The messages of these log lines."""
    return {str(call.args[0].value) for call in logged() if isinstance(call.args[0], ast.Constant)}


def fields(resources: dict[str, Any]) -> set[str]:
    """The fields of the log lines of the service, of its logger and of the API."""
    found = {"level", "message", "exception", "exception_name"}
    for path in (ROOT / "chalicelib").rglob("*.py"):
        text = path.read_text()
        if "logger" in text:
            keys = (key for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Dict) for key in node.keys)
            found |= {str(key.value) for key in keys if isinstance(key, ast.Constant)}
            found |= set(re.findall(r'fields\["(\w+)"\] =', text))
    return found | set(json.loads(resources["RestAPI"]["Properties"]["AccessLogSetting"]["Fn::If"][1]["Format"]))


def asked(query: str) -> set[str]:
    """The fields that a query names."""
    plain = re.sub(r'"[^"]*"|/[^/]*/|\bas \w+|\w+\([^)]*\)|@\w+', "", query)
    made = set(re.findall(r"\bas (\w+)", query))
    words = {*"fields filter stats sort limit by desc and or in like".split()}
    return set(re.findall(r"[a-z_]+", plain)) - words - made


def test_o2_the_documented_queries_use_logged_records_and_fields(resources: dict[str, Any]) -> None:
    queries = re.findall(r"^```logs\n(.*?)^```", PAGE, flags=re.S | re.M)
    assert len(queries) >= 6
    wanted = {message for query in queries for message in re.findall(r'message = "([^"]+)"', query)}
    assert {"checked", "sent", "parked"} <= wanted <= messages()
    assert {"schedule", "why", "late_ms"} <= set().union(*map(asked, queries)) <= fields(resources)
