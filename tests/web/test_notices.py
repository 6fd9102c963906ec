"""Rules of notices and deadlines over the API: accepted with their meaning, refused if they are wrong (W9, H5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.conftest import APP, WEEKDAYS, Api, installation, settle_in

EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
TEAM = {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:team"}
DUTY = {"type": "http", "url": "https://duty.example/hooks"}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with installation() as made:
        settle_in(made)
        yield made


def test_w9_rules_and_deadlines_are_stored_as_they_are_sent(api: Api) -> None:
    notify = [{"on": ["failed", "missed_end"], "to": TEAM}, {"on": ["aborted"], "to": DUTY}]
    deadline = {"start_within": "10m", "end_within": "2h", "from": "data"}
    api.put(f"{APP}/workflows/watched", {"target": EMR, "notify": notify, "deadline": deadline})
    view = api.get(f"{APP}/workflows/watched")
    assert [(rule["on"], rule["to"]["type"]) for rule in view["notify"]] == [
        (["failed", "missed_end"], "sns"),
        (["aborted"], "http"),
    ]
    assert view["deadline"] == deadline
    view = api.schedule("watched", workflow="watched", notify=notify[:1], deadline={"start_within": "5m"})
    assert view["deadline"] == {"start_within": "5m", "end_within": None, "from": "nominal"}
    assert api.schedule("watched", workflow="watched", notify=notify[:1], deadline={"start_within": "5m"}) == view


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"notify": [{"on": [], "to": TEAM}]}, "notify.0.on"),
        ({"notify": [{"on": ["late"], "to": TEAM}]}, "notify.0.on.0"),
        ({"notify": [{"on": ["failed"], "to": EMR}]}, "notify.0.to"),
        ({"notify": [{"on": ["failed"]}]}, "notify.0.to"),
        ({"notify": [{"on": ["failed"], "to": {"type": "http", "url": "http://duty.example/"}}]}, "notify.0.to.url"),
        ({"notify": [{"on": ["failed"], "to": TEAM}] * 6}, "notify"),
        ({"deadline": {}}, "deadline"),
        ({"deadline": {"start_within": "soon"}}, "deadline.start_within"),
        ({"deadline": {"end_within": "2h", "from": "then"}}, "deadline.from"),
    ],
)
def test_w9_invalid_rules_are_refused_on_workflows_and_schedules(api: Api, wrong: Any, field: str) -> None:
    assert api.refused(400, "PUT", f"{APP}/workflows/bad", {"target": EMR, **wrong})["field"] == field
    schedule = {"workflow": "notify", "trigger": WEEKDAYS, **wrong}
    assert api.refused(400, "PUT", f"{APP}/schedules/bad", schedule)["field"] == field
    app = {"workflows": {"bad": {"target": EMR, **wrong}}}
    assert api.refused(400, "PUT", f"{APP}?dry_run=true", app)["field"] == f"workflows.bad.{field}"
