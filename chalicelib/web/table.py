"""The table of routes: what each takes, which right it needs, what it answers, and the function that serves it.

`routing.register` makes the routes of the API from it. The module of a route is imported at its first request, so
that no request waits for the imports of others. It is called with the request, the full name that the path gives, such
as ``demo.flights.clean``, and the other parts of the path. The first sentence of its docstring is the summary of the
operation in the OpenAPI document, the rest its description.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

from chalicelib.core.access.roles import Right
from chalicelib.web.access import SIGNED, Needs
from chalicelib.web.paging import PAGING

IF_MATCH, IDEMPOTENCY_KEY = "If-Match", "Idempotency-Key"
NS = "/v1/namespaces/{ns}"
APP = NS + "/apps/{app}"
SCHEDULE = APP + "/schedules/{name}"
BACKFILLS = SCHEDULE + "/backfills"
DATASET = NS + "/datasets/{name}"
REPROCESS = NS + "/reprocess"
LETTERS = NS + "/dead-letters"
DAG = APP + "/dags/{name}"
MESSAGE = APP + "/messages/{name}"
JOB = "/v1/jobs/{job_id}"
RUN = "/v1/runs/{run_id}"
FIRE = "/v1/fires/{fire_id}"
LEASE = "/v1/leases/{lease_id}"
# Filters of lists, which `filters` reads.
SPAN = ("day", "from", "to")
OF_ANY = ("app", "workflow", "target", "tag", "q")
OF_ONE = ("workflow", "target", "q")  # of one schedule
AUDITED = ("from", "to", "who", "name", "kind", "outcome")


@dataclass(frozen=True, slots=True)
class Route:
    """One route. Any query parameter, header or body that it does not name is refused, because a misspelt filter must
    not be ignored.

    ``function`` is ``module.name`` in `chalicelib.web.routes`; the name is also that of the operation. ``needs`` is the
    right that the signer must have in the namespace of the path, or of the id in it. ``answer`` names a model of
    `answers`: that of each item if ``paged``, and ``more`` are other fields of a page. ``begun`` is the answer with the
    status 201 or 202 if it is another one. ``body`` names a model of `bodies.BODIES`; with
    ``cloudevents`` the body may also be a CloudEvent, or a batch of them. A function that serves routes of
    several kinds of documents is ``given`` the kind; then ``operation`` and ``text`` are the name and the docstring."""

    method: str
    path: str
    function: str
    needs: Needs
    answer: str | None = None
    body: str | None = None
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    status: tuple[int, ...] = (200,)
    begun: str | None = None
    paged: bool = False
    more: tuple[str, ...] = ()
    cloudevents: bool = False
    operation: str = ""
    text: str = ""
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.operation or self.function.partition(".")[2]

    @property
    def description(self) -> str:
        return self.text or inspect.getdoc(self._function()) or ""

    def handler(self) -> Callable[..., Any]:
        """The function that serves the route."""
        return partial(self._function(), **self.given)

    def _function(self) -> Callable[..., Any]:
        module, _, name = self.function.partition(".")
        function: Callable[..., Any] = getattr(import_module(f"chalicelib.web.routes.{module}"), name)
        return function


def _get(path: str, function: str, needs: Needs, answer: str, *query: str) -> Route:
    return Route("GET", path, function, needs, answer, query=query)


def _page(path: str, function: str, needs: Needs, item: str, *filters: str, more: tuple[str, ...] = ()) -> Route:
    return Route("GET", path, function, needs, item, query=(*filters, *PAGING), paged=True, more=more)


def _put(path: str, function: str, needs: Needs, answer: str, body: str, **more: Any) -> Route:
    return Route("PUT", path, function, needs, answer, body, **{"headers": (IF_MATCH,), "status": (200, 201)} | more)


def _post(
    path: str, function: str, needs: Needs, answer: str, body: str | None = None, *status: int, **more: Any
) -> Route:
    return Route("POST", path, function, needs, answer, body, status=status or (200,), **more)


def _once(path: str, function: str, needs: Needs, answer: str, body: str | None, *status: int, **more: Any) -> Route:
    """A POST that counts once, however often it is sent with one key."""
    return _post(path, function, needs, answer, body, *status, headers=(IDEMPOTENCY_KEY,), **more)


def _begin(path: str, function: str, plan: str, body: str, begun: str) -> Route:
    """A POST that begins something once, or answers its plan for a dry run."""
    return _once(path, function, "operate", plan, body, 200, 201, begun=begun)


def _cancel(path: str, function: str, answer: str) -> Route:
    return _post(path + "/cancel", function, "operate", answer, query=("runs",))


def _delete(path: str, function: str, needs: Needs, **more: Any) -> Route:
    return Route("DELETE", path, function, needs, status=(204,), **{"headers": (IF_MATCH,)} | more)


def _listed(path: str, plural: str, kind: str, text: str) -> Route:
    route = _page(path, "definitions.list_documents", "read", f"Stored{kind.capitalize()}")
    return replace(route, operation=f"list_{plural}", text=text, given={"kind": kind})


def _read(path: str, kind: str, text: str) -> Route:
    route = _get(path, "definitions.get_document", "read", f"Stored{kind.capitalize()}")
    return replace(route, operation=f"get_{kind}", text=text, given={"kind": kind})


def _deleted(path: str, kind: str, text: str, right: Right = "define") -> Route:
    route = _delete(path, "definitions.delete_document", right)
    return replace(route, operation=f"delete_{kind}", text=text, given={"kind": kind})


def _documents(parent: str, plural: str, kind: str, body: str, texts: tuple[str, str, str, str]) -> tuple[Route, ...]:
    """The routes of a kind of stored documents: list, put, get and delete, each with its text."""
    one = f"{parent}/{plural}/{{name}}"
    put = _put(one, "definitions.put_document", "define", "Change", body)
    return (
        _listed(f"{parent}/{plural}", plural, kind, texts[0]),
        replace(put, operation=f"put_{kind}", text=texts[1], given={"kind": kind, "body": body}),
        _read(one, kind, texts[2]),
        _deleted(one, kind, texts[3]),
    )


DOCUMENTS = (
    _read(NS, "namespace", "Read a namespace."),
    _deleted(NS, "namespace", "Delete an empty namespace.", "administer"),
    _listed(NS + "/apps", "apps", "app", "List the apps of a namespace."),
    _listed(APP + "/dags", "dags", "dag", "List the DAGs of an app."),
    _read(APP, "app", "Read an app and the document of its last deployment."),
    *_documents(APP, "workflows", "workflow", "Workflow", (
        "List the workflows of an app.",
        "Create or replace a workflow.",
        "Read a workflow.",
        "Delete a workflow that no schedule refers to.",
    )),
    *_documents(NS, "datasets", "dataset", "Dataset", (
        "List the datasets of a namespace.",
        "Create or replace a dataset.",
        "Read a dataset, with the last objects in its prefix that belong to no partition.",
        "Delete a dataset that no schedule refers to.",
    )),
    *_documents(NS, "policies", "policy", "Policy", (
        "List the throttling policies of a namespace.",
        "Create or replace a throttling policy. It takes effect with the next start.",
        "Read a throttling policy, with the jobs that wait for its starts in order.",
        "Delete a throttling policy that no schedule refers to.",
    )),
    *_documents(NS, "calendars", "calendar", "HolidayCalendar", (
        "List the holiday calendars of a namespace.",
        "Create or replace a holiday calendar. The schedules that name it follow it, except for fires that are "
        "prepared already, about two minutes ahead.",
        "Read a holiday calendar.",
        "Delete a holiday calendar that no schedule names.",
    )),
    *_documents(NS, "pools", "pool", "Pool", (
        "List the pools of a namespace.",
        "Create or replace a pool. A larger pool starts waiting jobs at once; a smaller one lets active runs end "
        "first.",
        "Read a pool, with its units in use, and the jobs that wait for them in order.",
        "Delete a pool that no schedule and no workflow names.",
    )),
)  # fmt: skip

ROUTES = (
    _get("/v1/health", "installation.health", SIGNED, "Health"),
    _get("/v1/whoami", "installation.whoami", SIGNED, "WhoAmI"),
    _get("/v1/openapi.json", "openapi.openapi", SIGNED, "OpenApiDocument"),
    _page("/v1/namespaces", "definitions.list_namespaces", SIGNED, "StoredNamespace"),
    _put(NS, "definitions.put_namespace", "administer", "Change", "Namespace", query=("dry_run",)),
    *DOCUMENTS,
    _post(DATASET + "/partitions", "events.register_partition", "produce", "RegisteredPartition", "NewPartition", 201),
    _page(
        *(DATASET + "/partitions", "events.list_partitions", "read", "RegisteredPartition", "from", "to", "order"),
        more=("at_least",),
    ),
    _get(DATASET + "/partition", "events.get_partition", "read", "OnePartition", "values"),
    _put(
        APP,
        "apps.deploy_app",
        "define",
        "Deployment",
        "App",
        status=(200, 202),
        query=("dry_run", "update_schedules", "restart", "upload"),
        begun="LaterDeployment",
    ),
    _delete(APP, "apps.delete_app", "define"),
    _post(APP + "/uploads", "apps.begin_upload", "define", "BegunUpload", None, 201),
    _get(APP + "/deployments/{upload}", "apps.show_deployment", "read", "LaterDeployment"),
    _post(APP + "/bulk", "apps.change_schedules", "operate", "BulkChange", "Bulk"),
    _post(NS + "/stop", "stops.stop_namespace", "operate", "StopReport", "NewStop"),
    _post(NS + "/start", "stops.start_namespace", "operate", "StopReport", "Start"),
    _post(APP + "/stop", "stops.stop_app", "operate", "StopReport", "NewStop"),
    _post(APP + "/start", "stops.start_app", "operate", "StopReport", "Start"),
    _get(NS + "/stops", "stops.list_stops", "read", "Stops"),
    _get(NS + "/access", "access.get_access", "read", "StoredAccess"),
    _put(NS + "/access", "access.put_access", "administer", "ChangeOfAccess", "Access"),
    _get(NS + "/allowed", "access.get_allowed", "administer", "StoredAllowed"),
    _put(NS + "/allowed", "access.put_allowed", "limit", "Change", "Allowed"),
    _get(NS + "/allowed/proposal", "access.propose_allowed", "administer", "ProposedAllowed"),
    _get(NS + "/grants", "access.get_grants", "read", "StoredGrants"),
    _put(NS + "/grants", "access.put_grants", "administer", "Change", "Grants"),
    _get(NS + "/quotas", "access.get_quotas", "read", "StoredQuotas"),
    _put(NS + "/quotas", "access.put_quotas", "administer", "Change", "Quotas"),
    _page("/v1/prefixes", "access.list_prefixes", SIGNED, "OwnedPrefix", "bucket"),
    _put(NS + "/prefixes", "access.give_prefix", "limit", "OwnedPrefix", "GivenPrefix", headers=()),
    _delete(NS + "/prefixes", "access.take_prefix", "limit", headers=(), query=("bucket", "prefix")),
    _page(NS + "/audit", "access.list_audit", "administer", "AuditRecord", *AUDITED),
    _page("/v1/audit", "access.list_audit_of_all", SIGNED, "AuditRecord", *AUDITED),
    _get(SCHEDULE, "schedules.get_schedule", "read", "StoredSchedule"),
    _page(SCHEDULE + "/versions", "schedules.schedule_versions", "read", "VersionOfSchedule"),
    _get(SCHEDULE + "/preview", "schedules.preview", "read", "Preview", "count"),
    _put(SCHEDULE, "actions.put_schedule", "define", "StoredSchedule", "NewSchedule", query=("dry_run",)),
    _delete(SCHEDULE, "actions.delete_schedule", "define"),
    _post(SCHEDULE + "/enable", "actions.enable_schedule", "operate", "StoredSchedule"),
    _post(SCHEDULE + "/disable", "actions.disable_schedule", "operate", "StoredSchedule"),
    _post(SCHEDULE + "/pause", "actions.pause_schedule", "operate", "StoredSchedule", "Pause"),
    _post(SCHEDULE + "/resume", "actions.resume_schedule", "operate", "StoredSchedule"),
    _post(SCHEDULE + "/skip", "actions.skip_occurrence", "operate", "StoredSchedule", "Occurrence"),
    _post(SCHEDULE + "/unskip", "actions.unskip_occurrence", "operate", "StoredSchedule", "Occurrence"),
    _once(SCHEDULE + "/run", "actions.run_now", "operate", "Accepted", "RunNow", 202),
    _post(SCHEDULE + "/dry-run", "actions.dry_run", "read", "DryRunOfTrigger", "DryRun"),
    _page(APP + "/schedules", "views.list_schedules", "read", "StoredSchedule", "tag", "workflow", "state"),
    _page(NS + "/schedules", "views.find_schedules", "read", "ScheduleInShort", "app", "tag", "workflow", "state", "q"),
    _post(NS + "/glance", "views.glance_schedules", "read", "Glances", "Glance"),
    _get(NS + "/now", "views.show_now", "read", "Now", "rows", "late", *OF_ANY),
    _get(NS + "/fires", "views.list_fires", "read", "Fires", "from", "to", "limit"),
    _page(NS + "/limits", "views.list_limits", "read", "Limit", "name", "all"),
    _get(NS + "/timeline", "views.timeline", "read", "Timeline", "from", "to", "schedule", "workflow", "limit", "ids"),
    _get(NS + "/outcomes", "views.show_outcomes", "read", "Outcomes"),
    _page(
        *(SCHEDULE + "/periods", "views.schedule_periods", "read", "PeriodOfSchedule", "from", "to"),
        more=("complete_from",),
    ),
    _page(
        *(NS + "/periods", "views.list_periods", "read", "PeriodsByDay"),
        *("from", "to", "zone", "schedules", "app", "tag", "workflow", "state", "q"),
        more=("from", "to"),
    ),
    _get(SCHEDULE + "/days", "views.schedule_days", "read", "DaysOfSchedule", "from", "to", "zone"),
    _get(NS + "/graph", "views.graph", "read", "Graph", "around", "up", "down", "limit"),
    _get(RUN + "/lineage", "views.run_lineage", "read", "Lineage", "up", "down"),
    _page(APP + "/messages", "actions.list_messages", "read", "StoredMessage"),
    _put(MESSAGE, "actions.put_message", "define", "StoredMessage", "Message"),
    _get(MESSAGE, "actions.get_message", "read", "StoredMessage"),
    _delete(MESSAGE, "actions.delete_message", "define"),
    _put(DAG, "dags.put_dag", "define", "StoredDag", "NewDag"),
    _get(DAG, "dags.get_dag", "read", "StoredDag"),
    _delete(DAG, "dags.delete_dag", "define"),
    _post(DAG + "/enable", "dags.enable_dag", "operate", "StoredDag"),
    _post(DAG + "/disable", "dags.disable_dag", "operate", "StoredDag"),
    _post(DAG + "/pause", "dags.pause_dag", "operate", "StoredDag", "Pause"),
    _post(DAG + "/resume", "dags.resume_dag", "operate", "StoredDag"),
    _get(DAG + "/why", "dags.why_dag", "read", "WhyDag"),
    _post(DAG + "/skip", "dags.skip_dag", "operate", "StoredDag", "Occurrence"),
    _post(DAG + "/unskip", "dags.unskip_dag", "operate", "StoredDag", "Occurrence"),
    _once(DAG + "/run", "dags.run_dag", "operate", "BegunDag", "RunNow", 202),
    _page(DAG + "/runs", "dags.list_dag_runs", "read", "RunOfDag"),
    _get(DAG + "/runs/{run_id}", "dags.show_dag_run", "read", "RunOfDag"),
    _page(DAG + "/runs/{run_id}/nodes/{node}/elements", "dags.list_elements", "read", "Element"),
    _once(DAG + "/runs/{run_id}/rerun", "dags.rerun_dag", "operate", "RunOfDag", "Rerun"),
    _begin(BACKFILLS, "backfills.begin_backfill", "PlanOfBackfill", "Backfill", "StoredBackfill"),
    _page(BACKFILLS, "backfills.list_backfills", "read", "StoredBackfill"),
    _get(BACKFILLS + "/{backfill_id}", "backfills.show_backfill", "read", "StoredBackfill"),
    _cancel(BACKFILLS + "/{backfill_id}", "backfills.cancel_backfill", "StoredBackfill"),
    _begin(REPROCESS, "backfills.begin_reprocess", "PlanOfReprocess", "Reprocess", "StoredReprocess"),
    _page(REPROCESS, "backfills.list_reprocesses", "read", "StoredReprocess"),
    _get(REPROCESS + "/{reprocess_id}", "backfills.show_reprocess", "read", "StoredReprocess"),
    _cancel(REPROCESS + "/{reprocess_id}", "backfills.cancel_reprocess", "StoredReprocess"),
    _page(*(SCHEDULE + "/jobs", "jobs.schedule_jobs", "read", "Job"), "state", "kind", "late", "q", "from", "to"),
    _get(SCHEDULE + "/why", "jobs.why_schedule", "read", "WhySchedule"),
    _get(MESSAGE + "/why", "jobs.why_message", "read", "WhySchedule"),
    _page(
        *(NS + "/jobs", "jobs.list_jobs", "read", "Job"),
        *("state", "kind", "queued_in", "late", *OF_ANY, "from", "to"),
    ),
    _get(JOB, "jobs.get_job", "read", "Job"),
    _get(JOB + "/why", "jobs.why_job", "read", "WhyJob"),
    _post(JOB + "/cancel", "jobs.cancel_job", "operate", "Record"),
    _post(JOB + "/approve", "jobs.approve_job", "approve", "Job", "Verdict"),
    _post(JOB + "/refuse", "jobs.refuse_job", "approve", "Refused", "Verdict"),
    _page(SCHEDULE + "/runs", "runs.schedule_runs", "read", "Run", "state", "late", *OF_ONE, *SPAN),
    _page(SCHEDULE + "/records", "runs.schedule_records", "read", "Record", "kind", "q", *SPAN),
    _page(MESSAGE + "/runs", "runs.message_runs", "read", "Run", "state", "late", *OF_ONE, *SPAN),
    _page(NS + "/runs", "runs.list_runs", "read", "Run", "state", "late", *OF_ANY, *SPAN),
    _page(NS + "/records", "runs.list_records", "read", "Record", "kind", *OF_ANY, *SPAN),
    _get(RUN, "runs.get_run", "read", "RunInFull"),
    _get(RUN + "/why", "runs.why_run", "read", "WhyRun"),
    _post(RUN + "/cancel", "runs.cancel_run", "operate", "Run", None, 202),
    _post(RUN + "/ping", "runs.ping_run", "operate", "Run", None, 202),
    _once(RUN + "/rerun", "runs.rerun_run", "operate", "Accepted", None, 202),
    _get(RUN + "/logs", "runs.read_logs", "read", "Logs", "attempt", "lines"),
    _get(FIRE, "fires.get_fire", "read", "StateOfFire"),
    _page(FIRE + "/events", "fires.list_events_of_fire", "read", "EventInFire", "state"),
    _page(
        *(APP + "/workflows/{name}/runs", "runs.workflow_runs", "read", "Run"),
        *("state", "late", "app", "target", "tag", "q", *SPAN),
    ),
    _page(NS + "/reports", "runs.read_report", "read", "ReportOfWorkflow", "day", more=("day",)),
    _page(LETTERS, "runs.list_dead_letters", "read", "DeadLetter", "schedule", *OF_ANY, "from", "to"),
    _post(LETTERS + "/{run_id}/redrive", "runs.redrive_dead_letter", "operate", "Redriven", None, 202),
    _post(LETTERS + "/redrive", "runs.redrive_dead_letters", "operate", "RedrivenLetters", "Redrive", 202),
    _delete(LETTERS + "/{run_id}", "runs.drop_dead_letter", "operate", headers=()),
    _once(NS + "/events", "events.post_events", "produce", "AcceptedEvents", "Events", 202, cloudevents=True),
    _post("/v1/workers/{pool}/claim", "workers.claim_runs", "work", "Leases", "Claim"),
    _post(LEASE + "/heartbeat", "workers.beat_heart", "work", "StateOfLease", "Heartbeat"),
    _post(LEASE + "/report", "workers.report_end", "work", "ReportedEnd", "Report"),
    _post(LEASE + "/release", "workers.release_run", "work", "ReportedEnd", "Release"),
)
