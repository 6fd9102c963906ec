"""A simulated API that answers every request of the command line, always in the same way."""

from __future__ import annotations

import re
from typing import Any

from tests.cli import (
    recorded,
    recorded_dags,
    test_access,
    test_allowed,
    test_audit,
    test_grants,
    test_logs,
    test_now,
    test_periods,
    test_prefixes,
    test_quotas,
    test_report,
    test_stops,
)
from tests.cli.played_api import Played, PlayedApi, Request
from tests.cli.recorded import CLEAN, JOB, View

OTHER = "demo.other.load"
NOTICE = f"demo.flights.notice-{'0a' * 12}"
NODE = "demo.flights.daily~0a1b2c3d~join"


def _of(view: View, schedule: str, end: str, field: str = "run_id") -> View:
    return {**view, "schedule": schedule, field: f"{schedule}.m3k2j9x1.{end}"}


def _held(kind: str) -> View:
    return {"waits_for": [{"kind": kind, "name": "x", "of": "x", "changes_at": None}]}


_LATE = {"late": True, "fresh_until": "2026-01-01T00:00:00.000Z", "newest": None, "newest_at": None}
_LETTER = {"target": "sqs", "tries": 3, "failed_at": recorded.past(hours=5), "reason": "no such queue", "attempt": 1}
_POLICY = {"max_events": 10, "interval": "1m", "permits": [], "queue": [], "waiting": 0, "next_start": None}
_POOL = {"size": 4, "unit": "slots", "shares": {}}
# The items of each list. Each has something that a filter leaves out, and one that Sluice itself made.
LISTS: dict[str, list[View]] = {
    "namespaces": [recorded.namespace(), recorded.namespace("lake")],
    "apps": [recorded.app(), recorded.app("demo.other")],
    "workflows": [recorded.workflow(), recorded.workflow("demo.flights.tell")],
    "schedules": [recorded.schedule(), recorded.schedule("demo.flights.join"), recorded.schedule(NODE) | {"dag": "d"}],
    "datasets": [recorded.dataset(), recorded.dataset("demo.weather") | {"freshness": _LATE | {"late": False}}],
    "policies": [recorded.stamp("policy", name) | _POLICY for name in ("demo.calm", "demo.fast")],
    "pools": [recorded.stamp("pool", name) | _POOL for name in ("demo.cluster", "demo.images")],
    "calendars": [recorded.stamp("calendar", name) | {"days": []} for name in ("demo.bank", "demo.school")],
    "messages": [recorded.message(name) for name in ("demo.flights.a", "demo.flights.b", NOTICE)],
    "dags": [recorded_dags.dag(), recorded_dags.dag("demo.flights.weekly")],
    "runs": [recorded.run(), _of(recorded.run(), OTHER, "b"), _of(recorded.run(), NODE, "c")],
    "jobs": [
        recorded.job() | _held("approval"),
        _of(recorded.job(), OTHER, "b", "job_id") | _held("limit"),
        _of(recorded.job(), NODE, "c", "job_id") | _held("data"),
    ],
    "records": [
        recorded.record("ABORTED"),
        recorded.record("SKIPPED", "b"),
        _of(recorded.record("LATE"), NODE, "c", "id"),
    ],
    "partitions": [recorded.partition(1), recorded.partition(2)],
    "versions": [recorded.version(2, "priority: 5 -> 7"), recorded.version(1)],
    "backfills": [recorded.backfill(), recorded.backfill("DONE")],
    "reprocess": [recorded.reprocess(), recorded.reprocess("DONE")],
    "dead-letters": [_of(_LETTER, CLEAN, "a"), _of(_LETTER, OTHER, "b")],
    "audit": [test_audit.ENABLED, test_audit.CREATED],
    "prefixes": [test_prefixes.ITEM, {**test_prefixes.ITEM, "prefix": "raw/later/"}],
    "reports": [test_report.line(), test_report.line("demo.other.load", runs=40)],
    "events": [recorded.fire_event(1), recorded.fire_event(2)],
    "limits": [],
}  # fmt: skip
PERIODS = [test_periods.item(1, "succeeded"), test_periods.item(2, "missing")]
MATRIX = [{"schedule": name, "days": "s" * 31, "why": None} for name in (CLEAN, OTHER)]
GLANCE = [
    {"name": name, "app": "flights", "state": "enabled", "workflow": name, "triggered_by": "5:00", "pause_reason": None,
     "dag": dag, "tags": {}}
    for name, dag in ((CLEAN, None), ("demo.flights.join", None), (NODE, "demo.flights.daily"))
]  # fmt: skip
PARTS = ("made_by", "runs", "waiting", "ended")  # of a partition
PLAN = {
    "namespace": "demo", "dataset": None, "run": JOB, "fires": None, "partitions": 1, "total": 2, "not_followed": [],
    "steps": [{"step": 0, "schedule": CLEAN, "workflow": CLEAN, "after": [], "why": "it", "total": 1,
               "first": [{"day": "1"}], "last": []}],
}  # fmt: skip
BACKFILL_PLAN = {
    "schedule": CLEAN,
    "total": 31,
    "first": [],
    "last": [],
    "left_alone": 0,
    "in_flight": [],
    "left_out": 0,
}
REPORT = {
    "created": [],
    "replaced": [f"workflow {CLEAN}"],
    "deleted": [],
    "untouched": [],
    "kept": ["app demo.flights"],
}
BULK = {"changed": [CLEAN], "unchanged": [], "failed": []}
_ACTIVE = {"state": "RUNNING", "run_id": JOB, "why": "", "code": None, "started_at": None, "ended_at": None}
RUN = recorded_dags.dag_run("RUNNING", nodes={"clean": {**_ACTIVE, "round": 1, "attempt": 1}})
# What is answered to any other request, by its method and the end of its path.
ANSWERS: tuple[tuple[str, str, Any], ...] = (
    ("GET", r"/v1/health", {"status": "ok", "lake": "lake-bucket", "control": "control-bucket"}),
    ("GET", r"/v1/whoami", {"arn": recorded.ARN, "account": "1", "region": "r", "stage": "dev", "version": "1"}),
    ("GET", r"/dags/[^/]+/why", {**recorded.schedule_why(), "dag": "demo.flights.daily", "schedule": None}),
    ("GET", r"/schedules/[^/]+/why", recorded.schedule_why()),
    ("GET", r"/messages/[^/]+/why", recorded.schedule_why()),
    ("GET", r"/jobs/[^/]+/why", recorded.job_why()),
    ("GET", r"/runs/[^/]+/why", recorded.run_why()),
    ("GET", r"/runs/[^/]+/logs", test_logs.log("one", "two", state="SUCCEEDED")),
    ("GET", r"/dags/[^/]+/runs/[^/]+/nodes/[^/]+/elements", {"items": [], "next_cursor": None}),
    ("GET", r"/dags/[^/]+/runs/[^/]+", RUN),
    ("GET", r"/v1/runs/[^/]+", recorded.run_page(recorded.run())),
    ("GET", r"/v1/jobs/[^/]+", recorded.job()),
    ("GET", r"/v1/fires/[^/]+", recorded.fire()),
    ("GET", r"/preview", {"items": [], "due": [], "fires_per_day": 1, "description": "5:00", "next_cursor": None}),
    ("GET", r"/now", test_now.NOW),
    ("GET", r"/access", test_access.VIEW),
    ("GET", r"/allowed", test_allowed.VIEW),
    ("GET", r"/allowed/proposal", {"name": "demo", "refused": [], "allowed": {}, "left_out": [], "complete": True}),
    ("GET", r"/grants", test_grants.VIEW),
    ("GET", r"/quotas", test_quotas.VIEW),
    ("GET", r"/partition", {"partition": {"day": "1"}, "ready_at": None, **{name: [] for name in PARTS}}),
    ("GET", r"/backfills/[^/]+", recorded.backfill("DONE")),
    ("GET", r"/reprocess/[^/]+", recorded.reprocess("DONE")),
    ("GET", r"/schedules/[^/]+", recorded.schedule()),
    ("GET", r"/workflows/[^/]+", recorded.workflow()),
    ("GET", r"/dags/[^/]+", recorded_dags.dag()),
    ("GET", r"/datasets/[^/]+", recorded.dataset() | {"ignored": []}),
    ("GET", r"/messages/[^/]+", recorded.message()),
    ("GET", r"/apps/[^/]+", recorded.app()),
    ("GET", r"/namespaces/[^/]+", recorded.namespace()),
    ("PUT", r"/(access|allowed|grants|quotas)", {"name": "demo", "did": "replaced", "version": 5}),
    ("PUT", r"/prefixes", test_prefixes.ITEM),
    ("PUT", r"/apps/[^/]+", REPORT),
    ("PUT", r"/messages/[^/]+", recorded.message()),
    ("PUT", r"/namespaces/[^/]+", {"name": "demo", "did": "created", "version": 1}),
    ("DELETE", r"", {}),
    ("POST", r"/bulk", BULK),
    ("POST", r"/(stop|start)", {**test_stops.EMPTY, "changed": [CLEAN]}),
    ("POST", r"/schedules/[^/]+/run", {"job_id": JOB}),
    ("POST", r"/dags/[^/]+/run", {"run_id": RUN["run_id"], "dag": "demo.flights.daily"}),
    ("POST", r"/rerun", {**RUN, "job_id": JOB}),
    ("POST", r"/dags/[^/]+/(\w+)", recorded_dags.dag()),
    ("POST", r"/schedules/[^/]+/dry-run", {"fires": 0, "steps": [], "why": "", "left": []}),
    ("POST", r"/schedules/[^/]+/backfills", recorded.backfill()),
    ("POST", r"/backfills/[^/]+/cancel", recorded.backfill("CANCELLED")),
    ("POST", r"/reprocess/[^/]+/cancel", recorded.reprocess("CANCELLED")),
    ("POST", r"/reprocess", recorded.reprocess()),
    ("POST", r"/partitions", recorded.partition(1)),
    ("POST", r"/dead-letters/[^/]+/redrive", {"run_id": JOB, "attempt": 2}),
    ("POST", r"/dead-letters/redrive", {"redriven": [JOB], "refused": [], "more": False}),
    ("POST", r"/events", {"accepted": [{"type": "go", "id": "x", "event_id": "y"}]}),
    ("POST", r"/v1/runs/[^/]+/(cancel|ping)", recorded.run(state="RUNNING")),
    ("POST", r"/v1/jobs/[^/]+/\w+", {**recorded.job(), "reason": "by ada"}),
    ("POST", r"/schedules/[^/]+/\w+", recorded.schedule()),
)  # fmt: skip


def answer_of(api: PlayedApi, request: Request) -> Played:
    """The answer to a request, which is kept in ``api.requests``."""
    api.requests.append(request)
    dry = isinstance(request.body, dict) and request.body.get("dry_run")
    if dry and request.path.endswith("/reprocess"):
        return Played(200, PLAN)
    if dry and request.path.endswith("/backfills"):
        return Played(200, BACKFILL_PLAN)
    name = request.path.rpartition("/")[2]
    if request.method == "GET" and name == "runs" and "/dags/" in request.path:
        return Played(200, _page([RUN, RUN | {"state": "FAILED"}], request))
    if request.method == "GET" and name == "periods":
        of_one = "/schedules/" in request.path
        more = {"complete_from": "2026-03-01T00:00:00.000Z"} if of_one else {"from": "2026-02-02", "to": "2026-03-04"}
        return Played(200, {**_page(PERIODS if of_one else MATRIX, request), **more})
    if request.method == "GET" and name == "schedules" and "/apps/" not in request.path:
        return Played(200, _page(GLANCE, request))
    if request.method == "GET" and name in LISTS:
        return Played(200, {**_page(LISTS[name], request), **({"day": "2026-03-02"} if name == "reports" else {})})
    for method, path, content in ANSWERS:
        if request.method == method and re.search(f"{path}$" if path else "", request.path):
            return Played(200, content)
    return Played(404, {"error": {"code": "not_found", "message": f"no {request.path}", "field": None, "hint": None}})


def _page(items: list[View], request: Request) -> Any:
    begin = int(request.query.get("cursor", "0"))
    end = begin + int(request.query.get("limit", "50"))
    return {"items": items[begin:end], "next_cursor": str(end) if end < len(items) else None}
