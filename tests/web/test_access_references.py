"""Every reference in every request body, to a name of another namespace without a grant (O9).

The references are found in the models of the bodies, so that a new one fails here until it has an example. What exists
elsewhere and is not granted must get the same answer as what does not exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from pydantic import AfterValidator, BaseModel

from chalicelib.core import documents
from chalicelib.core.constraints.registry import CONSTRAINTS
from chalicelib.core.documents import types_of
from chalicelib.web.bodies import BODIES
from tests.support.examples import constraints_shown
from tests.web.conftest import APP, NS, WEEKDAYS, Api, installation, settle_in
from tests.web.signed import Signer, enforcing, member, role
from tests.web.test_uploads import sent

REFERENCES = {documents.check_reference, documents.check_stored}
AUTHOR, ADMIN = Signer(role("ours")), Signer(role("platform"))
LAKE = "/v1/namespaces/lake"
KEYS = ["year", "month", "day"]
EMR = {"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}}
DAY = {"year": "2013", "month": "1", "day": "4"}
Body = dict[str, Any]


def references(body: type[BaseModel]) -> set[str]:
    """The fields of a body, and of all documents in it, that refer to something by its name, as ``Model.field``."""
    found: set[str] = set()
    seen: set[type] = set()

    def walk(annotation: Any, field: str) -> None:
        if isinstance(annotation, AfterValidator):
            named = annotation.func is documents.check_name and field.endswith(".namespace")
            found.update({field} if annotation.func in REFERENCES or named else ())
        elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if annotation in seen:
                return
            seen.add(annotation)
            for name, info in annotation.model_fields.items():
                for part in (*info.metadata, info.annotation):
                    walk(part, f"{annotation.__name__}.{info.alias or name}")
        else:
            for part in get_args(annotation):
                walk(part, field)

    walk(body, "")
    return found


# No user can name the leaf of join rules: a body that has it is refused.
FOUND = sorted(
    (name, field) for name, body in BODIES.items() for field in references(body) if field != "NodesTrigger.nodes"
)
# References that are texts of their own form, so that the walk does not find them.
OTHERS = [("Glance", "Glance.schedules"), ("Reprocess", "Reprocess.run")]


def _constrained(**constraint: Any) -> Callable[[str], Body]:
    return lambda name: {"constraints": [json.loads(json.dumps(constraint).replace("NAME", name))]}


def _triggered(**trigger: Any) -> Callable[[str], Body]:
    return lambda name: {"trigger": json.loads(json.dumps(trigger).replace("NAME", name))}


# What exists in the namespace lake, by the word in a name.
WORKFLOW, SCHEDULE, DATASET, POOL, POLICY, CALENDAR = (
    f"lake.{name}" for name in ("core.clean", "core.nightly", "landed", "spark", "calm", "days")
)
# An example of each field, as a part of a schedule, and a name that exists.
PARTS: dict[str, tuple[Callable[[str], Body], str]] = {
    "NewSchedule.workflow": (lambda name: {"workflow": name}, WORKFLOW),
    "NewSchedule.policy": (lambda name: {"policy": name}, POLICY),
    "NewSchedule.pool": (lambda name: {"pool": name}, POOL),
    "Measured.pool": (_constrained(type="load", of={"pool": "NAME"}, below=0.5, on_unmet="wait"), POOL),
    "TimeTrigger.calendar": (_triggered(type="time", expression="0 5 W * *", calendar="NAME"), CALENDAR),
    "PartitionTrigger.dataset": (_triggered(type="partition", dataset="NAME"), DATASET),
    "SizeTrigger.dataset": (_triggered(type="size", dataset="NAME", bytes="1GB"), DATASET),
    "ProgramStatusTrigger.workflow": (_triggered(type="program_status", workflow="NAME"), WORKFLOW),
    "ProgramStatusTrigger.schedule": (_triggered(type="program_status", workflow="clean", schedule="NAME"), SCHEDULE),
    "EventTrigger.namespace": (_triggered(type="event", event="sales.paid", namespace="NAME"), "lake"),
}
# The fields of constraints that name something, which are tried with each constraint as its page shows it.
NAMING = {"workflow": WORKFLOW, "workflows": WORKFLOW, "dataset": DATASET, "pool": POOL}
PARTS |= {
    f"{kind.__name__}.{field}": (
        _constrained(**{**shown, field: ["NAME"] if isinstance(shown[field], list) else "NAME"}),
        NAMING[field],
    )
    for shown in constraints_shown()
    for kind in CONSTRAINTS
    if shown["type"] in types_of(kind)
    for field in shown.keys() & NAMING.keys()
}
GIVEN: dict[str, tuple[Body, str]] = {
    "GivenPartition.dataset": ({"type": "partition", "dataset": "NAME"}, DATASET),
    "GivenSize.dataset": ({"type": "size", "dataset": "NAME", "bytes": 5}, DATASET),
    "GivenStatus.workflow": ({"type": "program_status", "workflow": "NAME"}, WORKFLOW),
    "GivenStatus.schedule": ({"type": "program_status", "workflow": "clean", "schedule": "NAME"}, SCHEDULE),
    "GivenEvent.namespace": ({"type": "event", "event": "sales.paid", "namespace": "NAME"}, "lake"),
}
FIRES = {"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z"}
RUN = f"{SCHEDULE}.mf3k0p2q.0a1b2c3d4e5f60718293"
# The requests that carry a reference, by the body and the field. NAME is what they name.
USES: dict[tuple[str, str], tuple[list[tuple[str, str, Body]], str]] = {
    ("App", "App.namespace"): ([("PUT", APP, {"namespace": "NAME"})], "lake"),
    ("App", "Node.workflow"): (
        [("PUT", APP, {"dags": {"d": {"trigger": WEEKDAYS, "nodes": {"a": {"workflow": "NAME"}}}}})],
        WORKFLOW,
    ),
    ("App", "Pool.shares"): (
        [("PUT", f"{APP}?dry_run=true", {"pools": {"p": {"size": 4, "shares": {"NAME": {"reserved": 1}}}}})],
        WORKFLOW,
    ),
    ("App", "Workflow.pool"): ([("PUT", APP, {"workflows": {"w": {**EMR, "pool": "NAME"}}})], POOL),
    ("Backfill", "PartitionRange.dataset"): (
        [
            (
                "POST",
                f"{APP}/schedules/daily/backfills",
                {"partitions": {"dataset": "NAME", "values": [DAY]}, "dry_run": dry},
            )
            for dry in (True, False)
        ],
        DATASET,
    ),
    ("Bulk", "Bulk.names"): (
        [("POST", f"{APP}/bulk", {"action": "disable", "names": ["NAME"], "dry_run": dry}) for dry in (True, False)],
        SCHEDULE,
    ),
    ("Bulk", "Bulk.workflow"): (
        [("POST", f"{APP}/bulk", {"action": "disable", "workflow": "NAME", "dry_run": dry}) for dry in (True, False)],
        WORKFLOW,
    ),
    ("Glance", "Glance.schedules"): ([("POST", f"{NS}/glance", {"schedules": ["NAME"]})], SCHEDULE),
    ("Message", "Message.workflow"): (
        [("PUT", f"{APP}/messages/mine", {"due_time": "10m", "workflow": "NAME"})],
        WORKFLOW,
    ),
    ("NewDag", "Node.workflow"): (
        [("PUT", f"{APP}/dags/mine", {"trigger": WEEKDAYS, "nodes": {"a": {"workflow": "NAME"}}})],
        WORKFLOW,
    ),
    ("Pool", "Pool.shares"): (
        [("PUT", f"{NS}/pools/mine", {"size": 4, "shares": {"NAME": {"reserved": 1}}})],
        WORKFLOW,
    ),
    ("Redrive", "Redrive.schedule"): ([("POST", f"{NS}/dead-letters/redrive", {"schedule": "NAME"})], SCHEDULE),
    ("Reprocess", "Reprocess.dataset"): (
        [("POST", f"{NS}/reprocess", {"dataset": "NAME", "partition": DAY, "dry_run": dry}) for dry in (True, False)],
        DATASET,
    ),
    ("Reprocess", "Reprocess.upto"): (
        [("POST", f"{NS}/reprocess", {"dataset": "flights", "partition": DAY, "upto": "NAME", "dry_run": True})],
        WORKFLOW,
    ),
    ("Reprocess", "Reprocess.run"): ([("POST", f"{NS}/reprocess", {"run": "NAME", "dry_run": True})], RUN),
    ("Reprocess", "FireRange.schedule"): (
        [("POST", f"{NS}/reprocess", {"fires": {"schedule": "NAME", **FIRES}, "dry_run": True})],
        SCHEDULE,
    ),
    ("Workflow", "Workflow.pool"): ([("PUT", f"{APP}/workflows/mine", {**EMR, "pool": "NAME"})], POOL),
    **{
        (body, field): ([("PUT", path, wrapped)], DATASET)
        for field, part in (
            ("Workflow.reads", {"reads": ["NAME"]}),
            ("Workflow.produces", {"produces": ["NAME"]}),
            ("Registered.dataset", {"produces": [{"dataset": "NAME", "register": "on_success"}]}),
        )
        for own in ({**EMR, **part},)
        for body, path, wrapped in (
            ("App", APP, {"workflows": {"w": own}}),
            ("Workflow", f"{APP}/workflows/mine", own),
        )
    },
}


def _requests(body: str, field: str) -> tuple[list[tuple[str, str, Body]], str]:
    """The requests with a reference in this field of a body, and the name that exists."""
    if (body, field) in USES:
        return USES[body, field]
    if body == "DryRun":
        event, name = GIVEN[field]
        return [("POST", f"{APP}/schedules/daily/dry-run", {"events": [event]})], name
    part, name = PARTS[field]
    changed = part("NAME")
    if body == "NewDag":
        node = {"workflow": "clean", "constraints": changed.get("constraints", [])}
        return [("PUT", f"{APP}/dags/mine", {"trigger": changed.get("trigger", WEEKDAYS), "nodes": {"a": node}})], name
    schedule = {"workflow": "clean", "trigger": WEEKDAYS, **changed}
    if body == "NewSchedule":
        quiet = {"type": "quiet", "after": "5m", "of": changed.get("trigger")}
        both = {"type": "all", "triggers": [WEEKDAYS, changed.get("trigger")]}
        wrapped = [{**schedule, "trigger": each} for each in (quiet, both)] if "trigger" in changed else []
        return [("PUT", f"{APP}/schedules/mine", each) for each in (schedule, *wrapped)], name
    assert body == "App", (body, field)
    app = {"schedules": {"mine": schedule}, "workflows": {"clean": EMR}}
    return [("PUT", APP, app), ("PUT", f"{APP}?dry_run=true", app), ("PUT", "upload", app)], name


@pytest.fixture(scope="module")
def standing() -> Iterator[Api]:
    """The namespaces ``demo`` and ``lake``. The latter has one thing of each kind, and grants nothing."""
    with installation() as api, pytest.MonkeyPatch.context() as patch:
        settle_in(api)
        trigger = {"type": "partition", "dataset": "flights"}
        api.schedule("daily", workflow="clean", trigger=trigger, enabled=True)
        api.put(LAKE)
        owned = {
            "datasets": {"landed": {"bucket": "lake", "prefix": "landed/", "keys": KEYS}},
            "workflows": {"clean": EMR},
            "schedules": {"nightly": {"workflow": "clean", "trigger": WEEKDAYS, "enabled": True}},
            "pools": {"spark": {"size": 4}},
            "policies": {"calm": {"max_events": 3, "interval": "1m"}},
            "calendars": {"days": {"days": ["12-25"]}},
        }
        api.put(f"{LAKE}/apps/core", owned)
        api.put(
            f"{NS}/access",
            {
                "members": [
                    {"member": member(name), "roles": [role_]}
                    for name, role_ in (("boss", "admin"), ("ours", "author"))
                ]
            },
        )
        api.put(f"{LAKE}/access", {"members": [{"member": member("boss"), "roles": ["admin"]}]})
        enforcing(patch)
        yield api


def absent_of(name: str) -> str:
    """A name of the same form that nothing has."""
    return (
        "nobody"
        if name == "lake"
        else name.replace(".clean", ".absent")
        .replace(".nightly", ".nowhere")
        .replace("landed", "lorded")
        .replace("spark", "spork")
        .replace("calm", "palm")
        .replace(".days", ".dogs")
    )


def answer(method: str, path: str, body: Body, name: str) -> tuple[int, str]:
    """The answer to a request that names something, with what differs between two requests left out."""
    content = json.loads(json.dumps(body).replace("NAME", name))
    if path == "upload":
        _, begun = AUTHOR.send("POST", f"{APP}/uploads")
        status, view = AUTHOR.send(method, sent(begun, content).replace("/orders", "/flights"))
    else:
        status, view = AUTHOR.send(method, path, content)
    if status < 300 and path.endswith("/mine"):
        ADMIN.send("DELETE", path)
    text = json.dumps(view).replace(name, "NAME")
    return status, re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "T", text)


@pytest.mark.parametrize(("body", "field"), [*FOUND, *OTHERS])
@pytest.mark.usefixtures("standing")
def test_o9_a_foreign_name_without_a_grant_reads_as_missing(body: str, field: str) -> None:
    known = (body, field) in USES or field in GIVEN or field in PARTS
    assert known, f"a new reference {field} in the body {body}: add an example to USES, PARTS or GIVEN"
    requests, name = _requests(body, field)
    for method, path, content in requests:
        there, nowhere = (answer(method, path, content, each) for each in (name, absent_of(name)))
        assert there == nowhere, (method, path)
        assert there[0] < 500, there
        may_pass = body in ("DryRun", "Bulk", "Glance", "Redrive") or field == "Pool.shares"
        assert there[0] >= 400 or may_pass, f"{method} {path} accepts {name}: {there}"


def test_the_walk_finds_references_in_each_kind_of_document() -> None:
    assert {field for _, field in FOUND} >= {"NewSchedule.workflow", "Fresh.workflows", "EventTrigger.namespace"}
    assert len(FOUND) > 35


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize("whole", [True, False])
def test_o9_an_edge_from_a_foreign_node_hides_its_target(whole: bool) -> None:
    """Only the last nodes of a DAG may have a target like this one, whose runs report no end."""
    queue = "https://sqs.us-east-1.amazonaws.com/123456789012/sluice-target-lake-q"
    sends = {"target": {"type": "sqs", "queue_url": queue}}
    assert ADMIN.status("PUT", f"{LAKE}/apps/core/workflows/send", sends) in (200, 201)
    nodes = {"a": {"workflow": "NAME"}, "b": {"workflow": "clean"}}
    dag = {"trigger": WEEKDAYS, "nodes": nodes, "edges": [{"from": "a", "to": "b"}]}
    app = {"workflows": {"clean": EMR}, "dags": {"d": dag}}
    path, body = (f"{APP}?dry_run=true", app) if whole else (f"{APP}/dags/mine", dag)
    there, nowhere = (answer("PUT", path, body, name) for name in ("lake.core.send", "lake.core.lend"))
    assert there == nowhere
    assert json.loads(there[1])["error"]["code"] == "unknown_reference"
