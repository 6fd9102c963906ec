"""The dashboard of CloudWatch as one of Grafana: `contrib/grafana/sluice.json`.

    python -m infra.grafana

Each widget of `infra/resources/dashboard.yaml` becomes a panel, each of its metrics a query of the data source for
CloudWatch. CloudFormation chooses the names of queues and tables. So each is a variable, which Grafana fills with the
name that begins with that of the stack.
https://grafana.com/docs/grafana/latest/datasources/aws-cloudwatch/query-editor/
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from infra import template, yaml_tags

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "infra" / "resources" / "dashboard.yaml"
TARGET = ROOT / "contrib" / "grafana" / "sluice.json"
DATA = {"type": "cloudwatch", "uid": "${datasource}"}
# What names a resource in the template, by the end of its reference: a variable of Grafana for what has a random name.
QUEUE, ALARM = ".QueueName", ".Arn"
TABLES = ("JobsTable", "RunsTable", "CatalogTable")
UNITS = {"ms": "ms", "s": "s", "dollars": "currencyUSD"}

Widget = dict[str, Any]
Panel = dict[str, Any]


def dashboard(text: str) -> dict[str, Any]:
    """The dashboard of Grafana for the body of one of CloudWatch, in which ``${...}`` name parts of the stack."""
    named = sorted(set(re.findall(r"\$\{([\w:.]+)\}", text)))
    body = json.loads(re.sub(r"(?<=: )\$\{\w+\}", "0", text))
    widgets = [widget for widget in body["widgets"] if widget["type"] == "metric"]
    return {
        "title": "Sluice",
        "uid": "sluice",
        "tags": ["sluice"],
        "timezone": "utc",
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": list(_variables(named))},
        "panels": [_panel(number, widget) for number, widget in enumerate(widgets, start=1)],
    }


def _variables(named: list[str]) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "type": "datasource", "query": "cloudwatch", "label": "Data source"}
    yield {"name": "region", "type": "query", "datasource": DATA, "query": {"queryType": "regions"}, "label": "Region"}
    yield {"name": "stage", "type": "textbox", "query": "prod", "current": {"value": "prod"}, "label": "Stage"}
    for name in named:
        if name.endswith(QUEUE):
            yield _found(name.removesuffix(QUEUE), "AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName")
        elif name in TABLES:
            yield _found(name, "AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName")


def _found(resource: str, namespace: str, metric: str, key: str) -> dict[str, Any]:
    """A hidden variable with the name of a resource, which CloudFormation has chosen."""
    query = {
        "queryType": "dimensionValues",
        "namespace": namespace,
        "metricName": metric,
        "dimensionKey": key,
        "region": "$region",
    }
    found = {"name": resource, "type": "query", "hide": 2, "refresh": 1, "datasource": DATA, "query": query}
    return {**found, "regex": f"/^sluice-${{stage}}-{resource}-/"}


def _panel(number: int, widget: Widget) -> Panel:
    given = widget["properties"]
    unit = UNITS.get(given["title"].rpartition(", ")[2].partition(" ")[0], "short")
    right = [query for query in _queries(given) if query.pop("right")]
    return {
        "id": number,
        "type": "timeseries",
        "title": given["title"],
        "datasource": DATA,
        "gridPos": {"x": widget["x"], "y": widget["y"], "w": widget["width"], "h": widget["height"]},
        "fieldConfig": {
            "defaults": {"unit": unit, "custom": {"stacking": {"mode": "normal" if given.get("stacked") else "none"}}},
            "overrides": [
                {
                    "matcher": {"id": "byFrameRefID", "options": query["refId"]},
                    "properties": [
                        {"id": "custom.axisPlacement", "value": "right"},
                        {"id": "unit", "value": "short"},
                    ],
                }
                for query in right
            ],
        },
        "targets": [{name: value for name, value in query.items() if name != "right"} for query in _queries(given)],
    }


def _queries(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A query for each metric of a widget. In CloudWatch, ``...`` stands for what a metric has like the one before."""
    before: list[str] = []
    for number, metric in enumerate(given["metrics"]):
        own = metric[-1] if isinstance(metric[-1], dict) else {}
        words = [word for word in metric if isinstance(word, str)]
        if words[0] == "...":
            words = [*before[: len(before) - len(words) + 1], *words[1:]]
        before = words
        namespace, name, *pairs = words
        yield {
            "refId": chr(ord("A") + number),
            "datasource": DATA,
            "queryMode": "Metrics",
            "metricQueryType": 0,
            "metricEditorMode": 0,
            "region": "$region",
            "namespace": namespace,
            "metricName": name,
            "dimensions": {key: _name(value) for key, value in zip(pairs[::2], pairs[1::2], strict=True)},
            "statistic": own.get("stat", given.get("stat", "Average")),
            "period": str(given["period"]),
            "label": own.get("label", ""),
            "matchExact": True,
            "right": own.get("yAxis") == "right",
        }


def _name(value: str) -> str:
    """The value of a dimension: a variable, the name of a function, or the text itself."""
    found = re.fullmatch(r"\$\{([\w:.]+)\}", value)
    if found is None:
        return value
    resource = found[1]
    if resource == "Stage":
        return "$stage"
    if resource == "AWS::StackName":
        return "sluice-$stage"
    if resource.endswith(QUEUE) or resource in TABLES:
        return f"${resource.removesuffix(QUEUE)}"
    return f"sluice-$stage-{template.handler_of(resource).replace('_', '-')}"


def main() -> int:
    body = yaml_tags.load(SOURCE.read_text())["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    TARGET.write_text(json.dumps(dashboard(body), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
