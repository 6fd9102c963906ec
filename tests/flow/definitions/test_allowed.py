"""Allow-lists decide about definitions when they are put, and about targets before each call (O10)."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.core.access.allowed import Allowed
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.access import AllowedRow
from chalicelib.flow.definitions import allow_list, store
from chalicelib.flow.runs import dead_letters
from chalicelib.settings import Settings
from tests.support.answers import explain
from tests.support.schedules import at
from tests.support.world import EMR, World, flights

ACCOUNT = "123456789012"
QUEUE = f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/sluice-target-a"
ARN = f"arn:aws:sqs:eu-west-1:{ACCOUNT}:sluice-target-a"
SQS = {"type": "sqs", "queue_url": QUEUE}
NOTIFY = {"target": SQS}
AT_ONE = "1 12 2 3 *"
HTTP = {"type": "http", "url": "https://hooks.example.com/orders"}
METRIC = {"namespace": "AWS/EC2", "metric": "CPUUtilization"}


def allow(world: World, namespace: str = "demo", **lists: list[str]) -> str:
    return allow_list.put(world.ports, namespace, Allowed.model_validate(lists), "platform").did


def error_of(world: World, document: dict[str, Any]) -> SluiceError:
    with pytest.raises(SluiceError) as failure:
        world.deploy(document)
    return failure.value


def test_a_target_outside_the_list_is_not_deployed() -> None:
    world = World()
    world.deploy(flights({}, notify=NOTIFY))
    allow(world, queues=[f"{ARN}-*"])
    refused = error_of(world, flights({}, notify=NOTIFY | {"priority": 7}))
    assert (refused.code, refused.field) == ("invalid", "workflows.notify.target.queue_url")
    assert refused.message == f"expected a queue that namespace demo may use ({ARN}-*), got '{QUEUE}'"
    assert refused.hint is not None
    assert "queues: sluice allowed demo" in refused.hint
    allow(world, queues=[ARN])
    world.deploy(flights({}, notify=NOTIFY | {"priority": 7}))


@pytest.mark.parametrize(
    ("lists", "workflow", "schedule", "field"),
    [
        ({"entry_points": ["s3://other/"]}, {}, {}, "target.entry_point"),
        ({"applications": ["00other"]}, {}, {}, "target.application_id"),
        ({"execution_roles": [f"arn:aws:iam::{ACCOUNT}:role/a"]}, {}, {}, "target.execution_role_arn"),
        ({"spark": []}, {"target": {**EMR, "spark": {"spark.sql.x": "1"}}}, {}, "target.spark.spark.sql.x"),
        ({}, {"target": {**EMR, "spark": {"spark.x": "1 --jars s3://b/x"}}}, {}, "target.spark.spark.x"),
        ({"queues": []}, {"notify": [{"on": ["failed"], "to": SQS}]}, {}, "notify.0.to.queue_url"),
        ({"queues": []}, {}, {"notify": [{"on": ["failed"], "to": SQS}]}, "notify.0.to.queue_url"),
        ({}, {"notify": [{"on": ["failed"], "to": HTTP | {"secret": "/x"}}]}, {}, "notify.0.to.secret"),
        ({"hosts": []}, {}, {"constraints": [{"type": "probe", "target": HTTP}]}, "constraints.0.target.url"),
        (
            {"metrics": ["AWS/SQS/*"]},
            {},
            {"constraints": [{"type": "load", "of": {"cloudwatch": METRIC}, "below": 1}]},
            "constraints.0.of.cloudwatch",
        ),
        ({"alarms": []}, {}, {"trigger": {"type": "cloudwatch_alarm", "alarm": "late"}}, "trigger.alarm"),
        (
            {"alarms": []},
            {},
            {"trigger": {"type": "quiet", "of": {"type": "cloudwatch_alarm", "alarm": "late"}, "after": "1h"}},
            "trigger.alarm",
        ),
    ],
)  # fmt: skip
def test_each_part_of_an_app_obeys_the_list(
    lists: dict[str, list[str]], workflow: dict[str, Any], schedule: dict[str, Any], field: str
) -> None:
    world = World()
    document = {"workflows": {"w": {"target": EMR, **workflow}}, "schedules": {"s": at(AT_ONE, "w", **schedule)}}
    world.deploy({})
    allow(world, **lists)
    refused = error_of(world, document)
    assert refused.field in (f"workflows.w.{field}", f"schedules.s.{field}")
    assert len(refused.problems) == 0


def test_a_dataset_lies_below_a_prefix_of_its_namespace() -> None:
    world = World()
    world.deploy({})
    allow(world, buckets=["s3://lake-bucket/raw/team-a/"])
    dataset = {"bucket": "lake", "prefix": "raw/team-b/", "keys": ["aws-account-id"]}
    refused = error_of(world, {"datasets": {"d": dataset}})
    assert (refused.code, refused.field) == ("invalid", "datasets.d.prefix")
    world.deploy({"datasets": {"d": dataset | {"prefix": "raw/team-a/d/"}}})


def test_a_message_obeys_the_list() -> None:
    world = World()
    world.deploy({})
    allow(world, queues=[])
    with pytest.raises(SluiceError) as failure:
        world.message("m", due_time="10m", target=SQS)
    assert failure.value.field == "target.queue_url"


def test_a_run_that_is_no_longer_allowed_fails_uncalled() -> None:
    world = World()
    world.deploy(flights({"s": at(AT_ONE, retries={"attempts": 3})}))
    allow(world, entry_points=["s3://other/"])
    world.pass_by("2m")
    [run] = world.runs("s")
    assert world.targets.emr.calls == []
    assert run.state == "FAILED"
    assert run.reason.text.startswith("not allowed: entry_point: expected a file of code that namespace demo may use")
    assert "sluice allowed demo" in run.reason.text
    assert run.reason.text in str(explain.why_run(run))


def test_a_rerun_starts_once_the_list_allows_it() -> None:
    world = World()
    world.deploy(flights({"s": at(AT_ONE)}))
    allow(world, entry_points=[])
    world.pass_by("2m")
    assert world.targets.emr.calls == []
    allow(world, entry_points=["s3://code/job.py"])
    world.pass_by("5s")
    world.run_now("s")
    world.settle()
    assert len(world.targets.emr.calls) == 1


def test_a_delivery_no_longer_allowed_is_a_dead_letter() -> None:
    world = World()
    world.deploy(flights({"s": at(AT_ONE, "notify"), "t": at(AT_ONE, "other")}, notify=NOTIFY, other={
        "target": {"type": "sqs", "queue_url": f"{QUEUE}-b"}}))  # fmt: skip
    allow(world, queues=[f"{ARN}-b"])
    world.pass_by("2m")
    assert [run_id.split(".")[2] for run_id, _ in world.targets.queue.messages] == ["t"]
    [run] = world.runs("s")
    assert run.state == "FAILED"
    assert run.reason.text.startswith("not allowed: queue_url: expected a queue that namespace demo may use")
    allow(world, queues=[ARN, f"{ARN}-b"])
    world.pass_by("5s")
    dead_letters.redrive(world.ports, "demo", run.run_id)
    world.settle()
    assert [run_id.split(".")[2] for run_id, _ in world.targets.queue.messages] == ["t", "s"]


def test_the_namespace_of_the_workflow_decides() -> None:
    world = World()
    world.deploy({"workflows": {"w": NOTIFY}}, namespace="owner", app="a")
    world.deploy(flights({"s": at(AT_ONE, "owner.a.w")}))
    allow(world, queues=[])
    world.pass_by("2m")
    assert len(world.targets.queue.messages) == 1
    allow(world, "owner", queues=[])
    world.pass_by("5s")
    world.run_now("s")
    world.settle()
    assert len(world.targets.queue.messages) == 1


@pytest.mark.parametrize(
    ("constraint", "lists"),
    [
        ({"type": "probe", "target": HTTP}, {"hosts": []}),
        ({"type": "load", "of": {"cloudwatch": METRIC}, "below": 1}, {"metrics": []}),
    ],
)
def test_a_question_no_longer_allowed_holds_the_job(constraint: dict[str, Any], lists: dict[str, list[str]]) -> None:
    world = World()
    world.deploy(flights({"s": at(AT_ONE, constraints=[constraint])}))
    allow(world, **lists)
    world.pass_by("2m")
    assert (world.targets.asked, world.targets.measured) == ([], [])
    [job] = world.jobs("s")
    assert "not allowed: " in str(explain.why_job(world.ports, job))
    assert "sluice allowed demo" in str(explain.why_job(world.ports, job))


def test_a_changed_list_holds_for_calls_five_seconds_later() -> None:
    world = World()
    world.deploy(flights({"s": at(AT_ONE, "notify")}, notify=NOTIFY))
    sent = world.targets.queue.messages
    world.run_now("s", "r1")
    world.settle()
    allow(world, queues=[])
    world.clock.wait_until(world.clock.now() + 4_999)
    world.run_now("s", "r2")
    world.settle()
    assert len(sent) == 2
    world.clock.wait_until(world.clock.now() + 1)
    world.run_now("s", "r3")
    world.settle()
    assert len(sent) == 2


def test_targets_of_other_accounts_need_a_list() -> None:
    world = World(account="210987654321")
    refused = error_of(world, flights({}, notify=NOTIFY))
    assert refused.message.startswith("expected a queue of the account 210987654321")
    allow(world, queues=[ARN])
    world.deploy(flights({}, notify=NOTIFY))


def test_queues_of_the_local_cloud_belong_to_its_account() -> None:
    names = {"SLUICE_CATALOG_TABLE": "c", "SLUICE_JOBS_TABLE": "j", "SLUICE_RUNS_TABLE": "r"}
    names |= {"SLUICE_HINTS_QUEUE_URL": "h", "SLUICE_LAKE_BUCKET": "l", "SLUICE_CONTROL_BUCKET": "c"}
    local = Settings.from_environment(names | {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"})
    assert Settings.from_environment(names).queue_endpoint == ""
    world = World(account="000000000000", queue_endpoint=local.queue_endpoint)
    for host in ("127.0.0.1:4566", "localhost:4566"):
        target = {"type": "sqs", "queue_url": f"http://{host}/000000000000/orders"}
        world.deploy(flights({"s": at(AT_ONE, "notify")}, notify={"target": target}))
    world.pass_by("2m")
    assert len(world.targets.queue.messages) == 1
    for url in ("http://127.0.0.1:4566/123456789012/orders", "http://127.0.0.1:4567/000000000000/orders"):
        refused = error_of(world, flights({}, notify={"target": {"type": "sqs", "queue_url": url}}))
        assert refused.message.startswith("expected a queue of the account 000000000000, by the URL that SQS gives it")


def test_a_list_goes_with_its_namespace() -> None:
    world = World()
    store.put(world.ports, "namespace", "gone", {}, "platform")
    assert allow(world, "gone", queues=[ARN]) == "created"
    assert allow(world, "gone", queues=[ARN]) == "unchanged"
    store.delete(world.ports, "namespace", "gone")
    store.put(world.ports, "namespace", "gone", {}, "platform")
    assert world.ports.rows.get(AllowedRow, "gone") is None


def test_a_list_needs_its_namespace_and_version() -> None:
    world = World()
    with pytest.raises(SluiceError) as failure:
        allow(world, "nowhere", queues=[])
    assert failure.value.code == "not_found"
    store.put(world.ports, "namespace", "demo", {}, "platform")
    with pytest.raises(SluiceError) as failure:
        allow_list.put(world.ports, "demo", Allowed(), "platform", if_match=1)
    assert failure.value.code == "changed_meanwhile"
