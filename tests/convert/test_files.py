"""Whole files of other schedulers: the whole document and the whole report (L20, L26)."""

from __future__ import annotations

from pathlib import Path

import pytest

from chalicelib.core.definitions.app import App
from tests.convert.conftest import FILES, accepted, converted

# The options with which each file is converted.
GIVEN = {
    "shop.crontab": ("crontab",),
    "system.crontab": ("crontab", "--system", "--zone", "Europe/Paris", "--enabled"),
    "scheduler.json": ("eventbridge",),
    "summaries.json": ("eventbridge",),
    "rules.json": ("eventbridge", "--enabled"),
    "orders.dag": ("airflow",),
    "queries.dag": ("airflow",),
    "eks.dag": ("airflow",),
    "queries.json": ("eventbridge",),
    "assets.dag": ("airflow", "-a", "lab.prices"),
    "loops.dag": ("airflow", "--zone", "Europe/Berlin"),
    "sends.dag": ("airflow",),
    "jobs.dag": ("airflow",),
    "jobs.json": ("eventbridge",),
    "tasks.dag": ("airflow",),
    "tasks.json": ("eventbridge",),
    "etl.dag": ("airflow", "-a", "web.clicks"),
    "weekday.dag": ("airflow",),
    "mapped.dag": ("airflow",),
    "producers.dag": ("airflow",),
    "sensors.dag": ("airflow",),
    "cleanup.dag": ("airflow",),
    "past.dag": ("airflow", "--enabled"),
    "groups.dag": ("airflow",),
    "tenants.dag": ("airflow",),
    "xcoms.dag": ("airflow",),
    "names.dag": ("airflow",),
    "sales.mwaa": ("mwaa",),
    "warehouse.mwaa": ("mwaa",),
    "files.mwaa": ("mwaa",),
    "pipelines.cdap.json": ("cdap", "--zone", "America/Los_Angeles", "-a", "orders"),
}


def test_every_file_of_the_folder_is_converted() -> None:
    assert sorted(GIVEN) == sorted(file.name for file in FILES.iterdir() if file.suffix not in (".yaml", ".report"))


@pytest.mark.parametrize("name", GIVEN)
def test_a_file_becomes_exactly_this_document_and_report(name: str) -> None:
    kind, *options = GIVEN[name]
    found = converted(kind, FILES / name, *options)
    assert found.document == (FILES / f"{name}.yaml").read_text()
    assert found.report == (FILES / f"{name}.report").read_text()


@pytest.mark.parametrize("name", GIVEN)
def test_the_service_accepts_a_converted_document(name: str, tmp_path: Path) -> None:
    app = accepted((FILES / f"{name}.yaml").read_text(), tmp_path)
    assert app.workflows
    assert _missing(app) == set()


def _missing(app: App) -> set[str]:
    """Short names that refer to nothing in the document; full names are those of other apps."""
    used = {schedule.workflow for schedule in app.schedules.values()}
    used |= {node.workflow for dag in app.dags.values() for node in dag.nodes.values()}
    triggers = [each.trigger.model_dump() for each in (*app.schedules.values(), *app.dags.values())]
    leaves = []
    while triggers:
        leaf = triggers.pop()
        triggers += leaf.get("triggers", ())
        leaves.append(leaf)
    used |= {leaf["workflow"] for leaf in leaves if leaf["type"] == "program_status"}
    datasets = {leaf["dataset"] for leaf in leaves if leaf["type"] == "partition"}
    unknown = (used - set(app.workflows)) | (datasets - set(app.datasets))
    return {name for name in unknown if "." not in name}


def test_a_file_is_written_where_the_options_say(tmp_path: Path) -> None:
    document, report = tmp_path / "app.yaml", tmp_path / "report.txt"
    shown = converted("crontab", FILES / "shop.crontab", "-o", document, "--report", report)
    assert (shown.document, shown.report) == ("", "")
    assert document.read_text() == (FILES / "shop.crontab.yaml").read_text()
    assert report.read_text() == (FILES / "shop.crontab.report").read_text()


def test_json_has_the_document_and_the_findings() -> None:
    shown = converted("cdap", "-", "--json", given='{"name": "a", "trigger": {"type": "MOON"}}')
    assert '"findings": [{"where": "a"' in shown.document.replace("\n", "").replace("  ", "")
    assert shown.report == ""


def test_schedules_are_disabled_unless_asked_otherwise(tmp_path: Path) -> None:
    rules = FILES / "rules.json"
    kept = accepted(converted("eventbridge", rules).document, tmp_path).schedules
    enabled = accepted(converted("eventbridge", rules, "--enabled").document, tmp_path).schedules
    assert (kept["order-paid"].enabled, enabled["order-paid"].enabled) == (None, True)
    assert (kept["hourly-check"].enabled, enabled["hourly-check"].enabled) == (False, False)
