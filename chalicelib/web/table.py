"""The table of routes: what each takes, which right it needs, what it answers, and the function that serves it.

`routing.register` makes the routes of the API from it. The module of a route is imported at its first request, so
that no request waits for the imports of others. The first sentence of the function's docstring is the summary of the
operation in the OpenAPI document, the rest its description.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

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
LEASE = "/v1/leases/{lease_id}"
AUDITED = ("from", "to", "who", "name", "kind", "outcome")


@dataclass(frozen=True, slots=True)
class Route:
    """One route. Any query parameter, header or body that it does not name is refused, because a misspelt filter must
    not be ignored.

    ``function`` is ``module.name`` in `chalicelib.web.routes`; the name is also that of the operation. ``needs`` is the
    right that the signer must have in the namespace of the path, or of the id in it. ``answer`` names a model of
    `answers`: that of each item if ``paged``, and ``more`` are other fields of a page. ``begun`` is the answer with the
    status 201 or 202 if it is another one. ``body`` names a model of `bodies.BODIES`."""

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

    @property
    def name(self) -> str:
        return self.function.partition(".")[2]

    def handler(self) -> Callable[..., Any]:
        """The function that serves the route."""
        handler: Callable[..., Any] = getattr(
            import_module(f"chalicelib.web.routes.{self.function.partition('.')[0]}"), self.name
        )
        return handler


def _get(path: str, function: str, needs: Needs, answer: str, *query: str) -> Route:
    return Route("GET", path, function, needs, answer, query=query)


def _page(path: str, function: str, needs: Needs, item: str, *filters: str, more: tuple[str, ...] = ()) -> Route:
    return Route("GET", path, function, needs, item, query=(*filters, *PAGING), paged=True, more=more)


def _put(path: str, function: str, needs: Needs, answer: str, body: str, **more: Any) -> Route:
    return Route("PUT", path, function, needs, answer, body, **{"headers": (IF_MATCH,), "status": (200, 201)} | more)


def _post(path: str, function: str, needs: Needs, answer: str, body: str | None = None, **more: Any) -> Route:
    return Route("POST", path, function, needs, answer, body, **more)


def _once(path: str, function: str, needs: Needs, answer: str, body: str | None = None, **more: Any) -> Route:
    """A POST that counts once, however often it is sent with one key."""
    return _post(path, function, needs, answer, body, headers=(IDEMPOTENCY_KEY,), **more)


def _delete(path: str, function: str, needs: Needs, **more: Any) -> Route:
    return Route("DELETE", path, function, needs, status=(204,), **{"headers": (IF_MATCH,)} | more)


ROUTES = (
    _get("/v1/health", "installation.health", SIGNED, "Health"),
    _get("/v1/whoami", "installation.whoami", SIGNED, "WhoAmI"),
    _get("/v1/openapi.json", "openapi.openapi", SIGNED, "OpenApiDocument"),
    _page("/v1/namespaces", "definitions.list_namespaces", SIGNED, "StoredNamespace"),
    _put(NS, "definitions.put_namespace", "administer", "Change", "Namespace", query=("dry_run",)),
    _get(NS, "definitions.get_namespace", "read", "StoredNamespace"),
    _delete(NS, "definitions.delete_namespace", "administer"),
    _page(NS + "/apps", "definitions.list_apps", "read", "StoredApp"),
    _get(APP, "definitions.get_app", "read", "StoredApp"),
    _page(APP + "/workflows", "definitions.list_workflows", "read", "StoredWorkflow"),
    _put(APP + "/workflows/{name}", "definitions.put_workflow", "define", "Change", "Workflow"),
    _get(APP + "/workflows/{name}", "definitions.get_workflow", "read", "StoredWorkflow"),
    _delete(APP + "/workflows/{name}", "definitions.delete_workflow", "define"),
    _page(NS + "/datasets", "definitions.list_datasets", "read", "StoredDataset"),
    _put(DATASET, "definitions.put_dataset", "define", "Change", "Dataset"),
    _get(DATASET, "definitions.get_dataset", "read", "StoredDataset"),
    _delete(DATASET, "definitions.delete_dataset", "define"),
    _page(NS + "/policies", "definitions.list_policies", "read", "StoredPolicy"),
    _put(NS + "/policies/{name}", "definitions.put_policy", "define", "Change", "Policy"),
    _get(NS + "/policies/{name}", "definitions.get_policy", "read", "StoredPolicy"),
    _delete(NS + "/policies/{name}", "definitions.delete_policy", "define"),
    _page(NS + "/calendars", "definitions.list_calendars", "read", "StoredCalendar"),
    _put(NS + "/calendars/{name}", "definitions.put_calendar", "define", "Change", "HolidayCalendar"),
    _get(NS + "/calendars/{name}", "definitions.get_calendar", "read", "StoredCalendar"),
    _delete(NS + "/calendars/{name}", "definitions.delete_calendar", "define"),
    _page(NS + "/pools", "definitions.list_pools", "read", "StoredPool"),
    _put(NS + "/pools/{name}", "definitions.put_pool", "define", "Change", "Pool"),
    _get(NS + "/pools/{name}", "definitions.get_pool", "read", "StoredPool"),
    _delete(NS + "/pools/{name}", "definitions.delete_pool", "define"),
    _post(
        DATASET + "/partitions",
        "partitions.register_partition",
        "produce",
        "RegisteredPartition",
        "NewPartition",
        status=(201,),
    ),
    _page(
        DATASET + "/partitions",
        "partitions.list_partitions",
        "read",
        "RegisteredPartition",
        "from",
        "to",
        "order",
        more=("at_least",),
    ),
    _get(DATASET + "/partition", "partitions.get_partition", "read", "OnePartition", "values"),
    _put(
        APP,
        "apps.deploy_app",
        "define",
        "Deployment",
        "App",
        headers=(),
        status=(200, 202),
        query=("dry_run", "update_schedules", "upload"),
        begun="LaterDeployment",
    ),
    _delete(APP, "apps.delete_app", "define"),
    _post(APP + "/uploads", "apps.begin_upload", "define", "BegunUpload", status=(201,)),
    _get(APP + "/deployments/{upload}", "apps.show_deployment", "read", "LaterDeployment"),
    _post(APP + "/bulk", "apps.change_schedules", "operate", "BulkChange", "Bulk"),
    _get(NS + "/access", "access.get_access", "read", "StoredAccess"),
    _put(NS + "/access", "access.put_access", "administer", "ChangeOfAccess", "Access"),
    _get(NS + "/allowed", "access.get_allowed", "administer", "StoredAllowed"),
    _put(NS + "/allowed", "access.put_allowed", "limit", "Change", "Allowed"),
    _get(NS + "/allowed/proposal", "access.propose_allowed", "administer", "ProposedAllowed"),
    _get(NS + "/grants", "grants.get_grants", "read", "StoredGrants"),
    _put(NS + "/grants", "grants.put_grants", "administer", "Change", "Grants"),
    _get(NS + "/quotas", "quotas.get_quotas", "read", "StoredQuotas"),
    _put(NS + "/quotas", "quotas.put_quotas", "administer", "Change", "Quotas"),
    _page("/v1/prefixes", "prefixes.list_prefixes", SIGNED, "OwnedPrefix", "bucket"),
    _put(NS + "/prefixes", "prefixes.give_prefix", "limit", "OwnedPrefix", "GivenPrefix", headers=()),
    _delete(NS + "/prefixes", "prefixes.take_prefix", "limit", headers=(), query=("bucket", "prefix")),
    _page(NS + "/audit", "audit.list_audit", "administer", "AuditRecord", *AUDITED),
    _page("/v1/audit", "audit.list_audit_of_all", SIGNED, "AuditRecord", *AUDITED),
    _get(SCHEDULE, "schedules.get_schedule", "read", "StoredSchedule"),
    _page(SCHEDULE + "/versions", "schedules.schedule_versions", "read", "VersionOfSchedule"),
    _get(SCHEDULE + "/preview", "schedules.preview", "read", "Preview", "count"),
    _put(SCHEDULE, "actions.put_schedule", "define", "StoredSchedule", "NewSchedule"),
    _delete(SCHEDULE, "actions.delete_schedule", "define"),
    _post(SCHEDULE + "/enable", "actions.enable_schedule", "operate", "StoredSchedule"),
    _post(SCHEDULE + "/disable", "actions.disable_schedule", "operate", "StoredSchedule"),
    _post(SCHEDULE + "/pause", "actions.pause_schedule", "operate", "StoredSchedule", "Pause"),
    _post(SCHEDULE + "/resume", "actions.resume_schedule", "operate", "StoredSchedule"),
    _post(SCHEDULE + "/skip", "actions.skip_occurrence", "operate", "StoredSchedule", "Occurrence"),
    _post(SCHEDULE + "/unskip", "actions.unskip_occurrence", "operate", "StoredSchedule", "Occurrence"),
    _once(SCHEDULE + "/run", "actions.run_now", "operate", "Accepted", "RunNow", status=(202,)),
    _post(SCHEDULE + "/dry-run", "actions.dry_run", "read", "DryRunOfTrigger", "DryRun"),
    _page(APP + "/schedules", "present.list_schedules", "read", "StoredSchedule", "tag", "workflow", "state"),
    _page(
        NS + "/schedules", "present.find_schedules", "read", "ScheduleInShort", "app", "tag", "workflow", "state", "q"
    ),
    _post(NS + "/glance", "present.glance_schedules", "read", "Glances", "Glance"),
    _get(NS + "/now", "present.show_now", "read", "Now", "rows"),
    _get(NS + "/fires", "present.list_fires", "read", "Fires", "from", "to", "limit"),
    _page(NS + "/limits", "present.list_limits", "read", "Limit", "name"),
    _get(NS + "/timeline", "spans.timeline", "read", "Timeline", "from", "to", "schedule", "workflow", "limit", "ids"),
    _get(NS + "/outcomes", "spans.show_outcomes", "read", "Outcomes"),
    _get(SCHEDULE + "/days", "spans.schedule_days", "read", "DaysOfSchedule", "from", "to", "zone"),
    _get(NS + "/graph", "graph.graph", "read", "Graph", "around", "up", "down", "limit"),
    _get(RUN + "/lineage", "graph.run_lineage", "read", "Lineage", "up", "down"),
    _page(APP + "/messages", "messages.list_messages", "read", "StoredMessage"),
    _put(MESSAGE, "messages.put_message", "define", "StoredMessage", "Message"),
    _get(MESSAGE, "messages.get_message", "read", "StoredMessage"),
    _delete(MESSAGE, "messages.delete_message", "define"),
    _page(APP + "/dags", "dags.list_dags", "read", "StoredDag"),
    _put(DAG, "dags.put_dag", "define", "StoredDag", "NewDag"),
    _get(DAG, "dags.get_dag", "read", "StoredDag"),
    _delete(DAG, "dags.delete_dag", "define"),
    _post(DAG + "/enable", "dags.enable_dag", "operate", "StoredDag"),
    _post(DAG + "/disable", "dags.disable_dag", "operate", "StoredDag"),
    _once(DAG + "/run", "dags.run_dag", "operate", "BegunDag", "RunNow", status=(202,)),
    _page(DAG + "/runs", "dags.list_dag_runs", "read", "RunOfDag"),
    _get(DAG + "/runs/{run_id}", "dags.show_dag_run", "read", "RunOfDag"),
    _once(DAG + "/runs/{run_id}/rerun", "dags.rerun_dag", "operate", "RunOfDag", "Rerun"),
    _once(
        BACKFILLS,
        "backfills.begin_backfill",
        "operate",
        "PlanOfBackfill",
        "Backfill",
        status=(200, 201),
        begun="StoredBackfill",
    ),
    _page(BACKFILLS, "backfills.list_backfills", "read", "StoredBackfill"),
    _get(BACKFILLS + "/{backfill_id}", "backfills.show_backfill", "read", "StoredBackfill"),
    _post(
        BACKFILLS + "/{backfill_id}/cancel", "backfills.cancel_backfill", "operate", "StoredBackfill", query=("runs",)
    ),
    _once(
        REPROCESS,
        "reprocess.begin_reprocess",
        "operate",
        "PlanOfReprocess",
        "Reprocess",
        status=(200, 201),
        begun="StoredReprocess",
    ),
    _page(REPROCESS, "reprocess.list_reprocesses", "read", "StoredReprocess"),
    _get(REPROCESS + "/{reprocess_id}", "reprocess.show_reprocess", "read", "StoredReprocess"),
    _post(
        REPROCESS + "/{reprocess_id}/cancel",
        "reprocess.cancel_reprocess",
        "operate",
        "StoredReprocess",
        query=("runs",),
    ),
    _page(SCHEDULE + "/jobs", "jobs.schedule_jobs", "read", "Job"),
    _get(SCHEDULE + "/why", "jobs.why_schedule", "read", "WhySchedule"),
    _get(MESSAGE + "/why", "jobs.why_message", "read", "WhySchedule"),
    _page(NS + "/jobs", "jobs.list_jobs", "read", "Job", "state", "kind", "queued_in"),
    _get(JOB, "jobs.get_job", "read", "Job"),
    _get(JOB + "/why", "jobs.why_job", "read", "WhyJob"),
    _post(JOB + "/cancel", "jobs.cancel_job", "operate", "Record"),
    _post(JOB + "/approve", "jobs.approve_job", "approve", "Job", "Verdict"),
    _post(JOB + "/refuse", "jobs.refuse_job", "approve", "Refused", "Verdict"),
    _page(SCHEDULE + "/runs", "runs.schedule_runs", "read", "Run", "state", "day"),
    _page(SCHEDULE + "/records", "runs.schedule_records", "read", "Record"),
    _page(MESSAGE + "/runs", "runs.message_runs", "read", "Run"),
    _page(NS + "/runs", "runs.list_runs", "read", "Run", "state", "day"),
    _page(NS + "/records", "runs.list_records", "read", "Record", "day"),
    _get(RUN, "runs.get_run", "read", "RunInFull"),
    _get(RUN + "/why", "runs.why_run", "read", "WhyRun"),
    _post(RUN + "/cancel", "runs.cancel_run", "operate", "Run", status=(202,)),
    _post(RUN + "/ping", "runs.ping_run", "operate", "Run", status=(202,)),
    _once(RUN + "/rerun", "runs.rerun_run", "operate", "Accepted", status=(202,)),
    _get(RUN + "/logs", "runs.read_logs", "read", "Logs", "attempt", "lines"),
    _page(APP + "/workflows/{name}/runs", "runs.workflow_runs", "read", "Run", "state"),
    _page(NS + "/reports", "reports.read_report", "read", "ReportOfWorkflow", "day", more=("day",)),
    _page(LETTERS, "dead_letters.list_dead_letters", "read", "DeadLetter", "schedule"),
    _post(LETTERS + "/{run_id}/redrive", "dead_letters.redrive_dead_letter", "operate", "Redriven", status=(202,)),
    _post(
        LETTERS + "/redrive",
        "dead_letters.redrive_dead_letters",
        "operate",
        "RedrivenLetters",
        "Redrive",
        status=(202,),
    ),
    _delete(LETTERS + "/{run_id}", "dead_letters.drop_dead_letter", "operate", headers=()),
    _once(NS + "/events", "events.post_events", "produce", "AcceptedEvents", "Events", status=(202,)),
    _post("/v1/workers/{pool}/claim", "workers.claim_runs", "work", "Leases", "Claim"),
    _post(LEASE + "/heartbeat", "workers.beat_heart", "work", "StateOfLease", "Heartbeat"),
    _post(LEASE + "/report", "workers.report_end", "work", "ReportedEnd", "Report"),
    _post(LEASE + "/release", "workers.release_run", "work", "ReportedEnd", "Release"),
)
