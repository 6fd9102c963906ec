"""A tour of the API: every route is called at least once with success, on one installation."""

from __future__ import annotations

import json
from typing import Any

import boto3

from chalicelib.core.results import Result
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.flow.runs import complete
from chalicelib.wiring import ports
from tests.support.dags import dag
from tests.support.schedules import BY_DAY, after
from tests.web import large_fires
from tests.web.conftest import APP, NS, WEEKDAYS, Api
from tests.web.test_approvals import ADA, BY_OWNER, says
from tests.web.test_dead_letters import MISSING

EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
DAY = {"year": "2013", "month": "1", "day": "1"}
FLIGHTS = {"type": "partition", "dataset": "flights"}
ANN = {"worker": "ann"}


def walk(api: Api) -> None:
    """Call every route. The app ``demo.flights`` is deployed."""
    _definitions(api)
    _schedules(api)
    _runs(api)
    _approvals(api)
    _workers(api)
    _dead_letters(api)
    _backfills(api)
    _dags(api)
    _elements(api)
    _messages(api)
    _reports(api)
    _present(api)
    _deletions(api)


def _definitions(api: Api) -> None:
    for path in ("/v1/health", "/v1/openapi.json", "/v1/namespaces", NS, f"{NS}/apps", APP):
        api.get(path)
    api.put(f"{NS}", {"description": "the demo", "tags": {"team": "a"}})
    app = {"workflows": {"w": {"target": EMR}}, "schedules": {"s": {"workflow": "w", "trigger": WEEKDAYS}}}
    api.put(f"{NS}/apps/orders?dry_run=true", app)
    api.put(f"{NS}/apps/orders", app)
    api.put(f"{NS}/apps/orders", app | {"owner": "ada"})
    api.put(f"{APP}/workflows/join", {"target": EMR, "retries": {"attempts": 2}, "pool": None})
    bucket = {"bucket": "lake", "prefix": "raw/x/", "keys": ["event-day", "_hour"]}
    documents = {
        f"{NS}/datasets": ("x", bucket),
        f"{NS}/policies": ("calm", {"max_events": 5}),
        f"{NS}/calendars": ("france", {"days": ["12-25", {"from": "2026-05-14", "to": "2026-05-15"}]}),
        f"{NS}/pools": ("spark", {"size": 5, "shares": {"orders": {"reserved": 2}}}),
        f"{APP}/workflows": ("other", {"target": EMR}),
    }
    for path, (name, document) in documents.items():
        api.put(f"{path}/{name}", document)
        api.get(f"{path}/{name}")
        api.get(path)
    api.post(f"{NS}/datasets/flights/partitions", {"partition": DAY})
    _upload(api)
    api.put(f"{NS}/access", {"members": [{"member": "arn:aws:iam::123456789012:role/data", "roles": ["admin"]}]})
    api.get(f"{NS}/access")
    api.put(f"{NS}/grants", {"grants": [{"to": "marketing", "run": ["flights.clean"], "datasets": ["flights"]}]})
    api.get(f"{NS}/grants")
    queues = {"queues": ["arn:aws:sqs:eu-west-1:123456789012:sluice-target-*"], "hosts": ["hooks.example.com"]}
    api.put(f"{NS}/allowed", queues)
    api.get(f"{NS}/allowed")
    api.get(f"{NS}/allowed/proposal")
    api.put(f"{NS}/allowed", {})
    api.put(f"{NS}/quotas", {"schedules": 1000})
    api.get(f"{NS}/quotas")
    given = {"bucket": "lake", "prefix": "raw/orders/", "nested": True}
    api.put(f"{NS}/prefixes", given)
    api.get("/v1/prefixes?bucket=lake")
    api.delete(f"{NS}/prefixes?bucket=lake&prefix=raw/orders/")
    api.get(f"{NS}/audit?kind=access&limit=2")
    api.get("/v1/audit?name=demo.flights")
    api.get(f"{NS}/datasets/flights/partitions")
    api.get(f"{NS}/datasets/flights/partitions?from=2013&order=desc")
    api.get(f"{NS}/datasets/flights/partition?values=2013/1/1")


def _upload(api: Api) -> None:
    begun = api.post(f"{NS}/apps/uploaded/uploads")["upload"]
    where = {"Bucket": ports().settings.control_bucket, "Key": f"uploads/demo.uploaded/{begun}.json"}
    boto3.client("s3").put_object(**where, Body=b'{"description": "sent apart"}')
    api.put(f"{NS}/apps/uploaded?upload={begun}&dry_run=true")
    assert api.send("PUT", f"{NS}/apps/uploaded?upload={begun}").status_code == 202
    api.work()
    api.get(f"{NS}/apps/uploaded/deployments/{begun}")


def _schedules(api: Api) -> None:
    api.schedule("daily", workflow="clean", trigger=FLIGHTS, by=BY_DAY, enabled=True, policy="calm")
    queue = {"type": "sqs", "queue_url": api.sqs.create_queue(QueueName="target")["QueueUrl"]}
    api.schedule("nightly", enabled=True, notify=[{"on": ["failed"], "to": queue}], deadline={"end_within": "2h"})
    one = f"{APP}/schedules/nightly"
    api.schedule("nightly", enabled=True, priority=3)
    for path in ("", "/jobs", "/runs", "/records", "/why", "/versions", "/preview?count=2"):
        api.get(one + path)
    api.get(f"{APP}/schedules")
    skipped = {"at": "2100-01-01T05:00:00Z"}
    for action, body in (("pause", {}), ("resume", None), ("skip", skipped), ("unskip", skipped)):
        api.post(f"{one}/{action}", body)
    api.post(f"{one}/dry-run", {"events": [{"type": "time"}]})
    api.post(f"{APP}/schedules/daily/dry-run", {"events": [FLIGHTS | {"partition": DAY}]})
    for action in ("disable", "enable"):
        api.post(f"{one}/{action}")
    api.post(f"{APP}/bulk", {"action": "disable", "workflow": "clean"})
    api.post(f"{APP}/bulk", {"action": "enable", "workflow": "clean"})
    api.post(f"{APP}/bulk", {"action": "pause", "names": ["nightly", "gone"], "mode": "drain", "dry_run": True})
    for place in (NS, APP):
        api.post(f"{place}/stop", {"reason": "repair"})
        api.get(f"{NS}/stops")
        api.get(f"{NS}/now")
        api.post(f"{place}/start", {})
    api.post(f"{NS}/events", {"events": [{"type": "closed", "payload": {"n": 1}}]})


def _runs(api: Api) -> None:
    later = api.post(f"{APP}/schedules/nightly/run", {"at": "2100-01-01T05:00:00Z"})["job_id"]
    for path in ("", "/why"):
        api.get(f"/v1/jobs/{later}{path}")
    api.get(f"{APP}/schedules/nightly/why")
    api.get(f"{NS}/jobs")
    api.post(f"/v1/jobs/{later}/cancel")
    run = api.post(f"{APP}/schedules/daily/run", {"partition": DAY, "properties": {"a": [1]}})["job_id"]
    api.work()
    for path in ("", "/why", "/logs"):
        api.get(f"/v1/runs/{run}{path}")
    api.post(f"/v1/runs/{run}/ping")
    api.post(f"/v1/runs/{run}/cancel")
    _ends(api, run, "FAILED")
    again = api.post(f"/v1/runs/{run}/rerun")
    api.work()
    assert again
    sent = api.post(f"{APP}/schedules/nightly/run")["job_id"]
    api.work()
    for path in ("", "/why", "/logs"):
        api.get(f"/v1/runs/{sent}{path}")
    api.get(f"/v1/runs/{run}/lineage")
    for path in (f"{NS}/outcomes", f"{NS}/timeline?ids=true", f"{NS}/graph?around=workflow:demo.flights.clean"):
        api.get(path)
    api.get(f"{APP}/schedules/daily/days")
    api.get(f"{APP}/schedules/nightly/periods")
    api.get(f"{NS}/periods")
    for path in (f"{NS}/runs", f"{NS}/records", f"{APP}/schedules/daily/runs", f"{APP}/workflows/clean/runs"):
        api.get(path)
    api.get(f"{NS}/policies/calm")
    fire = large_fires.put("demo.flights.nightly", events=300, failed=(7,))
    for path in (f"/v1/fires/{fire}", f"/v1/fires/{fire}/events?state=FAILED", f"{NS}/runs"):
        api.get(path)


def _ends(api: Api, run_id: str, state: Any) -> None:
    found = ports().runs.attempts(run_id)[-1]
    complete.advance_run(ports(), found.run_id, found.attempt, RunUpdate(state, ports().clock.now(), "as it said"))
    api.work()


def _approvals(api: Api) -> None:
    for verdict in ("approve", "refuse"):
        api.schedule(f"asks-{verdict}", constraints=[BY_OWNER])
        job = api.post(f"{APP}/schedules/asks-{verdict}/run")["job_id"]
        api.work()
        api.get(f"/v1/jobs/{job}/why")
        status, body = says(ADA, job, verdict)
        assert status == 200
        api.seen("POST", f"/v1/jobs/{job}/{verdict}", status, body)
        api.work()


def _workers(api: Api) -> None:
    api.put(f"{APP}/workflows/pulled", {"target": {"type": "worker", "pool": "etl", "arguments": ["--fast"]}})
    api.schedule("pull", workflow="pulled", enabled=True)
    for end in ("report", "release"):
        api.post(f"{APP}/schedules/pull/run")
        api.work()
        [lease] = api.post("/v1/workers/demo.etl/claim", {**ANN, "wait": 0})["leases"]
        path = f"/v1/leases/{lease['lease']}"
        if end == "report":
            api.post(f"{path}/heartbeat", {**ANN, "message": "half", "metrics": {"rows": 7}})
        api.post(f"{path}/{end}", ANN | ({"state": "succeeded", "output": "one"} if end == "report" else {}))
        api.get(f"/v1/runs/{lease['run_id']}")
        api.get(f"/v1/runs/{lease['run_id']}/logs")
        api.work()


def _present(api: Api) -> None:
    """The routes about many schedules, while jobs wait: for an approval, on hold, and in a queue."""
    one = {"type": "concurrency", "max": 1, "on_unmet": "wait"}
    api.schedule("asked", constraints=[BY_OWNER])
    api.post(f"{APP}/schedules/asked/run")
    api.schedule("narrow", workflow="clean", constraints=[one], enabled=True)
    for key in ("1", "2", "3"):
        api.post(f"{APP}/schedules/narrow/run", idempotency_key=key)
    api.work()
    for path in ("/schedules?q=NARROW", "/schedules?app=flights&limit=2", "/now", "/fires", "/limits"):
        api.get(NS + path)
    for name in ("workflow:demo.flights.clean", "pool:demo.spark", "policy:demo.calm", "schedule:flights.narrow"):
        api.get(f"{NS}/limits?name={name}")
    api.get(f"{NS}/jobs?queued_in=workflow:demo.flights.clean&state=PENDING_LAUNCH&kind=run_now")
    api.post(f"{NS}/glance", {"schedules": ["flights.narrow", "demo.flights.nightly", "flights.none"]})
    api.get("/v1/whoami")


def _dead_letters(api: Api) -> None:
    letters = f"{NS}/dead-letters"
    api.put(f"{APP}/workflows/lost", {"target": {"type": "sqs", "queue_url": MISSING}})
    made = []
    for name in ("one", "two", "three"):
        api.schedule(name, workflow="lost")
        made.append(api.post(f"{APP}/schedules/{name}/run")["job_id"])
        api.work()
    api.get(letters)
    target = api.sqs.create_queue(QueueName="target")["QueueUrl"]
    api.put(f"{APP}/workflows/lost", {"target": {"type": "sqs", "queue_url": target}})
    api.post(f"{letters}/{made[0]}/redrive")
    api.post(f"{letters}/redrive", {"schedule": "flights.two"})
    api.delete(f"{letters}/{made[2]}")


def _backfills(api: Api) -> None:
    api.put(f"{APP}/schedules/next", after("clean", "join", by=BY_DAY))
    every = f"{APP}/schedules/daily/backfills"
    free = DAY | {list(DAY)[-1]: "28"}  # no job of the schedule is in flight for it
    part = {"partitions": {"values": [DAY, free]}}
    api.post(every, part | {"dry_run": True})
    begun = api.post(every, part)["backfill_id"]
    api.work()
    api.get(every)
    api.get(f"{every}/{begun}")
    api.post(f"{every}/{begun}/cancel")
    again = {"dataset": "flights", "partition": DAY}
    api.post(f"{NS}/reprocess", again | {"dry_run": True})
    begun = api.post(f"{NS}/reprocess", again)["reprocess_id"]
    api.get(f"{NS}/reprocess")
    api.get(f"{NS}/reprocess/{begun}")
    api.post(f"{NS}/reprocess/{begun}/cancel")


def _dags(api: Api) -> None:
    one = f"{APP}/dags/whole"
    nodes = {"a": {"workflow": "clean"}, "b": {"workflow": "join"}}
    either = [{"type": "partition", "dataset": "flights"}, {"type": "time", "expression": "0 5 * * *"}]
    api.put(one, dag("a -> b", nodes=nodes, by=[], trigger={"type": "any", "triggers": either}, enabled=True))
    begun = api.post(f"{one}/run")["run_id"]
    api.work()
    api.get(one)
    api.get(f"{APP}/dags")
    api.get(f"{one}/runs")
    run = api.get(f"{one}/runs/{begun}")
    _ends(api, run["nodes"]["a"]["run_id"], "FAILED")
    api.get(f"/v1/runs/{run['nodes']['a']['run_id']}")
    api.get(f"{one}/why")
    [at] = api.get(f"{APP}/schedules/whole~/preview?count=1")["items"]
    for action in ("skip", "unskip"):
        api.post(f"{one}/{action}", {"at": at})
    api.post(f"{one}/runs/{begun}/rerun", {"from": "a"})
    api.work()
    api.post(f"{one}/pause", {"mode": "hold"})
    for action in ("resume", "disable", "enable"):
        api.post(f"{one}/{action}")


def _elements(api: Api) -> None:
    """A node with an element of each state in the lists of an answer: one fails, one runs."""
    one = f"{APP}/dags/mapped"
    nodes = {"a": {"workflow": "clean"}, "b": {"workflow": "join", "each": {"of": "a", "concurrency": 2}}}
    trigger = {"type": "time", "expression": "0 5 * * *"}
    api.put(one, dag("a -> b", nodes=nodes, by=[], trigger=trigger, enabled=True))
    begun = api.post(f"{one}/run")["run_id"]
    api.work()
    first = api.get(f"{one}/runs/{begun}")["nodes"]["a"]["run_id"]
    handed_on = RunUpdate("SUCCEEDED", ports().clock.now(), result=Result(["x.csv", 2]))
    complete.advance_run(ports(), first, 1, handed_on)
    api.work()
    elements = f"{one}/runs/{begun}/nodes/b/elements"
    failed = api.get(elements)["items"][0]["run_id"]
    _ends(api, failed, "FAILED")
    api.get(elements)
    api.get(f"{one}/runs/{begun}")
    api.get(f"/v1/runs/{failed}")


def _messages(api: Api) -> None:
    one = f"{APP}/messages/backup"
    target = api.sqs.create_queue(QueueName="target")["QueueUrl"]
    body = {"schedule": "0 5 * * *", "data": {"n": 1}, "target": {"type": "sqs", "queue_url": target}}
    api.put(one, body)
    for path in (one, f"{APP}/messages", f"{one}/runs", f"{one}/why"):
        api.get(path)


def _reports(api: Api) -> None:
    del api
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="lake-bucket")
    root = "history_report/json/day=2026-03-02/as_of=20260303T011500.000Z/"
    line = json.dumps({"workflow": "demo.flights.clean", "runs": 1, "cost_usd": None})
    s3.put_object(Bucket="lake-bucket", Key=f"{root}namespace=demo/part-00000-x.c000.json", Body=line.encode())
    s3.put_object(Bucket="lake-bucket", Key=f"{root}_SUCCESS", Body=b"")


def _deletions(api: Api) -> None:
    api.get(f"{NS}/reports?day=2026-03-02")
    for path in (
        "messages/backup",
        "dags/whole",
        "dags/mapped",
        "schedules/next",
        "schedules/daily",
        "workflows/other",
    ):
        api.delete(f"{APP}/{path}")
    for path in ("apps/orders", "datasets/x", "policies/calm", "pools/spark", "calendars/france"):
        api.delete(f"{NS}/{path}")
    api.put("/v1/namespaces/gone")
    api.delete("/v1/namespaces/gone")
