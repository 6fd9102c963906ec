"""`sluice.testing` from the user's side: given this app and these events, what runs, when, and why not."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sluice.testing import ApiRefused, App

ADA = "arn:aws:iam::000000000000:user/ada"
AT = "2026-03-02T12:00Z"  # a Monday
EMR = {"type": "emr_serverless", "entry_point": "s3://code/job.py"}
MESSAGES = {"type": "sqs", "queue_url": "https://sqs.eu-west-1.amazonaws.com/000000000000/sluice-target-a"}
LEAVES = [{"type": "partition", "dataset": name} for name in ("flights", "weather")]
BOTH = {"type": "all", "by": ["day"], "triggers": LEAVES}
FLIGHTS = {"type": "partition", "dataset": "flights", "by": ["day"]}


DONE = {"done_flag": "_SUCCESS"}


def document(schedule: dict[str, Any], target: dict[str, Any] = EMR, **more: Any) -> dict[str, Any]:
    """An app with one schedule, ``join``, which is enabled."""
    return {
        "namespace": "demo",
        "app": "flights",
        "datasets": {
            "flights": {"bucket": "lake", "prefix": "raw/flights/", "keys": ["day"], "ready": DONE},
            "weather": {"bucket": "weather-bucket", "prefix": "raw/", "keys": ["day"]},
        },
        "workflows": {"join": {"target": target} | more},
        "schedules": {"join": {"workflow": "join", "enabled": True} | schedule},
    }


def on(trigger: dict[str, Any], *constraints: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"trigger": trigger, "constraints": list(constraints)} | fields


def test_a_schedule_waits_until_both_partitions_are_there(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(BOTH)), at=AT)
    app.partition("flights", day="2026-03-01")
    app.advance("5m")
    assert app.runs("join") == []
    assert "waits for 1 partition of demo.weather" in app.why("join", day="2026-03-01")
    app.partition("weather", day="2026-03-01")
    run = app.run("join")
    assert run.partitions == [{"day": "2026-03-01"}, {"day": "2026-03-01"}]
    assert (run.state, run.at) == ("RUNNING", datetime(2026, 3, 2, 12, 5, tzinfo=UTC))
    run.succeed()
    assert run.state == "SUCCEEDED"
    assert app.why("join", day="2026-03-01") == "it ran at 2026-03-02T12:05:00Z and is SUCCEEDED"


def test_why_of_a_day_that_nothing_reached_says_so(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(BOTH)), at=AT)
    assert app.why("join", day="2026-03-05").startswith("no event of day=2026-03-05 has arrived; no partition")


def test_objects_make_a_partition_ready_at_its_done_flag(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS)), at=AT)
    app.object("flights", "day=2026-03-01/part-0.csv", size="1 MB")
    assert app.runs("join") == []
    app.object("s3://lake/raw/flights/day=2026-03-01/_SUCCESS")
    assert app.run("join", day="2026-03-01").fired_by.startswith("trigger met: 1 partition of demo.flights")


def test_an_object_in_a_bucket_of_the_app_is_noticed(sluice_app: type[App]) -> None:
    app = sluice_app(document(on({"type": "partition", "dataset": "weather"})), at=AT)
    app.object("s3://weather-bucket/raw/day=2026-03-01/part-0.csv")
    assert app.run("join").partitions == [{"day": "2026-03-01"}]


def test_bytes_of_objects_meet_a_size_trigger(sluice_app: type[App]) -> None:
    app = sluice_app(document(on({"type": "size", "dataset": "flights", "bytes": "10MB"})), at=AT)
    app.object("flights", "day=1/a.csv", size="6MB")
    assert "6 MB" in app.why("join")
    app.object("flights", "day=1/b.csv", size="6MB")
    assert len(app.runs("join")) == 1


def test_custom_events_meet_a_trigger_by_their_payload(sluice_app: type[App]) -> None:
    trigger = {"type": "event", "event": "file.checked", "pattern": {"ok": [True]}}
    app = sluice_app(document(on(trigger)), at=AT)
    app.event("file.checked", ok=False)
    assert app.runs("join") == []
    app.event("file.checked", {"ok": True}, id="e1")
    app.event("file.checked", {"ok": True}, id="e1")
    assert len(app.runs("join")) == 1


def test_e11_a_cloudevent_meets_a_trigger_by_its_data(sluice_app: type[App]) -> None:
    trigger = {"type": "event", "event": "file.checked", "pattern": {"data": {"ok": [True]}, "subject": ["a.csv"]}}
    app = sluice_app(document(on(trigger)), at=AT)
    app.cloudevent(source="/files", type="file.checked", subject="a.csv", data={"ok": False})
    assert app.runs("join") == []
    for _ in range(2):
        app.cloudevent(source="/files", id="e1", type="file.checked", subject="a.csv", data={"ok": True})
    [run] = app.runs("join")
    assert run.context["events"][0]["payload"]["data"] == {"ok": True}
    with pytest.raises(ApiRefused, match="expected a value, got nothing"):
        app.cloudevent(source="/files")


def test_an_alarm_starts_a_run(sluice_app: type[App]) -> None:
    app = sluice_app(document(on({"type": "cloudwatch_alarm", "alarm": "disk-full", "state": "ALARM"})), at=AT)
    app.alarm("disk-full", "OK")
    assert app.runs("join") == []
    app.alarm("disk-full")
    assert len(app.runs("join")) == 1


def test_fires_happen_at_their_instants_as_time_passes(sluice_app: type[App]) -> None:
    nightly = {"type": "time", "expression": "30 5 * * *", "zone": "Europe/Paris"}
    app = sluice_app(document(on(nightly)), at=AT)
    first = datetime(2026, 3, 3, 4, 30, tzinfo=UTC)
    assert app.next_fires("join", 2) == [first, datetime(2026, 3, 4, 4, 30, tzinfo=UTC)]
    app.advance_to("2026-03-03T04:29:59Z")
    assert app.runs("join") == []
    app.advance("1s")
    assert [run.at for run in app.runs("join")] == [first]


def test_quiet_ticks_are_left_out_and_nothing_is_missed(sluice_app: type[App]) -> None:
    """The same week, with all ticks and without those that find nothing."""
    every = {"type": "time", "expression": "7 */5 * * *"}
    hurried, patient = (sluice_app(document(on(every)), at=AT) for _ in range(2))
    hurried.advance("2d")
    patient.pass_by("2d")
    assert [run.at for run in hurried.runs()] == [run.at for run in patient.runs()]
    assert len(hurried.runs()) == 10
    assert hurried.now == patient.now == datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_a_failed_run_is_retried_after_its_delay(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS), retries={"attempts": 2}), at=AT)
    app.partition("flights", day=1)
    app.run("join").fail("out of memory")
    [first] = app.runs("join")
    assert (first.state, first.reason) == ("RETRYING", "out of memory")
    app.advance("10m")
    [_, second] = app.runs("join")
    second.fail("out of memory")
    assert [run.state for run in app.runs("join")] == ["RETRYING", "FAILED"]


def test_runs_succeed_by_themselves_after_their_span(sluice_app: type[App]) -> None:
    made = document(on({"type": "time", "expression": "0 5 * * *"}, {"type": "concurrency", "max": 1}))
    made["workflows"]["report"] = {"target": EMR}
    follows = {"type": "program_status", "workflow": "join", "statuses": ["COMPLETED"]}
    made["schedules"]["report"] = {"workflow": "report", "enabled": True, "trigger": follows}
    app = sluice_app(made, at=AT)
    app.runs_take("20m30s", "join")
    app.advance("30d")
    assert [run.state for run in app.runs("join")] == ["SUCCEEDED"] * 30
    assert app.runs("report")[0].at == datetime(2026, 3, 3, 5, 20, 30, tzinfo=UTC)
    assert "RUNNING" in {run.state for run in app.runs("report")}
    app.runs_take("1m")
    app.advance_to(app.next_fires("join")[0])
    app.runs("join")[-1].fail("broken")
    app.advance("1h")
    assert app.runs("join")[-1].state == "FAILED"
    with pytest.raises(ApiRefused, match="no schedule named 'demo.flights.jion'"):
        app.runs_take("1m", "jion")


def test_the_end_of_a_run_starts_what_follows(sluice_app: type[App]) -> None:
    made = document(on(FLIGHTS))
    made["workflows"]["report"] = {"target": EMR}
    follows = {"type": "program_status", "workflow": "join", "statuses": ["COMPLETED"]}
    made["schedules"]["report"] = {"workflow": "report", "enabled": True, "trigger": follows}
    app = sluice_app(made, at=AT)
    app.partition("flights", day=1)
    assert app.runs("report") == []
    app.run("join").succeed()
    assert app.run("report").context["upstream"]["run_id"] == app.run("join").id


def test_a_limit_holds_the_second_job_back(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS, {"type": "concurrency", "max": 1, "on_unmet": "wait"})), at=AT)
    app.partition("flights", day=1)
    app.partition("flights", day=2)
    [running], job = app.runs("join"), app.job("join", day=2)
    assert [(each.type, each.met) for each in job.conditions] == [("concurrency", False)]
    assert "a permit of" in job.wakes
    running.succeed()
    assert app.run("join", day=2).state == "RUNNING"
    assert app.jobs("join") == []


def test_a_job_waits_for_its_approval(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS, {"type": "approval", "role": "lead"})), at=AT)
    app.partition("flights", day=1)
    assert "approv" in app.why("join", day=1)
    with pytest.raises(ApiRefused) as refused:
        app.job("join").approve(by="bob", role="guest")
    assert refused.value.code == "forbidden"
    app.job("join").approve(by="ada", role="lead", reason="looks good")
    assert app.run("join").state == "RUNNING"


def test_a_refused_job_is_on_record_with_its_reason(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS, {"type": "approval", "people": [ADA]})), at=AT)
    app.partition("flights", day=1)
    app.job("join").refuse(by=ADA, reason="bad data")
    [record] = app.records("join")
    assert (record.schedule, record.kind) == ("demo.flights.join", "ABORTED")
    assert record.reason == f"refused by {ADA} at 2026-03-02T12:00:00.000Z: bad data"


def test_a_load_is_measured_again_until_it_is_met(sluice_app: type[App]) -> None:
    metric = {"cloudwatch": {"namespace": "AWS/RDS", "metric": "CPUUtilization"}}
    app = sluice_app(document(on(FLIGHTS, {"type": "load", "of": metric, "below": 80, "recheck": "1m"})), at=AT)
    app.partition("flights", day=1)
    assert "the test has set no measurement: call measure" in app.why("join")
    app.measure(95, of="CPUUtilization")
    app.advance("10m")
    assert app.runs("join") == []
    assert "95" in app.why("join")
    app.measure(40)
    app.advance("1m")
    assert len(app.runs("join")) == 1


def test_probes_answer_one_after_the_other(sluice_app: type[App]) -> None:
    probe = {"type": "probe", "target": {"type": "http", "url": "https://example.com/ready"}}
    app = sluice_app(document(on(FLIGHTS, probe)), at=AT)
    app.answer_probes({"met": False, "why": "the site is down"}, {"met": True})
    app.partition("flights", day=1)
    assert app.runs("join") == []
    assert "the site is down" in app.why("join")
    app.advance("1m")
    assert len(app.runs("join")) == 1


def test_a_worker_ends_its_run_with_metrics(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS), {"type": "worker", "pool": "laptops"}), at=AT)
    for day in range(12):
        app.partition("flights", day=day)
    app.run("join", day=11).succeed(metrics={"rows": 3})
    assert [run.state for run in app.runs("join")].count("SUCCEEDED") == 1
    app.run("join", day=0).fail("broken disk")
    assert app.run("join", day=0).reason == "broken disk"


def test_a_delivery_succeeds_at_once(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS), {"type": "sqs", "queue_url": "https://sqs.example/q"}), at=AT)
    app.partition("flights", day=1)
    assert app.run("join").state == "SUCCEEDED"


PAGER = {
    "type": "http",
    "url": "https://events.pagerduty.com/v2/enqueue",
    "body_secrets": {"routing_key": {"ssm": "/sluice-target/demo/pagerduty"}},
}


def test_w9_a_test_sees_the_incident_that_a_failure_opens(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS), notify=[{"on": ["failed"], "form": "pagerduty", "to": PAGER}]), at=AT)
    app.partition("flights", day=1)
    app.run("join").fail("disk full")
    app.advance("1m")
    [opened] = app.notices()
    assert (opened.to["url"], opened.body["event_action"]) == (PAGER["url"], "trigger")
    assert opened.body["payload"]["summary"] == "demo.flights.join failed: disk full"
    app.partition("flights", day=2)
    app.run("join", day=2).succeed()
    app.advance("10m")
    assert [told.body["event_action"] for told in app.notices()] == ["trigger", "resolve"]


def test_w9_a_test_sees_quiet_hours_end(sluice_app: type[App]) -> None:
    team = {"type": "sns", "topic_arn": "arn:aws:sns:eu-west-1:000000000000:sluice-target-team"}
    night = {"from": "12:00", "to": "06:00", "zone": "Europe/Paris"}
    app = sluice_app(
        document(on(FLIGHTS), notify=[{"on": ["failed"], "form": "mail", "to": team, "quiet": night}]), at=AT
    )
    app.partition("flights", day=1)
    app.run("join").fail("disk full")
    app.advance_to("2026-03-03T04:55Z")
    assert app.notices() == []
    app.advance("10m")
    [told] = app.notices()
    assert told.body.startswith("demo.flights.join: 1 event\n")
    assert "disk full" in told.body


def test_a_cancelled_run_and_job_stay_cancelled(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS, {"type": "concurrency", "max": 1, "on_unmet": "wait"})), at=AT)
    app.partition("flights", day=1)
    app.partition("flights", day=2)
    app.job("join", day=2).cancel()
    app.run("join", day=1).cancel()
    app.advance("10m")
    assert [run.state for run in app.runs("join")] == ["CANCELLED"]
    assert [record.kind for record in app.records("join")] == ["DROPPED"]


def test_a_paused_schedule_keeps_its_work(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS)), at=AT)
    app.pause("join")
    app.partition("flights", day=1)
    assert "paused (hold) since" in app.why("join")
    app.resume("join")
    assert len(app.runs("join")) == 1


def test_a_user_runs_a_schedule_now(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS)), at=AT)
    app.run_now("join", limit=5)
    assert app.run("join").properties == {"limit": 5}


def test_a_backfill_runs_the_past(sluice_app: type[App]) -> None:
    app = sluice_app(document(on({"type": "time", "expression": "0 5 * * *"})), at=AT)
    app.backfill("join", start="2026-02-01T00:00:00Z", to="2026-02-04T00:00:00Z", concurrency=3)
    assert len(app.runs("join")) == 3


def test_two_apps_of_a_namespace_share_a_world(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS)), at=AT)
    follows = {"type": "program_status", "workflow": "flights.join", "statuses": ["COMPLETED"]}
    schedules = {"report": {"workflow": "report", "enabled": True, "trigger": follows}}
    app.apply({"app": "reports", "workflows": {"report": {"target": EMR}}, "schedules": schedules})
    app.partition("flights", day=1)
    app.run("join").succeed()
    assert [run.schedule for run in app.runs()] == ["demo.flights.join", "demo.reports.report"]


def test_a_file_is_read_as_apply_reads_it(sluice_app: type[App], tmp_path: Path) -> None:
    path = tmp_path / "app.yaml"
    path.write_text(
        "namespace: demo\napp: x\nworkflows:\n"
        "  clean: {target: {type: emr_serverless, entry_point: 's3://${bucket}/clean.py'}}\n"
        "schedules:\n  clean: {workflow: clean, enabled: true, trigger: {type: time, expression: '0 5 * * *'}}\n"
    )
    app = sluice_app(path, values={"bucket": "code"})
    app.advance("1d")
    assert app.run("clean").target["entry_point"] == "s3://code/clean.py"


def test_an_invalid_app_is_refused_as_the_api_does(sluice_app: type[App]) -> None:
    with pytest.raises(ApiRefused) as refused:
        sluice_app(document(on({"type": "partition", "dataset": "flihgts"})), at=AT)
    assert (refused.value.code, refused.value.field) == ("unknown_reference", "schedules.join.trigger")


QUIET_DATA = {"type": "quiet", "of": {"type": "partition", "dataset": "flights"}}


@pytest.mark.parametrize(
    ("trigger", "field", "hint"),
    [
        ({"type": "elapsed", "span": "1h"}, "span", "did you mean 'after'?"),
        ({"type": "elapsed", "every": "1h"}, "every", "did you mean 'after'?"),
        (QUIET_DATA | {"for": "1h"}, "for", "did you mean 'after'?"),
        ({"type": "quiet", "after": "1h", "trigger": QUIET_DATA["of"]}, "trigger", "did you mean 'of'?"),
        (
            {"type": "quiet", "after": "1h", "dataset": "flights"},
            "dataset",
            "did you mean 'schedules.join.trigger.of.dataset'?",
        ),
    ],
)
def test_a_wrong_field_is_named_with_the_one_that_was_meant(
    sluice_app: type[App], trigger: dict[str, Any], field: str, hint: str
) -> None:
    with pytest.raises(ApiRefused) as refused:
        sluice_app(document(on(trigger)), at=AT)
    assert (refused.value.code, refused.value.field) == ("unknown_field", f"schedules.join.trigger.{field}")
    assert refused.value.hint == hint


def test_a_wrong_field_of_a_backfill_names_the_one_meant(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS)), at=AT)
    with pytest.raises(ApiRefused) as refused:
        app.backfill("join", partition={"values": [{"day": "2026-03-01"}]})
    assert refused.value.hint == "did you mean 'partitions'?"


def test_runs_and_records_of_deleted_schedules_are_listed(sluice_app: type[App]) -> None:
    hourly = on({"type": "time", "expression": "0 * * * *"})
    content = document(hourly, MESSAGES)
    content["schedules"]["gone"] = dict(content["schedules"]["join"])
    app = sluice_app(content, at=AT)
    app.advance("2h")
    app.pause("gone", "hold")
    app.advance("2h")
    before = app.runs()
    assert len(before) == 2 + 4
    del content["schedules"]["gone"]
    app.apply(content)
    assert [run.id for run in app.runs()] == [run.id for run in before]
    assert {record.schedule for record in app.records()} == {"demo.flights.gone"}


def test_a_user_runs_a_partition_now(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS)), at=AT)
    app.run_now("join", {"day": 3}, threshold=1)
    assert app.run("join", day="3").properties == {"threshold": 1}
    with pytest.raises(ApiRefused) as refused:
        app.run_now("join", {"hour": 3})
    assert refused.value.hint == "write each key once: day=..."


def test_an_unknown_schedule_is_named_with_the_nearest(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS)), at=AT)
    for ask in (app.runs, app.jobs, app.records, app.why, app.enable):
        with pytest.raises(ApiRefused) as refused:
            ask("joni")
        assert refused.value.code == "not_found"
        assert refused.value.hint == "did you mean 'demo.flights.join'? Known: demo.flights.join"


def test_a_missing_run_is_reported_with_the_reason(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS)), at=AT)
    with pytest.raises(AssertionError, match="expected a run of join, got none: no partition has arrived yet"):
        app.run("join")


def test_time_never_goes_back(sluice_app: type[App]) -> None:
    app = sluice_app(document(on(FLIGHTS)), at=AT)
    with pytest.raises(ApiRefused, match="expected an instant after 2026-03-02T12:00:00"):
        app.advance_to("2026-03-02T11:00Z")


@pytest.mark.long
def test_an_app_and_its_run_take_milliseconds(sluice_app: type[App]) -> None:
    """Twenty apps that run: a mean of 15 ms on an idle machine. The bound leaves room for a busy one."""
    began = time.process_time()
    for _ in range(20):
        app = sluice_app(document(on(BOTH)), at=AT)
        app.partition("flights", day=1)
        app.partition("weather", day=1)
        app.run("join").succeed()
    assert (time.process_time() - began) / 20 < 0.1


def test_the_service_logs_errors_only_and_then_as_before(capfd: pytest.CaptureFixture[str]) -> None:
    from chalicelib.log import logger

    before = logger.log_level
    with App.quiet():
        App(document(on(FLIGHTS)), at=AT)
        assert logger.log_level != before or before >= 40
    assert logger.log_level == before


def test_e2_a_large_fire_has_a_run_for_each_event(sluice_app: type[App]) -> None:
    fire = on({"type": "time", "expression": "0 13 * * *"}, spread={"count": 40, "over": "2s"})
    app = sluice_app(document(fire, MESSAGES), at=AT)
    app.advance("2h")
    runs = app.runs("join")
    assert len({run.id for run in runs}) == 40
    assert {run.state for run in runs} == {"SUCCEEDED"}
    assert [run.context["spread"] for run in runs] == [{"index": number, "count": 40} for number in range(40)]


def test_e2_a_large_fire_on_hold_has_a_job_for_each_event(sluice_app: type[App]) -> None:
    fire = on({"type": "time", "expression": "0 13 * * *"}, spread={"count": 40})
    app = sluice_app(document(fire, MESSAGES), at=AT)
    app.advance("59m")
    app.pause("join")
    app.advance("5m")
    jobs = app.jobs("join")
    assert len({job.id for job in jobs}) == 40
    assert "paused" in jobs[7].why
    jobs[7].cancel()
    assert len(app.jobs("join")) == 39
    app.disable("join")
    assert sorted(record.count for record in app.records("join")) == [1, 39]


PLACE = {"cluster": "jobs", "task_definition": "load", "container": "job", "subnets": ["subnet-0a1b2c3d"]}
QUERY = {"type": "athena", "query": "SELECT * FROM t WHERE day = ?", "parameters": ["{{correlation.day}}"]}
ENGINES: list[dict[str, Any]] = [
    {"type": "ecs", **PLACE, "command": ["load", "{{correlation.day}}"]},
    {"type": "batch", "job_queue": "night", "job_definition": "load", "command": ["{{correlation.day}}"]},
    {"type": "glue", "job": "load", "arguments": {"--day": "{{correlation.day}}"}},
    QUERY,
    {
        "type": "emr_eks",
        "virtual_cluster": "0b1c2d3e4f",
        "execution_role_arn": "arn:aws:iam::123456789012:role/job",
        "release": "emr-7.5.0-latest",
        "entry_point": "s3://code/clean.py",
    },
]


@pytest.mark.parametrize("target", ENGINES, ids=lambda target: target["type"])
def test_w22_runs_of_engines_are_played(sluice_app: type[App], target: dict[str, Any]) -> None:
    app = sluice_app(document(on(FLIGHTS), target), at=AT)
    app.partition("flights", day="2026-03-01")
    run = app.run("join")
    assert run.state == "RUNNING"
    run.succeed()
    assert run.state == "SUCCEEDED"
    app.partition("flights", day="2026-03-02")
    run = app.runs("join")[-1]
    run.fail()
    assert run.state == "FAILED"


def test_w22_a_placeholder_in_a_query_is_refused(sluice_app: type[App]) -> None:
    with pytest.raises(ApiRefused, match="expected a query without placeholders"):
        sluice_app(document(on(FLIGHTS), {**QUERY, "query": "SELECT '{{correlation.day}}'"}), at=AT)
