"""What namespaces without lists may name once there are several, and what the second one finds (O14)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from chalicelib.aws.tables.catalog import DynamoCatalog
from chalicelib.core.access.allowed import Allowed, Named
from chalicelib.core.definitions.app import App
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition
from chalicelib.core.why import readers_of
from chalicelib.flow.definitions import allow_list, allowed, namespaces, uses
from chalicelib.flow.deploy import deploy
from tests.support.answers import explain
from tests.support.schedules import at
from tests.support.world import World

ACCOUNT = "123456789012"
AT_ONE = "1 12 2 3 *"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/sluice-target-demo-job"
OWN_EMR = {"type": "emr_serverless", "entry_point": "s3://control/code/demo/job.py", "execution_role_arn": ROLE}
HTTP = {"type": "http", "url": "https://hooks.example.com/orders"}
METRIC = {"namespace": "AWS/EC2", "metric": "CPUUtilization"}


def queue(name: str) -> dict[str, Any]:
    return {"type": "sqs", "queue_url": f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/{name}"}


def world_of(mode: str = "enforce", **tuned: Any) -> World:
    world = World(authorization=mode, account=ACCOUNT, emr_role_arns=(ROLE,), **tuned)
    create(world, "demo")
    return world


def create(world: World, name: str, dry_run: bool = False) -> str:
    return namespaces.put(world.ports, name, {}, "platform", dry_run=dry_run).did


def app(workflow: dict[str, Any], **schedules: Any) -> dict[str, Any]:
    return {"workflows": {"w": workflow}, "schedules": schedules}


@pytest.mark.parametrize(
    ("workflow", "schedule", "field"),
    [
        ({"target": queue("orders")}, {}, "workflows.w.target.queue_url"),
        ({"target": queue("sluice-target-demo-b-orders")}, {}, "workflows.w.target.queue_url"),
        ({"target": OWN_EMR | {"entry_point": "s3://code/job.py"}}, {}, "workflows.w.target.entry_point"),
        ({"target": OWN_EMR | {"py_files": ["s3://code/x.py"]}}, {}, "workflows.w.target.py_files.0"),
        ({"target": OWN_EMR | {"execution_role_arn": None}}, {}, "workflows.w.target.execution_role_arn"),
        ({"target": OWN_EMR | {"spark": {"spark.plugins": "x"}}}, {}, "workflows.w.target.spark.spark.plugins"),
        ({"target": OWN_EMR | {"spark": {"spark.jars": "s3://x/y.jar"}}}, {}, "workflows.w.target.spark.spark.jars"),
        ({"target": HTTP}, {}, "workflows.w.target.url"),
        ({"target": OWN_EMR, "notify": [{"on": ["failed"], "to": HTTP}]}, {}, "workflows.w.notify.0.to.url"),
        ({"target": OWN_EMR}, {"notify": [{"on": ["failed"], "to": HTTP}]}, "schedules.s.notify.0.to.url"),
        (
            {"target": OWN_EMR},
            {"constraints": [{"type": "probe", "target": HTTP}]},
            "schedules.s.constraints.0.target.url",
        ),
        (
            {"target": OWN_EMR},
            {"constraints": [{"type": "load", "of": {"cloudwatch": METRIC}, "below": 1}]},
            "schedules.s.constraints.0.of.cloudwatch",
        ),
        ({"target": OWN_EMR}, {"trigger": {"type": "cloudwatch_alarm", "alarm": "late"}}, "schedules.s.trigger.alarm"),
    ],
)  # fmt: skip
def test_o14_beside_another_a_document_names_its_own_things(
    workflow: dict[str, Any], schedule: dict[str, Any], field: str
) -> None:
    document = app(workflow, s=at(AT_ONE, "w", **schedule))
    world_of().deploy(document)
    world_of("off").deploy(document)
    world = world_of()
    create(world, "demo-b")
    with pytest.raises(SluiceError) as failure:
        world.deploy(document)
    assert failure.value.field == field
    assert "sluice allowed demo" in str(failure.value.hint)
    assert world.ports.rows.get(Definition, "workflow", "demo.flights.w") is None


def test_o14_what_holds_the_name_works_without_lists() -> None:
    world = world_of()
    create(world, "demo-b")
    world.deploy({"workflows": {"w": {"target": OWN_EMR}, "n": {"target": queue("sluice-target-demo-orders")}},
                  "schedules": {"s": at(AT_ONE, "w"), "t": at(AT_ONE, "n")}})  # fmt: skip
    world.pass_by("2m")
    assert (len(world.targets.emr.calls), len(world.targets.queue.messages)) == (1, 1)


def test_o14_the_app_of_the_installation_is_no_tenant() -> None:
    world = world_of()
    world.deploy(app({"target": HTTP}, s=at(AT_ONE, "w")))
    create(world, "system")
    world.deploy(app({"target": HTTP}, s=at(AT_ONE, "w", priority=7)))
    world.allow("demo", hosts=["hooks.example.com"])
    create(world, "demo-b")
    world.deploy(app({"target": queue("any")}, s=at(AT_ONE, "w")), namespace="system")


@pytest.mark.parametrize("mode", ["enforce", "observe"])
@pytest.mark.parametrize("listed", [None, ["other-team-*"], ["sluice-target-demo-*"]])
def test_o14_an_alarm_that_may_not_be_named_starts_nothing(mode: str, listed: list[str] | None) -> None:
    """The schedule is from before the second namespace, or the list."""
    late = {"workflow": "w", "trigger": {"type": "cloudwatch_alarm", "alarm": "other-team-late"}, "enabled": True}
    world = world_of(mode)
    world.deploy(app({"target": queue("sluice-target-demo-a")}, s=late))
    world.deploy({}, namespace="demo-b")
    if listed is not None:
        world.allow("demo", alarms=listed)
    world.pass_by("10m")
    world.alarm("other-team-late", "OK")
    world.pass_by("1m")
    world.alarm("other-team-late")
    world.settle()
    world.pass_by("1m")
    is_allowed = listed == ["other-team-*"] or (mode == "observe" and listed is None)
    assert [run.state for run in world.runs("s")] == (["SUCCEEDED"] if is_allowed else [])
    reasons = [record.reason.text for record in world.records("s")]
    assert any("does not count: not allowed: alarm: expected" in reason for reason in reasons) is not is_allowed


def test_o14_what_was_stored_before_is_refused_at_its_launch() -> None:
    world = world_of()
    world.deploy(app({"target": queue("orders")}, s=at(AT_ONE, "w"), probed=at(AT_ONE, "w", constraints=[
        {"type": "probe", "target": HTTP}])))  # fmt: skip
    world.deploy({}, namespace="demo-b")  # as if it was created at the same time as the app
    world.pass_by("2m")
    assert (world.targets.queue.messages, world.targets.asked) == ([], [])
    [run] = world.runs("s")
    assert run.state == "FAILED"
    assert run.reason.text.startswith(
        "not allowed: queue_url: expected a queue of namespace demo, named sluice-target-demo-"
    )
    assert run.reason.text in str(explain.why_run(run))
    [job] = world.jobs("probed")
    assert "not allowed: url: expected a host" in str(explain.why_job(world.ports, job))


def test_o14_an_alarm_of_others_starts_no_run_any_more() -> None:
    world = world_of()
    on_alarm = {"workflow": "w", "trigger": {"type": "cloudwatch_alarm", "alarm": "others-late"}, "enabled": True}
    world.deploy(app({"target": queue("sluice-target-demo-a")}, s=on_alarm))
    world.alarm("others-late")
    world.settle()
    assert len(world.runs("s")) == 1
    world.deploy({}, namespace="demo-b")  # as if it was created at the same time as the app
    world.clock.pass_by("1m")
    world.alarm("others-late", "OK")
    world.alarm("others-late")
    world.settle()
    assert (len(world.runs("s")), world.jobs("s")) == (1, [])
    [record] = [each for each in world.records("s") if each.kind == "DROPPED"]
    assert "does not count: not allowed: alarm: expected an alarm of namespace demo" in record.reason.text
    world.allow("demo", alarms=["others-*"])
    world.clock.pass_by("1m")
    world.alarm("others-late", "OK")
    world.alarm("others-late")
    world.settle()
    assert len(world.runs("s")) == 2


def test_o14_the_absence_of_an_alarm_of_others_starts_no_run() -> None:
    world = world_of()
    absence = {"type": "absent", "of": {"type": "cloudwatch_alarm", "alarm": "others-late"}, "within": "1h"}
    world.deploy(
        app({"target": queue("sluice-target-demo-a")}, s={"workflow": "w", "trigger": absence, "enabled": True})
    )
    world.deploy({}, namespace="demo-b")
    world.pass_by("2h")
    assert world.runs("s") == []
    assert "does not count: not allowed: " in world.records("s")[0].reason.text


def test_o14_calls_notice_a_second_namespace_in_five_seconds() -> None:
    world = world_of()
    world.deploy(app({"target": queue("orders")}, s=at(AT_ONE, "w")))
    world.run_now("s", "r1")
    world.settle()
    world.deploy({}, namespace="demo-b")
    world.clock.wait_until(world.clock.now() + 4_999)
    world.run_now("s", "r2")
    world.settle()
    assert len(world.targets.queue.messages) == 2
    world.clock.wait_until(world.clock.now() + 1)
    world.run_now("s", "r3")
    world.settle()
    assert len(world.targets.queue.messages) == 2


def test_o14_a_table_that_cannot_be_read_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of()
    world.deploy(app({"target": queue("sluice-target-demo-orders")}, s=at(AT_ONE, "w")))

    def fail(catalog: DynamoCatalog, joining: str = "") -> bool:
        raise SluiceError("unavailable", "the table does not answer")

    with monkeypatch.context() as patch, pytest.raises(SluiceError, match="does not answer"):
        patch.setattr(DynamoCatalog, "is_shared", fail)
        world.run_now("s", "r1")
        world.settle()
    assert [run.state for run in world.runs("s")] == ["STARTING"]
    world.pass_by("2m")
    assert {run.state for run in world.runs("s")} == {"SUCCEEDED"}


def test_o14_a_second_namespace_waits_for_the_list_of_the_first() -> None:
    world = world_of()
    world.deploy(app({"target": queue("orders")}, s=at(AT_ONE, "w")))
    for dry_run in (True, False):
        with pytest.raises(SluiceError) as failure:
            create(world, "demo-b", dry_run)
        assert failure.value.code == "conflict"
        assert "target.queue_url of workflow demo.flights.w" in failure.value.message
        assert "sluice allowed demo --propose" in str(failure.value.hint)
        told = failure.value.concealing(readers_of("demo-b"))
        assert "demo" not in f"{told.message} {told.hint}".replace("demo-b", "")
        assert world.ports.rows.get(Definition, "namespace", "demo-b") is None
    assert create(world, "demo") == "unchanged"

    proposed = uses.of_namespace(world.ports, "demo")
    assert proposed.proposed == {"queues": [f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders"]}
    assert (proposed.left_out, proposed.complete) == ((), True)
    allow_list.put(world.ports, "demo", Allowed.model_validate(proposed.proposed), "platform")
    assert uses.of_namespace(world.ports, "demo").refused == ()
    assert create(world, "demo-b", dry_run=True) == "created"
    assert world.ports.rows.get(Definition, "namespace", "demo-b") is None
    assert create(world, "demo-b") == "created"
    world.pass_by("2m")
    assert len(world.targets.queue.messages) == 1


def test_o14_a_proposal_covers_all_uses_of_a_refused_kind() -> None:
    world = world_of()
    world.deploy({
        "default_target": queue("default"),
        "workflows": {
            "own": {"target": queue("sluice-target-demo-orders")},
            "spark": {
                "target": OWN_EMR | {"execution_role_arn": None, "spark": {
                    "spark.plugins": "x", "spark.ui.enabled": "false", "spark.jars": "/opt/x.jar"}},
                "notify": [{"on": ["failed"], "to": HTTP}],
            },
            "bus": {"target": {"type": "event_bus", "bus": "default"}},
        },
        "schedules": {"s": at(AT_ONE, "own", constraints=[
            {"type": "probe", "target": HTTP | {"url": "https://x.example.com/"}},
            {"type": "load", "of": {"cloudwatch": METRIC}, "below": 1}])},
        "datasets": {"d": {"bucket": "lake", "prefix": "raw/d/", "keys": ["aws-day"]}},
    })  # fmt: skip
    world.message("m", due_time="10m", target=queue("mine"))
    found = uses.of_namespace(world.ports, "demo")
    assert found.proposed == {
        "execution_roles": ["arn:aws:iam::000000000000:role/job"],
        "entry_points": ["s3://control/code/demo/job.py"],
        "spark": ["spark.jars", "spark.plugins", "spark.ui.enabled"],
        "queues": [
            f"arn:aws:sqs:eu-west-1:{ACCOUNT}:{name}" for name in ("default", "mine", "sluice-target-demo-orders")
        ],
        "buses": [f"arn:aws:events:*:{ACCOUNT}:event-bus/default"],
        "hosts": ["hooks.example.com", "x.example.com"],
        "metrics": ["AWS/EC2/CPUUtilization"],
    }
    assert [(each.document, each.field) for each in found.left_out] == [
        ("workflow demo.flights.spark", "target.spark.spark.jars")
    ]
    assert {each.document for each in found.refused} == {
        "default target of demo.flights", "message demo.flights.m", "schedule demo.flights.s",
        "workflow demo.flights.spark", "workflow demo.flights.bus",
    }  # fmt: skip
    allow_list.put(world.ports, "demo", Allowed.model_validate(found.proposed), "platform")
    with pytest.raises(SluiceError):
        world.deploy({"workflows": {"own": {"target": queue("sluice-target-demo-late")}}}, app="later")


def test_o14_a_list_that_exists_is_kept_by_a_proposal() -> None:
    world = world_of()
    world.deploy(app({"target": HTTP}, s=at(AT_ONE, "w")))
    world.allow("demo", queues=[])
    assert uses.of_namespace(world.ports, "demo").proposed == {"queues": [], "hosts": ["hooks.example.com"]}
    world.allow("demo", hosts=["other.example.com"])  # refused today, and so not by another namespace
    assert uses.of_namespace(world.ports, "demo").refused == ()
    assert create(world, "demo-b") == "created"


def test_o14_a_refused_app_leaves_no_namespace_half_made() -> None:
    """`sluice apply` sends a dry run before it creates a namespace."""
    world = world_of()
    with pytest.raises(SluiceError) as failure:
        deploy.dry_run(world.ports, "demo-b", "x", App.model_validate(app({"target": queue("orders")})), None)
    assert failure.value.field == "workflows.w.target.queue_url"
    world.deploy(app({"target": queue("orders")}))
    with pytest.raises(SluiceError) as failure:
        deploy.dry_run(world.ports, "demo-b", "x", App(), None)
    assert failure.value.code == "conflict"
    assert deploy.dry_run(world.ports, "demo", "x", App(), None)[0]["created"] == ["app demo.x"]


def test_o14_observing_logs_what_would_be_refused(caplog: pytest.LogCaptureFixture) -> None:
    world = world_of("observe")
    world.deploy(app({"target": queue("orders")}, s=at(AT_ONE, "w")))
    with caplog.at_level(logging.WARNING):
        create(world, "demo-b")
        world.pass_by("2m")
    assert len(world.targets.queue.messages) == 1
    logged = [record.getMessage() for record in caplog.records]
    assert "namespace would be refused" in logged
    assert "target would be refused" in logged


def test_o14_a_list_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of()
    create(world, "demo-b")
    compared: list[Any] = []
    monkeypatch.setattr("chalicelib.core.access.allowed.check", lambda *args: compared.append(args))
    allowed.check(world.ports, "demo", [Named("queues", f"arn:aws:sqs:eu-west-1:{ACCOUNT}:x", "queue_url")])
    assert len(compared) == 1


def test_o14_a_check_of_prefixes_reads_no_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of()
    create(world, "demo-b")

    def fail(catalog: DynamoCatalog, joining: str = "") -> bool:
        raise AssertionError("names limit no prefix")

    monkeypatch.setattr(DynamoCatalog, "is_shared", fail)
    allowed.check(world.ports, "demo", [Named("buckets", "s3://lake-bucket/raw/", "prefix")])
    with pytest.raises(AssertionError):
        allowed.check(world.ports, "demo", [Named("hosts", "x.example.com", "url")])


def test_o14_a_large_namespace_is_read_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "MAX_DOCUMENTS", 2)
    world = world_of()
    world.deploy({"workflows": {f"w{number}": {"target": HTTP} for number in range(3)}})
    found = uses.of_namespace(world.ports, "demo")
    assert (len(found.refused), found.complete) == (2, False)


def test_o14_documents_beyond_the_bound_need_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "MAX_DOCUMENTS", 3)
    world = world_of()
    own = {"w": {"target": queue("sluice-target-demo-a")}}
    world.deploy({"workflows": own, "schedules": {f"s{n}": at(AT_ONE, "w") for n in range(4)}}, app="many")
    with pytest.raises(SluiceError) as failure:
        create(world, "demo-b")
    assert failure.value.code == "conflict"
    assert "more than 3 documents" in failure.value.message
    assert "of actions, alarms, applications, buses, engines, entry_points, execution_roles" in str(failure.value.hint)
    world.allow("demo", entry_points=[], queues=[f"arn:aws:sqs:eu-west-1:{ACCOUNT}:sluice-target-demo-*"])
    with pytest.raises(SluiceError) as failure:
        create(world, "demo-b")
    assert "of actions, alarms, applications, buses, engines, execution_roles, functions, hosts, metrics" in str(
        failure.value.hint
    )
    assert "spark" not in str(failure.value.hint), "with entry_points, its properties are already limited"
    kinds = ("execution_roles", "applications", "topics", "functions", "buses", "state_machines", "hosts", "metrics")
    every: dict[str, Any] = {kind: [] for kind in (*kinds, "actions", "engines", "entry_points", "alarms")}
    world.allow("demo", **every, queues=[f"arn:aws:sqs:eu-west-1:{ACCOUNT}:sluice-target-demo-*"])
    assert create(world, "demo-b") == "created"
    world.pass_by("2m")
    assert len(world.targets.queue.messages) == 4


def test_o14_targets_of_all_apps_are_read_before_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "MAX_DOCUMENTS", 3)
    world = world_of()
    own = {"w": {"target": queue("sluice-target-demo-a")}}
    world.deploy({"workflows": own, "schedules": {f"s{n}": at(AT_ONE, "w") for n in range(4)}}, app="aaa")
    world.deploy(app({"target": queue("orders")}), app="bbb")
    [found] = uses.of_namespace(world.ports, "demo").refused
    assert found.document == "workflow demo.bbb.w"


def test_o14_datasets_do_not_count_as_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "MAX_DOCUMENTS", 1)
    world = world_of()
    datasets = {f"d{n}": {"bucket": "lake", "prefix": f"raw/d{n}/", "keys": ["day"]} for n in range(3)}
    world.deploy({"workflows": {"w": {"target": OWN_EMR}}, "datasets": datasets})
    assert create(world, "demo-b") == "created"
