"""Every role of one namespace, with the names and ids of what exists in another (O5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.core.access.roles import ROLES
from chalicelib.wiring import ports
from tests.web import large_fires
from tests.web.conftest import NS, WEEKDAYS, Api, installation, settle_in
from tests.web.signed import Signer, enforcing, member, role
from tests.web.test_access_matrix import ROUTES

OTHER = "/v1/namespaces/other"
SECRET = f"{OTHER}/apps/secret"
MEMBERS = {name: Signer(role(f"the-{name}")) for name in ROLES}
EMR = {"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}}
APPROVAL = {"type": "approval", "role": "the-approver"}
FIRES = {"from": "2026-03-02T00:00:00Z", "to": "2026-03-03T00:00:00Z"}
# The last letter of each id stands for another id of the same form, which nothing has.
SWAPPED = str.maketrans("0123456789abcdef", "123456789abcdef0")
# What exists of each kind, by the word before its name in paths.
NAMES = {
    "workflows": "plan",
    "datasets": "hidden",
    "policies": "calm",
    "calendars": "days",
    "pools": "etl",
    "messages": "mine",
    "schedules": "fed",
    "dags": "whole",
}
Values = dict[str, str]


def absent(value: str) -> str:
    """An id or a name of the same form that nothing has."""
    return f"{value[:-1]}{value[-1].translate(SWAPPED)}" if value[-1] in "0123456789abcdef" else f"{value}x"


def _posted(api: Api, path: str, body: Any = None) -> dict[str, Any]:
    found: dict[str, Any] = api.post(path, body)
    api.work()
    return found


@pytest.fixture(scope="module")
def existing() -> Iterator[Values]:
    """What exists in the namespace ``other``, by the parameters of paths. Each role has a member in ``demo`` alone."""
    with installation() as api, pytest.MonkeyPatch.context() as patch:
        settle_in(api)
        api.put(OTHER)
        api.put(SECRET)
        api.put(f"{OTHER}/datasets/hidden", {"bucket": "lake", "prefix": "raw/hidden/", "keys": ["day"]})
        api.put(f"{OTHER}/policies/calm", {"max_events": 3, "interval": "1m"})
        api.put(f"{OTHER}/pools/etl", {"size": 4})
        api.put(f"{OTHER}/calendars/days", {"days": ["12-25"]})
        api.put(f"{SECRET}/workflows/plan", EMR)
        api.put(f"{SECRET}/workflows/pulled", {"target": {"type": "worker", "pool": "etl"}})
        plain = {"workflow": "plan", "trigger": WEEKDAYS, "enabled": True}
        api.put(f"{SECRET}/schedules/runs", plain)
        api.put(f"{SECRET}/schedules/waits", {**plain, "constraints": [APPROVAL]})
        api.put(f"{SECRET}/schedules/pulls", {**plain, "workflow": "pulled"})
        fed = {"workflow": "plan", "trigger": {"type": "partition", "dataset": "hidden"}, "by": ["day"]}
        api.put(f"{SECRET}/schedules/fed", {**fed, "enabled": True})
        nodes = {"first": {"workflow": "plan"}, "mapped": {"workflow": "plan", "each": {"of": "first"}}}
        edge = {"from": "first", "to": "mapped"}
        whole = {"trigger": WEEKDAYS, "nodes": nodes, "edges": [edge], "enabled": True}
        api.put(f"{SECRET}/dags/whole", whole)
        api.put(f"{SECRET}/messages/mine", {"due_time": "10m", "workflow": "plan"})
        _posted(api, f"{OTHER}/datasets/hidden/partitions", {"partition": {"day": "1"}})
        job = _posted(api, f"{SECRET}/schedules/waits/run")["job_id"]
        run = _posted(api, f"{SECRET}/schedules/runs/run")["job_id"]
        _posted(api, f"{SECRET}/schedules/pulls/run")
        [lease] = api.post("/v1/workers/other.etl/claim", {"worker": "ann", "wait": 0})["leases"]
        backfill = _posted(api, f"{SECRET}/schedules/fed/backfills", {"partitions": {"values": [{"day": "2"}]}})
        again = _posted(api, f"{OTHER}/reprocess", {"dataset": "hidden", "partition": {"day": "1"}})
        of_dag = _posted(api, f"{SECRET}/dags/whole/run")["run_id"]
        upload = api.post(f"{SECRET}/uploads")["upload"]
        place = {"ns": "other", "app": "secret", "pool": "other.etl", "lease_id": lease["lease"], "upload": upload}
        own = {**place, "job_id": job, "reprocess_id": again["reprocess_id"]}
        own["backfill_id"] = backfill["backfill_id"]
        own["fire_id"] = large_fires.put("other.secret.runs", workflow="other.secret.plan", events=300)
        assert ports().jobs.find(job) is not None and ports().runs.attempts(run)
        members = [{"member": member(f"the-{name}"), "roles": [name]} for name in ROLES]
        api.put(f"{NS}/access", {"members": members})
        boss = {"member": member("boss"), "roles": ["admin"]}
        api.put(f"{OTHER}/access", {"members": [boss]})
        enforcing(patch)
        found = {**own, "run_id": run, "dag_run": of_dag, "node": "mapped"}
        boss_sees = Signer(role("boss"))
        for path in (
            f"/v1/jobs/{job}",
            f"/v1/runs/{run}",
            f"/v1/fires/{own['fire_id']}",
            f"{SECRET}/dags/whole/runs/{of_dag}",
        ):
            assert boss_sees.status("GET", path) == 200, path
        yield found


def _answers(signer: Signer, method: str, path: str, values: Values) -> tuple[int, str]:
    filled = re.sub(r"{(\w+)}", lambda found: values[found[1]], path)
    status, content = signer.send(method, filled, {"unknown": 1} if method in ("PUT", "POST") else None)
    text = json.dumps(content)
    # The namespace is shorter than what contains it, so it comes last.
    for value in sorted(values.values(), key=len, reverse=True):
        text = text.replace(json.dumps(value)[1:-1], "X")
    return status, text


@pytest.mark.parametrize("name", ROLES)
def test_what_exists_elsewhere_reads_as_what_does_not(existing: Values, name: str) -> None:
    sent = 0
    for method, path, needs in ROUTES:
        parameters = re.findall(r"{(\w+)}", path)
        if not parameters or needs == "signed":
            continue
        values = existing
        if "name" in parameters:
            kind = path.split("/{name}")[0].rpartition("/")[2]
            values = {**existing, "name": NAMES[kind]}
            values["run_id"] = existing["dag_run"] if kind == "dags" else existing["run_id"]
        there = _answers(MEMBERS[name], method, path, values)
        assert there[0] == 404, (method, path, there)
        nowhere = {key: absent(value) if key != "ns" else value for key, value in values.items()}
        assert _answers(MEMBERS[name], method, path, nowhere) == there, (method, path)
        sent += 1
    assert sent > 80
