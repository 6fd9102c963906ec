"""`fires`, and large fires in `runs` and `jobs`: one line for many events, which opens."""

from __future__ import annotations

import json

from sluice import Client as Library
from sluice.client import Client
from tests.cli.conftest import Sluice
from tests.cli.played_api import PlayedApi
from tests.cli.recorded import FIRE, fire, fire_event, fire_run, job, run

RUNS = "/v1/namespaces/demo/runs"
ONE, EVENTS = f"/v1/fires/{FIRE}", f"/v1/fires/{FIRE}/events"


def test_e2_a_fire_is_shown_with_the_events_that_failed(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", ONE, fire())
    api.lists[EVENTS] = [fire_event(number) for number in (3, 1_200, 1_999)]
    done = sluice("fires", FIRE)
    assert (done.exit_code, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    assert f"fire {FIRE} FAILED" in text
    assert "events 2,000 sent 1,997 failed 3 sends 2026-11-20 12:00:00.020 UTC to 2026-11-20 12:00:01.500 UTC" in text
    assert "late: p50 500 ms, max 1.5 s" in text
    assert f"1200 {FIRE}-1200 FAILED" in text and "the queue does not exist" in text
    [asked] = api.sent("GET", EVENTS)
    assert asked.query["state"] == "FAILED"


def test_e2_a_fire_without_failures_shows_its_first_events(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", ONE, fire(state="SENT", sent=2_000, failed=0))
    api.lists[EVENTS] = [fire_event(number, "SENT") for number in range(30)]
    done = sluice("fires", FIRE, "-l", "5")
    assert "failed" not in done.stdout
    assert len([line for line in done.stdout.splitlines() if f"{FIRE}-" in line]) == 5
    assert f"5 shown; sluice fires {FIRE} ... --limit 0 shows all" in done.stderr
    assert "state" not in api.sent("GET", EVENTS)[0].query


def test_e2_a_state_of_events_is_checked_before_any_request(api: PlayedApi, sluice: Sluice) -> None:
    done = sluice("fires", FIRE, "--state", "faild")
    assert done.exit_code == 2
    assert "did you mean FAILED?" in done.stderr
    assert api.requests == []


def test_e2_a_program_gets_the_fire_and_its_events(api: PlayedApi, sluice: Sluice) -> None:
    api.play("GET", ONE, fire())
    api.lists[EVENTS] = [fire_event(number) for number in range(3)]
    answer = json.loads(sluice("fires", FIRE, "--json").stdout)
    assert (answer["sent"], len(answer["items"]), answer["next_cursor"]) == (1_997, 3, None)


def test_e2_the_events_of_a_fire_are_one_line_of_runs(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[RUNS] = [fire_run(), run()]
    lines = sluice("runs", "list", "-n", "demo").stdout.splitlines()
    assert lines[1].split()[:4] == [FIRE, "SUCCEEDED", "x", "1,997"]
    assert lines[2].strip() == "late: p50 500 ms, max 1.5 s"


def test_e2_the_run_of_many_events_says_so(api: PlayedApi, sluice: Sluice) -> None:
    shown = fire_run()
    api.play("GET", f"/v1/runs/{shown['run_id']}", shown)
    text = " ".join(sluice("runs", "show", shown["run_id"]).stdout.split())
    assert f"fire {FIRE} event 1,997 of 2,000, from 0 on" in text
    one = run(f"{FIRE}-7", fire=FIRE, spread={"index": 7, "count": 2_000}, count=1, sends=None)
    api.play("GET", f"/v1/runs/{FIRE}-7", one)
    assert "event 7 of 2,000" in " ".join(sluice("runs", "show", f"{FIRE}-7").stdout.split())


def test_e2_jobs_have_the_number_of_their_events(api: PlayedApi, sluice: Sluice) -> None:
    api.lists["/v1/namespaces/demo/jobs"] = [job(f"{FIRE}-0_6y") | {"count": 250}, job()]
    lines = sluice("jobs", "-n", "demo").stdout.splitlines()
    assert [line.count("x 250") for line in lines if "PENDING" in line] == [1, 0]


def test_runs_are_filtered_by_the_api(api: PlayedApi, sluice: Sluice) -> None:
    api.lists[RUNS] = [run()]
    args = ("--target", "SQS", "--text", "FILE IS EMPTY", "--late", "--tag", "team=a", "-a", "flights")
    assert run()["run_id"] in sluice("runs", "list", "-n", "demo", *args).stdout
    asked = {"target": "sqs", "q": "FILE IS EMPTY", "late": "true", "tag": "team=a", "app": "flights", "limit": "100"}
    assert [request.query for request in api.requests] == [asked]
    api.lists[RUNS] = []
    assert "no runs match" in sluice("runs", "list", "-n", "demo", "--target", "http").stderr
    wrong = sluice("runs", "list", "-n", "demo", "--target", "queue")
    assert (wrong.exit_code, "expected one of emr_serverless" in wrong.stderr) == (2, True)


def test_runs_are_filtered_by_workflow(api: PlayedApi, sluice: Sluice) -> None:
    path = "/v1/namespaces/demo/apps/flights/workflows/clean_flights/runs"
    api.lists[path] = [run()]
    done = sluice("runs", "list", "--workflow", "demo.flights.clean_flights")
    assert run()["run_id"] in done.stdout
    api.lists["/v1/namespaces/demo/apps/flights/schedules/b/runs"] = [run()]
    sluice("runs", "list", "--workflow", "demo.flights.a", "-s", "demo.flights.b")
    assert api.requests[-1].query == {"workflow": "demo.flights.a", "limit": "100"}, "of those of the schedule"


def test_the_client_reads_a_fire(api: PlayedApi) -> None:
    api.play("GET", ONE, fire())
    api.lists[EVENTS] = [fire_event(number) for number in range(3)]
    client = Client(api.url)
    assert client.fire(FIRE)["sent"] == 1_997
    assert [event["index"] for event in client.fire_events(FIRE, most=2)] == [0, 1]


def test_e2_work_of_the_library_says_how_many_events_it_is(api: PlayedApi) -> None:
    api.lists[RUNS] = [fire_run(), run()]
    known = [(work.count, work.fire) for work in Library(api.url).runs("demo")]
    assert known == [(1_997, FIRE), (1, None)]
