"""Metrics and traces elsewhere: the dashboard of Grafana, the metric stream, the layer of OpenTelemetry (O2)."""

from __future__ import annotations

import json
import re
import subprocess
import venv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from samtranslator.translator.transform import transform

from chalicelib.core.runs.metrics import ALL
from infra import grafana
from infra.template import with_code_at

from .conftest import of_type

ROOT = Path(__file__).parents[2]
NO_VALUE = {"Ref": "AWS::NoValue"}


@pytest.fixture(scope="module")
def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(grafana.TARGET.read_text())
    return found


def queries(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [query for panel in board["panels"] for query in panel["targets"]]


def test_o2_grafana_shows_the_metrics_of_the_dashboard(board: dict[str, Any], template: dict[str, Any]) -> None:
    body = template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    widgets = json.loads(re.sub(r"(?<=: )\$\{\w+\}", "0", body))["widgets"]
    assert [panel["title"] for panel in board["panels"]] == [
        widget["properties"]["title"] for widget in widgets if widget["type"] == "metric"
    ]
    shown = {query["metricName"] for query in queries(board) if query["namespace"] == "Sluice"}
    assert shown == {measure.name for measure in ALL}
    [reasons] = [panel for panel in board["panels"] if panel["title"].startswith("Jobs that began to wait")]
    assert [query["dimensions"] for query in reasons["targets"]][:2] == [
        {"stage": "$stage", "reason": "slots"},
        {"stage": "$stage", "reason": "pool"},
    ]
    assert {query["statistic"] for query in reasons["targets"]} == {"Sum"}


def test_o2_each_variable_of_grafana_is_defined(board: dict[str, Any], template: dict[str, Any]) -> None:
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(board)))
    assert used == {variable["name"] for variable in board["templating"]["list"]}
    names = {variable["name"] for variable in board["templating"]["list"] if variable.get("regex")}
    assert names <= template["Resources"].keys()
    functions = {
        function["FunctionName"]["Fn::Sub"].replace("${AWS::StackName}", "sluice-$stage")
        for _, function in of_type(template["Resources"], "AWS::Serverless::Function")
    }
    named = {query["dimensions"]["FunctionName"] for query in queries(board) if "FunctionName" in query["dimensions"]}
    assert named <= functions


@pytest.mark.long
def test_o2_grafana_reads_the_dashboard() -> None:
    """The official classes of Grafana take each part of the file, and write it again."""
    python = ROOT / "build/grafana-venv/bin/python"
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
    pins = ["-r", str(ROOT / "contrib/grafana/requirements.txt")]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *pins], check=True, capture_output=True)
    read = (
        "import json, sys\n"
        "from grafana_foundation_sdk.cog.encoder import JSONEncoder\n"
        "from grafana_foundation_sdk.models.dashboard import Dashboard\n"
        "board = Dashboard.from_json(json.load(open(sys.argv[1])))\n"
        "print(json.dumps(board, cls=JSONEncoder))"
    )
    done = subprocess.run([python, "-c", read, grafana.TARGET], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again, sent = json.loads(done.stdout), json.loads(grafana.TARGET.read_text())
    assert [panel["title"] for panel in again["panels"]] == [panel["title"] for panel in sent["panels"]]
    assert [len(panel["targets"]) for panel in again["panels"]] == [len(panel["targets"]) for panel in sent["panels"]]


def test_o2_metrics_are_streamed_if_asked_for(template: dict[str, Any]) -> None:
    stream = template["Resources"]["MetricStream"]
    assert stream["Condition"] == "MetricsAreStreamed"
    assert stream["Properties"]["OutputFormat"] == "opentelemetry1.0"
    assert stream["Properties"]["IncludeFilters"] == [{"Namespace": "Sluice"}]
    role = template["Resources"]["MetricStreamRole"]["Properties"]
    [statement] = role["Policies"][0]["PolicyDocument"]["Statement"]
    assert statement["Resource"] == {"Ref": "MetricStreamFirehoseArn"}


def test_o2_a_layer_of_telemetry_is_under_each_lambda(
    template: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    deployed = with_code_at(template, "bucket", "key")  # a copy
    for resource in deployed["Resources"].values():  # AWS::LanguageExtensions resolves them before SAM
        resource.update({name: "Retain" for name in ("DeletionPolicy", "UpdateReplacePolicy") if name in resource})
    translated = transform(deployed, {}, SimpleNamespace(load=dict))["Resources"]
    functions = dict(of_type(translated, "AWS::Lambda::Function"))
    assert len(functions) == len(list(of_type(template["Resources"], "AWS::Serverless::Function")))
    for name, function in functions.items():
        layers = {"Fn::If": ["HasTelemetryLayer", [{"Ref": "TelemetryLayerArn"}], NO_VALUE]}
        assert function["Layers"] == layers, name
        wrapper = function["Environment"]["Variables"]["AWS_LAMBDA_EXEC_WRAPPER"]
        assert wrapper == {"Fn::If": ["HasTelemetryLayer", {"Ref": "TelemetryWrapper"}, NO_VALUE]}
