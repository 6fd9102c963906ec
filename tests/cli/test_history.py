"""`why`, `jobs`, `runs` and `datasets`: waiting jobs, runs, and the reasons."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from sluice import worker
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import (
    CLEAN,
    JOB,
    SCHEDULES,
    View,
    dataset,
    job,
    job_why,
    message,
    partition,
    past,
    record,
    run,
    run_page,
    run_why,
    schedule_why,
)

NS = "/v1/namespaces/demo"


def test_why_job_shows_the_decision_what_came_and_is_missing(api: PlayedApi, sluice: Sluice) -> None:
    view = job_why()
    api.play("GET", f"/v1/jobs/{JOB}/why", view)
    page = sluice("why", "job", JOB)
    assert page.exit_code == 0
    lines = [line.split(maxsplit=1) for line in page.stdout.splitlines()]
    assert lines[0][1] == f"{JOB}  PENDING_TRIGGER"
    assert ["decision", "wait"] in lines
    assert ["arrived", "1 partition of demo.flights came at 2026-11-20T11:00:00.000Z"] in lines
    assert ["missing", "1 partition of demo.weather"] in lines
    assert "wakes by   the next event that its trigger waits for" in page.stdout
    assert "(2 m ago)" in page.stdout
    assert json.loads(sluice("why", "job", JOB, "--json").stdout) == view


def test_why_run_shows_what_fired_it(api: PlayedApi, sluice: Sluice) -> None:
    view = run_why()
    api.play("GET", f"/v1/runs/{JOB}/why", view)
    page = sluice("why", "run", JOB).stdout
    assert "the target is running it" in page
    assert "trigger met: 1 partition of demo.flights" in page
    assert "2.0 s" in page
    assert json.loads(sluice("why", "run", JOB, "--json").stdout) == view


def test_why_schedule_shows_its_jobs_and_its_next_fire(api: PlayedApi, sluice: Sluice) -> None:
    view = schedule_why()
    api.play("GET", f"{SCHEDULES}/clean/why", view)
    page = sluice("why", "schedule", "clean", "-n", "demo", "-a", "flights").stdout
    assert f"schedule {CLEAN}  enabled" in page
    assert "(in 4 m)" in page
    assert f"job {JOB}  PENDING_TRIGGER" in page
    assert json.loads(sluice("why", "schedule", CLEAN, "--json").stdout) == view


def failure(**more: Any) -> View:
    rerun = f"run it again: sluice runs rerun {JOB}"
    told = {"run_id": JOB, "attempt": 2, "attempts": 3, "state": "FAILED", "partition": {"day": "1"}, "node": None}
    return (
        told
        | {"dag_run": None, "error": "disk full", "code": "target_failed", "at": past(minutes=2), "next": rerun}
        | more
    )


def test_c14_why_lists_each_day_that_failed_and_what_to_do(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"{SCHEDULES}/clean/why", schedule_why() | {"jobs": [], "failures": [failure()]})
    page = sluice("why", CLEAN).stdout
    assert "Failed, and nothing ran since" in page
    row = page[page.index("day=1") :]
    assert row.split()[row.split().index("2/3") :][:2] == ["2/3", JOB]
    assert "disk full (run it again: sluice runs rerun" in " ".join(row.split())


def test_c14_why_explains_a_dag_by_its_name(api: PlayedApi, sluice: Sluice) -> None:
    api.refuse("GET", f"{SCHEDULES}/daily/why", 404, "not_found", "no schedule named 'demo.flights.daily'")
    of_node = failure(node="load", partition=None)
    view = {"dag": "demo.flights.daily", "state": "enabled", "why": "node load failed", "next_fire": None}
    api.play("GET", f"{NS}/apps/flights/dags/daily/why", view | {"failures": [of_node], "refs": []})
    page = sluice("why", "demo.flights.daily").stdout
    assert page.startswith("dag demo.flights.daily  enabled")
    assert "node load failed" in page and "load" in page.partition("Failed, and nothing ran since")[2]
    api.refuse("GET", f"{SCHEDULES}/none/why", 404, "not_found", "no schedule named 'demo.flights.none'")
    api.refuse("GET", f"{NS}/apps/flights/dags/none/why", 404, "not_found", "no dag")
    assert "no schedule named 'demo.flights.none'" in sluice("why", "demo.flights.none").stderr


def test_why_takes_a_name_or_an_id_without_its_kind(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"{SCHEDULES}/clean/why", schedule_why())
    assert sluice("why", CLEAN).stdout == sluice("why", "schedule", CLEAN).stdout != ""
    api.play("GET", f"/v1/runs/{JOB}/why", run_why())
    assert sluice("why", JOB).stdout == sluice("why", "run", JOB).stdout != ""
    assert "got 'shedule'" in sluice("why", "shedule", CLEAN).stderr


def test_why_schedule_with_many_jobs_lists_the_rest_briefly(api: PlayedApi, sluice: Sluice) -> None:
    jobs = [job_why(f"{JOB[:-1]}{number}") for number in range(8)]
    api.play("GET", f"{SCHEDULES}/clean/why", {**schedule_why(), "jobs": jobs})
    page = sluice("why", "schedule", CLEAN).stdout
    assert page.count("decision") == 3
    assert "and 5 more jobs" in page
    assert all(each["job_id"] in page for each in jobs)


def ended_why(kind: str = "ABORTED") -> View:
    """What the API says of a job that ended without a run."""
    return {
        "run_id": JOB,
        "kind": "record",
        "schedule": CLEAN,
        "state": kind,
        "at": "2026-11-20T11:00:00.000Z",
        "why": "its timeout of 1d ended: waits for 1 partition of demo.weather",
        "fired_by": None,
        "waited_ms": 86_400_000,
    }


@pytest.mark.parametrize("word", ["job", "run"])
def test_why_shows_what_became_of_a_job_that_never_ran(api: PlayedApi, sluice: Sluice, word: str) -> None:
    hint = "it was aborted at 2026-11-20T11:00:00.000Z: its timeout"
    api.refuse("GET", f"/v1/jobs/{JOB}/why", 404, "not_found", f"no job named '{JOB}'", hint=hint)
    api.play("GET", f"/v1/runs/{JOB}/why", ended_why())
    done = sluice("why", word, JOB)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == f"job {JOB}  ABORTED"
    assert "its timeout of 1d ended: waits for 1 partition of demo.weather" in done.stdout
    assert "ended   2026-11-20 11:00:00.000 UTC" in done.stdout
    assert json.loads(sluice("why", word, JOB, "--json").stdout) == ended_why()


@pytest.mark.parametrize("word", ["job", "run"])
def test_why_takes_the_id_of_a_job_and_of_its_run(api: PlayedApi, sluice: Sluice, word: str) -> None:
    api.play("GET", f"/v1/jobs/{JOB}/why", job_why())
    assert f"job {JOB}  PENDING_TRIGGER" in sluice("why", word, JOB).stdout
    api.refuse("GET", f"/v1/jobs/{JOB}/why", 404, "not_found", f"no job named '{JOB}'", hint="it has become a run")
    api.play("GET", f"/v1/runs/{JOB}/why", run_why())
    assert f"run {JOB}  RUNNING" in sluice("why", word, JOB).stdout


def test_why_of_an_unknown_id_is_refused_with_the_hint(api: PlayedApi, sluice: Sluice) -> None:
    api.refuse("GET", f"/v1/jobs/{JOB}/why", 404, "not_found", f"no job named '{JOB}'", hint="see sluice jobs")
    done = sluice("why", "job", JOB)
    assert (done.exit_code, done.stderr.splitlines()) == (
        1,
        [f"error: no job named '{JOB}'", "  hint: see sluice jobs"],
    )


def test_why_and_describe_show_the_last_work_that_never_ran(api: PlayedApi, sluice: Sluice) -> None:
    ended = [
        record("CANCELLED", reason="cancelled by ada"),
        record("SKIPPED", "b", reason="skipped on request", count=3),
    ]
    view = schedule_why() | {"ended": ended}
    api.play("GET", f"{SCHEDULES}/clean/why", view)
    page = sluice("why", "schedule", CLEAN).stdout
    below = page.partition("Last that never ran, or was cancelled")[2]
    for words in ("CANCELLED", "cancelled by ada", "SKIPPED", "skipped on request", "UTC (3 m ago)"):
        assert words in below
    messages = "/v1/namespaces/demo/apps/flights/messages"
    api.play("GET", f"{messages}/backup", message())
    api.play("GET", f"{messages}/backup/why", view)
    api.lists[f"{messages}/backup/runs"] = []
    assert "skipped on request" in sluice("describe", "message", "demo.flights.backup").stdout


def test_why_of_a_retry_shows_what_fired_its_first_attempt(api: PlayedApi, sluice: Sluice) -> None:
    api.play(
        "GET", f"/v1/jobs/{JOB}/why", job_why() | {"fired_by": "trigger met: 1 event go", "why": "attempt 1 failed"}
    )
    assert "fired by   trigger met: 1 event go" in sluice("why", "job", JOB).stdout


@pytest.mark.parametrize(
    ("args", "path"),
    [(("-n", "demo"), f"{NS}/jobs"), (("-s", CLEAN), f"{SCHEDULES}/clean/jobs")],
)
def test_jobs_are_listed_with_what_they_wait_for(
    api: PlayedApi, sluice: Sluice, args: tuple[str, ...], path: str
) -> None:
    views = [job()]
    api.lists[path] = views
    table = sluice("jobs", *args).stdout
    for words in (JOB, "PENDING_LAUNCH", "2013/1/1", "waits for a slot of workflow demo.flights.clean_flights"):
        assert words in table
    assert json.loads(sluice("jobs", *args, "--json").stdout) == {"items": views, "next_cursor": None}


def test_a_truncated_list_says_so_and_how_to_see_the_rest(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/jobs"] = [job(f"{JOB[:-3]}{number:03d}") for number in range(130)]
    some = sluice("jobs", "-n", "demo")
    assert some.stdout.count(CLEAN + ".m3k") == 100
    assert "100 shown; sluice jobs ... --limit 0 shows all" in some.stderr
    every = sluice("jobs", "-n", "demo", "--limit", "0")
    assert every.stdout.count(CLEAN + ".m3k") == 130
    assert every.stderr == ""


def test_runs_are_listed_with_their_durations(api: PlayedApi, sluice: Sluice) -> None:
    views = [run(state="RUNNING"), run(f"{JOB}b", state="FAILED", attempt=2, attempts=2)]
    api.lists[f"{NS}/runs"] = views
    lines = sluice("runs", "list", "-n", "demo").stdout.splitlines()
    assert lines[0].split() == ["RUN", "STATE", "STARTED", "WAITED", "TOOK", "PARTITION"]
    assert lines[1].startswith(f"{JOB} ")
    assert "RUNNING" in lines[1]
    assert "FAILED 2/2" in lines[2]
    assert "2.0 s   42 s" in lines[2]
    assert lines[3].strip() == "exit code 1: the file is empty"
    answer = json.loads(sluice("runs", "list", "-n", "demo", "--json").stdout)
    assert answer == {"items": views, "next_cursor": None}


def test_the_cost_of_runs_is_shown_with_its_sum(api: PlayedApi, sluice: Sluice) -> None:
    bill = {"vcpu_hours": 0.1, "memory_gb_hours": 0.2, "storage_gb_hours": 0.0}
    views = [run(billed=bill | {"cost_usd": cost}) for cost in (0.0046, 0.02, None)] + [run(billed=None)]
    api.play("GET", f"{NS}/runs", {"items": views, "next_cursor": None})
    done = sluice("runs", "list", "-n", "demo", "--cost")
    assert "COST" in done.stdout.splitlines()[0]
    assert [line.split().count("$0.0046") for line in done.stdout.splitlines()].count(1) == 1
    assert "2 runs cost $0.0246 at list price; 2 runs without a bill" in done.stderr
    assert "COST" not in sluice("runs", "list", "-n", "demo").stdout
    refused = sluice("runs", "list", "-n", "demo", "--cost", "--json")
    assert (refused.exit_code, "expected one of --cost and --json, got both" in refused.stderr) == (2, True)


def test_an_attempt_is_shown_only_where_it_matters(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/runs"] = [run(attempts=3), run(state="RETRYING", attempts=3), run(attempt=2, attempts=3)]
    rows = sluice("runs", "list", "-n", "demo").stdout.splitlines()[1:]
    first, failed, second = (row for row in rows if row.startswith(JOB))
    assert "SUCCEEDED  " in first
    assert "RETRYING 1/3" in failed
    assert "SUCCEEDED 2/3" in second


def test_runs_are_filtered_by_state_and_day(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{SCHEDULES}/clean/runs"] = [run(f"{JOB}b", state="FAILED")]
    assert f"{JOB}b" in sluice("runs", "list", "-s", CLEAN, "--state", "failed", "--day", "2026-11-20").stdout
    assert api.requests[0].query == {"state": "FAILED", "day": "2026-11-20", "limit": "100"}


def test_a_span_begins_at_a_day_an_instant_or_long_ago(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/runs"] = []
    sluice("runs", "list", "-n", "demo", "--since", "2026-11-20", "--until", "2026-11-21T01:00:00+01:00")
    sluice("runs", "list", "-n", "demo", "--since", "2h")
    first, second = (request.query for request in api.requests)
    assert (first["from"], first["to"]) == ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")
    begun = datetime.now(UTC) - datetime.fromisoformat(second["from"])
    assert 7_200 <= begun.total_seconds() < 7_260


def test_a_search_reads_pages_until_enough_is_found(api: PlayedApi, sluice: Sluice) -> None:
    """A page of the API may be short, or empty, although others follow."""
    few = [run(f"{JOB[:-3]}{number:03d}", state="FAILED") for number in range(8)]
    pages = [{"items": few[begin:end], "next_cursor": cursor} for begin, end, cursor in
             ((0, 2, "a"), (2, 2, "b"), (2, 5, "c"), (5, 8, None))]  # fmt: skip
    api.play("GET", f"{NS}/runs", *pages)
    some = sluice("runs", "list", "-n", "demo", "--state", "FAILED", "--limit", "3")
    assert some.stdout.count("FAILED") == 3
    assert [request.query.get("cursor") for request in api.requests] == [None, "a", "b"]
    assert "--limit 0 shows all" in some.stderr
    api.play("GET", f"{NS}/runs", *pages)
    every = sluice("runs", "list", "-n", "demo", "--state", "FAILED", "--limit", "0")
    assert every.stdout.count("FAILED") == 8


def test_show_prints_a_run_with_attempts_instants_and_events(api: PlayedApi, sluice: Sluice) -> None:
    view = run_page(run(state="RETRYING", attempts=2), run(state="SUCCEEDED", attempt=2, attempts=2))
    api.play("GET", f"/v1/runs/{JOB}", view)
    page = sluice("runs", "show", JOB).stdout
    for words in (
        f"run {JOB}  SUCCEEDED",
        "trigger met: 1 partition of demo.flights",
        "2 of 2",
        "start requested",
        "+ 400 ms",
        "+ 10 s",
        "Attempts",
        "exit code 1: the file is empty",
        "Events (1)",
        "s3://lake/raw/flights/year=2013/month=1/day=1/",
    ):
        assert words in page
    assert json.loads(sluice("runs", "show", JOB, "--json").stdout) == view


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        (
            {"kind": "event", "type": "orders.closed", "payload": {"n": 1, "who": "Zoë"}},
            'orders.closed  payload={"n": 1, "who": "Zoë"}',
        ),
        (
            {"kind": "snapshot", "dataset": "demo.orders", "path": "s3://lake/o/", "snapshot": {"id": "7"}},
            's3://lake/o/, snapshot={"id": "7"}',
        ),
        (
            {"kind": "size", "dataset": "demo.raw", "path": "s3://lake/raw/a", "bytes": 2048},
            "s3://lake/raw/a, bytes=2048",
        ),
        (
            {"kind": "cloudwatch_alarm", "alarm": "disk full", "state": "ALARM", "previous_state": None},
            "alarm=disk full, state=ALARM",
        ),
        ({"kind": "zz_newer", "hue": "green"}, "hue=green"),
        ({"kind": "elapsed"}, "elapsed"),
    ],
)
def test_show_prints_the_fields_of_each_kind_of_event(
    api: PlayedApi, sluice: Sluice, fields: dict[str, Any], shown: str
) -> None:
    view = run_page(run()) | {"events": [{"id": "e1", "instant": 1763636400000} | fields]}
    api.play("GET", f"/v1/runs/{JOB}", view)
    page = sluice("runs", "show", JOB).stdout
    assert shown in page
    assert "instant" not in page and "None" not in page


def test_show_prints_an_event_that_came_twice_once(api: PlayedApi, sluice: Sluice) -> None:
    [event] = run_page(run())["events"]
    api.play("GET", f"/v1/runs/{JOB}", run_page(run()) | {"events": [event, event, event | {"id": "other"}]})
    page = sluice("runs", "show", JOB).stdout
    assert "Events (2)" in page
    assert page.count("s3://lake/raw/flights/year=2013") == 2


def test_h5_a_run_shows_its_deadline_and_how_long_it_waited(api: PlayedApi, sluice: Sluice) -> None:
    due = {"start_by": None, "end_by": "2026-11-20T14:00:00.000Z", "waited_ms": 90_000}
    api.play("GET", f"/v1/runs/{JOB}", run_page(run(**due)))
    page = sluice("runs", "show", JOB).stdout
    assert "to end by 2026-11-20 14:00:00.000 UTC" in page
    assert "1 m 30 s" in page
    api.play("GET", f"/v1/runs/{JOB}", run_page(run()))
    assert "deadline" not in sluice("runs", "show", JOB).stdout


def test_a_run_of_one_attempt_has_no_table_of_attempts(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", f"/v1/runs/{JOB}", run_page(run()))
    assert "Attempts" not in sluice("runs", "show", JOB).stdout


@pytest.mark.parametrize("args", [("demo.flights",), ("flights", "-n", "demo")])
def test_datasets_and_their_partitions_are_listed(api: PlayedApi, sluice: Sluice, args: tuple[str, ...]) -> None:
    sets, parts = [dataset()], [partition(1), partition(2)]
    api.lists |= {f"{NS}/datasets": sets, f"{NS}/datasets/flights/partitions": parts}
    assert "s3://lake/raw/flights/" in sluice("datasets", "-n", "demo").stdout
    table = sluice("datasets", *args).stdout
    assert "year=2013/month=1/day=2  3 m ago" in table
    assert json.loads(sluice("datasets", *args, "--json").stdout) == {"items": parts, "next_cursor": None}


PERIOD = {
    "start": "2026-11-20T10:00:00.000Z",
    "end": "2026-11-20T11:00:00.000Z",
    "zone": "Europe/Paris",
    "label": "2026-11-20T11",
}


def test_t24_partitions_are_listed_with_their_periods(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[f"{NS}/datasets/flights/partitions"] = [
        partition(1) | {"period": PERIOD},
        partition(2) | {"period": None},
    ]
    table = sluice("datasets", "demo.flights").stdout
    assert "year=2013/month=1/day=1  2026-11-20T11 Europe/Paris  3 m ago" in table
    assert "year=2013/month=1/day=2  -                           3 m ago" in table


def test_t28_late_partitions_are_listed_with_their_reasons(api: PlayedApi, sluice: Sluice) -> None:
    late = {"schedule": "demo.flights.sum", "at": partition(1)["ready_at"], "reason": "the partition is late"}
    api.lists[f"{NS}/datasets/flights/partitions"] = [partition(1) | {"late": [late]}, partition(2)]
    table = sluice("datasets", "demo.flights").stdout
    assert "LATE PARTITION" in table
    assert "year=2013/month=1/day=1  demo.flights.sum  3 m ago  the partition is late" in table


def test_t24_a_run_shows_the_periods_of_its_events(api: PlayedApi, sluice: Sluice) -> None:
    period = PERIOD | {"start": 1_763_632_800_000, "end": 1_763_636_400_000}
    event = {"kind": "partition", "id": "p1", "instant": 1_763_640_000_000, "dataset": "demo.flights",
             "path": "s3://lake/raw/flights/dt=2026-11-20/hour=11/", "period": period}  # fmt: skip
    events = [event | {"partition": {"dt": "2026-11-20", "hour": "11"}}, {"kind": "time", "id": "t1", "instant": 0}]
    api.play("GET", f"/v1/runs/{JOB}", run_page(run()) | {"events": events})
    page = sluice("runs", "show", JOB).stdout
    assert "PERIOD" in page
    assert "dt=2026-11-20/hour=11  2026-11-20T11 Europe/Paris" in page
    assert "period=" not in page


@pytest.mark.parametrize("command", [("jobs",), ("runs", "list"), ("datasets",)])
def test_an_empty_history_is_reported_on_stderr(api: PlayedApi, sluice: Sluice, command: tuple[str, ...]) -> None:
    empty: list[View] = []
    api.lists |= {f"{NS}/jobs": empty, f"{NS}/runs": empty, f"{NS}/datasets": empty}
    done = sluice(*command, "-n", "demo")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no " in done.stderr
    assert json.loads(sluice(*command, "-n", "demo", "--json").stdout) == {"items": [], "next_cursor": None}


def test_w15_runs_rerun_uses_a_new_key_and_prints_the_new_id(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"/v1/runs/{JOB}/rerun", {"job_id": f"{JOB}2"})
    page = sluice("runs", "rerun", JOB)
    assert (page.exit_code, f"runs again as {JOB}2" in page.output) == (0, True)
    sluice("runs", "rerun", JOB)
    keys = [request.headers["idempotency-key"] for request in api.sent("POST", f"/v1/runs/{JOB}/rerun")]
    assert len(set(keys)) == 2


def test_w7_runs_ping_says_that_the_target_is_being_polled(api: PlayedApi, sluice: Sluice) -> None:
    run = {"run_id": JOB, "state": "RUNNING"}
    api.play("POST", f"/v1/runs/{JOB}/ping", run)
    polled = sluice("runs", "ping", JOB)
    assert f"{JOB} is RUNNING; its target is being polled; see sluice runs show {JOB}" in polled.output
    assert polled.stdout == "", "a script reads the run with --json"
    assert json.loads(sluice("runs", "ping", JOB, "--json").stdout) == run
    error = "expected a run that has not ended, got one that is FAILED"
    api.refuse("POST", f"/v1/runs/{JOB}/ping", 409, "conflict", error)
    refused = sluice("runs", "ping", JOB)
    assert (refused.exit_code, error in refused.output) == (1, True)


def test_w6_runs_cancel_says_that_the_end_was_requested(api: PlayedApi, sluice: Sluice) -> None:
    api.play("POST", f"/v1/runs/{JOB}/cancel", {"run_id": JOB, "state": "RUNNING"})
    cancelled = f"{JOB} is being cancelled; it is RUNNING until its target has ended it"
    assert cancelled in sluice("runs", "cancel", JOB).output
    error = "expected a run that has not ended, got one that is SUCCEEDED"
    api.refuse("POST", f"/v1/runs/{JOB}/cancel", 409, "conflict", error)
    refused = sluice("runs", "cancel", JOB)
    assert (refused.exit_code, error in refused.output) == (1, True)


def test_w15_runs_logs_prints_the_log_unchanged(api: PlayedApi, sluice: Sluice) -> None:
    view = {"run_id": JOB, "attempt": 2, "state": "FAILED", "streams": {"output": ["one [x]", "two"]}, "why": None}
    api.play("GET", f"/v1/runs/{JOB}/logs", view)
    page = sluice("runs", "logs", JOB, "--attempt", "2", "-l", "2")
    assert page.stdout == "one [x]\ntwo\n"
    assert api.sent("GET", f"/v1/runs/{JOB}/logs")[0].query == {"attempt": "2", "lines": "2"}
    api.play("GET", f"/v1/runs/{JOB}/logs", {**view, "streams": {}, "why": "the target has no run yet"})
    page = sluice("runs", "logs", JOB)
    assert (page.stdout, page.stderr) == ("", "the target has no run yet\n")


def test_w5_worker_run_has_the_plan_of_its_options(
    api: PlayedApi, sluice: Sluice, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[worker.Plan] = []

    class Seen(worker.Worker):
        def __init__(self, client: Any, plan: worker.Plan, *more: Any) -> None:
            plans.append(plan)
            super().__init__(client, plan, *more)

    monkeypatch.setattr(worker, "Worker", Seen)
    api.play("POST", "/v1/workers/demo.etl/claim", {"leases": []})
    options = ("--grace", "7", "--aws-keys", "--allow-dashes", "--concurrency", "2", "--name", "ann", "--once")
    assert sluice("worker", "run", "--pool", "demo.etl", *options, "--", "true").exit_code == 0
    assert plans == [worker.Plan("demo.etl", "ann", ["true"], 2, 7.0, True, True)]


def test_w5_worker_run_needs_the_full_name_of_a_pool(api: PlayedApi, sluice: Sluice) -> None:
    page = sluice("worker", "run", "--pool", "etl", "--", "true")
    assert (page.exit_code, "expected a namespace, got none" in page.output) == (2, True)
    page = sluice("worker", "run", "--pool", "demo.flights.etl", "--", "true")
    assert (page.exit_code, "expected a pool as NAMESPACE.POOL" in page.output) == (2, True)
    api.play("POST", "/v1/workers/demo.etl/claim", {"leases": []})
    page = sluice("worker", "run", "-p", "etl", "-n", "demo", "--name", "ann", "--once", "--", "true")
    assert page.exit_code == 0
    claims = api.sent("POST", "/v1/workers/demo.etl/claim")
    assert [request.body for request in claims] == [{"worker": "ann", "capacity": 1, "wait": 0}]
