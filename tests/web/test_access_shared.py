"""Two namespaces that share a pool, a policy and a dataset: each signer reads the names of his own alone (O5, O9)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from chalicelib.core.rows.notice import PendingNotice
from chalicelib.core.targets.answers import RunUpdate
from chalicelib.core.why import HIDDEN, Why
from chalicelib.core.writes import Put
from chalicelib.flow.notices import notices
from chalicelib.flow.runs import complete
from chalicelib.wiring import ports
from tests.web.conftest import WEEKDAYS, Api, installation
from tests.web.signed import Signer, enforcing, member, role

SPACES = ("a", "a-b")  # the name of one begins with that of the other
TEAM = "team-" + "t" * 55  # an app of each, with its schedules
LONG = "long-" + "s" * 55  # a schedule, which has the same name in both
WORK = "work"  # an app of each, whose workflows the other may follow
EMR = {"target": {"type": "emr_serverless", "entry_point": "s3://code/job.py"}}
NOWHERE = {"target": {"type": "sqs", "queue_url": "https://sqs.us-east-1.amazonaws.com/123456789012/no-such-queue"}}
TOPIC = {"type": "sns", "topic_arn": "arn:aws:sns:us-east-1:123456789012:team"}
DATA = {"type": "partition", "dataset": "a.data"}
SIGNERS = {space: Signer(role(f"of-{space}")) for space in SPACES}
BOTH = Signer(role("both"))
DELIVERIES = ("lost", "paced", "paced-too")
NAMES = (LONG, "urgent", *DELIVERIES)
LIMITS = ("pool:a.small", "policy:a.calm")


def ns(space: str) -> str:
    return f"/v1/namespaces/{space}"


def app(space: str, name: str = TEAM) -> str:
    return f"{ns(space)}/apps/{name}"


def other(space: str) -> str:
    return SPACES[1 - SPACES.index(space)]


def _put_all(api: Api) -> None:
    for space in SPACES:
        for path in (ns(space), app(space, WORK), app(space)):
            api.put(path)
        for name, document in {"clean": EMR, "next": EMR, "send": NOWHERE}.items():
            api.put(f"{app(space, WORK)}/workflows/{name}", document)
    api.put(f"{ns('a')}/datasets/data", {"bucket": "lake", "prefix": "raw/data/", "keys": ["day"]})
    api.put(f"{ns('a')}/pools/small", {"size": 1})
    api.put(f"{ns('a')}/policies/calm", {"max_events": 1, "interval": "1h"})
    for space in SPACES:
        lent = {"run": ["*"], "pools": ["*"], "policies": ["*"], "datasets": ["*"]} if space == "a" else {}
        api.put(f"{ns(space)}/grants", {"grants": [{"to": other(space), "follow": ["*"], **lent}]})


def _put_schedules(api: Api, space: str) -> None:
    clean, send = (f"{space}.{WORK}.{name}" for name in ("clean", "send"))
    counts = {"workflow": clean, "trigger": DATA, "by": ["day"], "enabled": True}
    paced = {"workflow": send, "trigger": WEEKDAYS, "policy": "a.calm", "enabled": True}
    done = {"type": "program_status", "workflow": f"{other(space)}.{WORK}.clean"}
    urgent = {"workflow": f"{space}.{WORK}.next", "trigger": done, "by": ["day"], "priority": 9, "enabled": True}
    api.put(f"{app(space)}/schedules/urgent", urgent)
    told = {"notify": [{"on": ["aborted"], "to": TOPIC}]}
    api.put(f"{app(space)}/schedules/{LONG}", {**counts, **told, "pool": "a.small"})
    api.put(f"{app(space)}/schedules/lost", {**paced, "policy": None})
    for name in ("paced", "paced-too"):
        api.put(f"{app(space)}/schedules/{name}", paced)


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    """Of each namespace jobs wait for the pool and for the policy. Those for the pool inherit their priority from a
    schedule of the other namespace. A run has ended, and one of the other namespace has counted it."""
    with installation() as api, pytest.MonkeyPatch.context() as patch:
        _put_all(api)
        for space in SPACES:
            _put_schedules(api, space)
        api.put(f"{app('a-b')}/schedules/guest", {"workflow": "a.work.clean", "trigger": WEEKDAYS, "enabled": True})
        for day in ("1", "2", "3", "4"):
            api.post(f"{ns('a')}/datasets/data/partitions", {"partition": {"day": day}})
            api.work()
        for space, name in [*((space, name) for name in DELIVERIES for space in SPACES), ("a-b", "guest")]:
            api.post(f"{app(space)}/schedules/{name}/run")
            api.work()
        for _ in range(2):
            _end_holder(api)
        both = {"member": member("both"), "roles": ["admin"]}
        for space in SPACES:
            own = {"member": member(f"of-{space}"), "roles": ["admin"]}
            api.put(f"{ns(space)}/access", {"members": [own, both]})
        enforcing(patch)
        yield api


def _end_holder(api: Api) -> None:
    """End the run that has the unit of the pool. It is counted, and the next job gets the unit."""
    runs = (run for space in SPACES for run in ports().runs.runs("schedule", f"{space}.{TEAM}.{LONG}", 9, None).items)
    [holder] = [run for run in runs if run.state == "STARTING"]
    for state in ("RUNNING", "SUCCEEDED"):
        complete.advance_run(ports(), holder.run_id, 1, RunUpdate(state, ports().clock.now(), ""))
    api.work()


def _ids(space: str, kind: str) -> list[str]:
    """The ids of the jobs or runs of the schedules of a namespace."""
    items = BOTH.send("GET", f"{ns(space)}/{kind}")[1]["items"]
    return [item[f"{kind[:-1]}_id"] for item in items]


def _targets(space: str) -> list[str]:
    """What a member of a namespace may read there."""
    of, schedules, work = ns(space), f"{app(space)}/schedules", f"{app(space, WORK)}/workflows/clean"
    found = [f"{of}/{name}" for name in ("jobs", "runs", "records", "dead-letters", "now", "limits", "outcomes")]
    found += [f"{of}/{name}" for name in ("timeline?ids=true", "graph", "fires", "schedules", "grants", "audit")]
    found += [f"{of}/timeline?ids=true&workflow={WORK}.clean", f"{work}/runs", f"{work}/runs?state=STARTING"]
    found += [f"{of}/graph?up=5&down=5&around=workflow:{space}.{WORK}.clean"]
    found += [f"{of}/jobs?queued_in={name}" for name in LIMITS]
    found += [f"{of}/limits?name=schedule:{TEAM}.{name}" for name in (LONG, "paced-too")]
    found += [f"{schedules}/{name}/{part}" for name in (LONG, "urgent") for part in ("why", "jobs", "runs", "records")]
    found += [f"/v1/jobs/{job}{part}" for job in _ids(space, "jobs") for part in ("", "/why")]
    found += [f"/v1/runs/{run}{part}" for run in _ids(space, "runs") for part in ("", "/why", "/lineage?up=5&down=5")]
    if space == "a":
        found += [f"{of}/limits?name={name}" for name in LIMITS]
        found += [f"{of}/{name}" for name in ("pools/small", "policies/calm", "datasets/data")]
        found += [f"{of}/datasets/data/{part}" for part in ("partition?values=1", "partition?values=4", "partitions")]
    return found


def _read(signer: Signer, target: str) -> str:
    status, view = signer.send("GET", target)
    assert status == 200, (target, view)
    return json.dumps(view)


def _names(space: str, text: str) -> bool:
    """Whether a text has a schedule, job or run of a namespace."""
    return re.search(rf"(?<![\w.~-]){space}\.{TEAM}\.", text) is not None


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("space", SPACES)
def test_a_signer_reads_no_names_of_who_shares_a_pool(space: str) -> None:
    texts = {target: _read(SIGNERS[space], target) for target in _targets(space)}
    assert {target: text for target, text in texts.items() if _names(other(space), text)} == {}
    assert sum(_names(space, text) for text in texts.values()) > 25, "each signer reads the names of his own"
    assert _FULL[space] <= texts.keys()
    told = {target for target in _FULL[space] if _names(other(space), _read(BOTH, target))}
    assert told == _FULL[space], "there is something to leave out"


_OF_BOTH = ("jobs", "now", *(f"apps/{TEAM}/schedules/{LONG}/{part}" for part in ("jobs", "why")))
_OF_OWNER = (
    *("jobs?queued_in=pool:a.small", "limits?name=pool:a.small", "limits?name=policy:a.calm", "pools/small"),
    *("policies/calm", "datasets/data/partition?values=1", f"apps/{WORK}/workflows/clean/runs"),
    *(f"timeline?ids=true&workflow={WORK}.clean", f"limits?name=schedule:{TEAM}.paced-too"),
)
_FULL = {
    "a": {f"{ns('a')}/{path}" for path in (*_OF_BOTH, *_OF_OWNER)},
    "a-b": {f"{ns('a-b')}/{path}" for path in _OF_BOTH},
}


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("space", SPACES)
def test_a_glance_names_nobody_who_shares_a_pool(space: str) -> None:
    seen = {}
    for signer in (SIGNERS[space], BOTH):
        status, view = signer.send("POST", f"{ns(space)}/glance", {"schedules": [f"{TEAM}.{name}" for name in NAMES]})
        assert (status, len(view["items"])) == (200, len(NAMES)), view
        seen[signer] = json.dumps(view)
    assert _names(other(space), seen[BOTH])
    assert (HIDDEN in seen[SIGNERS[space]], _names(other(space), seen[SIGNERS[space]])) == (True, False)


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("space", SPACES)
def test_an_error_names_nobody_who_shares_a_pool(space: str) -> None:
    [job, *_] = [job for job in _ids(space, "jobs") if LONG in job]
    asked = [("GET", f"/v1/runs/{job}"), ("DELETE", f"{app(space, WORK)}/workflows/clean")]
    if space == "a":
        asked += [("DELETE", f"{ns('a')}/{name}") for name in ("datasets/data", "pools/small", "policies/calm")]
    for method, target in asked:
        assert _names(other(space), json.dumps(BOTH.error(method, target))), target
        text = json.dumps(SIGNERS[space].error(method, target))
        assert (HIDDEN in text, _names(other(space), text)) == (True, False), text


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("space", SPACES)
def test_an_id_of_who_shares_a_pool_is_unknown(space: str) -> None:
    for kind in ("jobs", "runs"):
        own = f"{ns(space)}/{kind}"
        for each in _ids(other(space), kind):
            for target in (f"/v1/{kind}/{each}", f"/v1/{kind}/{each}/why"):
                assert SIGNERS[space].error("GET", target)["code"] == "not_found", target
            assert each not in _read(SIGNERS[space], own)


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("space", SPACES)
def test_a_notice_names_nobody_who_shares_a_pool(space: str) -> None:
    """Who reads a channel is not known."""
    waiting = filter(None, (ports().jobs.find(job) for job in _ids(space, "jobs") if LONG in job))
    job = next(job for job in waiting if job.inherited)
    reason = Why.of("timed_out", "not launched in time: ", job.reason)
    assert _names(other(space), reason.text)
    [put] = notices.of_job(ports(), job, "aborted", reason, ports().clock.now())
    assert isinstance(put, Put)
    assert isinstance(put.row, PendingNotice)
    assert put.row.reason.endswith(f"inherited from {HIDDEN}")
