"""Tests for apps of Sluice without a cloud: which runs start, when, and why not, given an app and events at instants.

    def test_the_report_waits_for_both(sluice_app):
        app = sluice_app("app.yaml", at="2026-03-02T12:00Z")
        app.partition("flights", day="2026-03-01")
        assert app.runs("join") == []
        assert "waits for 1 partition of demo.weather" in app.why("join", day="2026-03-01")

The code of the service makes the decisions, on tables in memory and with a clock that the test moves. A test that fails
shows what ran, what waits and why (`App.explain`). The package needs the extra ``testing``. The fixture ``sluice_app``
is in `sluice.pytest_plugin`; without pytest, construct an `App`.
"""

from __future__ import annotations

from sluice.testing import service

service.load()

from sluice.errors import ApiRefused  # noqa: E402 - the service must be importable first
from sluice.testing.app import App  # noqa: E402 - as above
from sluice.testing.seen import Backfill, Condition, DagRun, Element, Job, Node, Notice, Record, Run  # noqa: E402 - as above

__all__ = ["ApiRefused", "App", "Backfill", "Condition", "DagRun", "Element", "Job", "Node", "Notice", "Record", "Run"]
