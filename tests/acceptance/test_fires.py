"""Large fires as people see them: one line, and what became of each event (E2, E6)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chalicelib.core.backfills.request import Reprocess
from chalicelib.core.errors import SluiceError
from chalicelib.core.fires import bundles
from chalicelib.core.instants import HOUR, MINUTE, SECOND, iso
from chalicelib.core.rows.run import Fire, Run
from chalicelib.core.rows.schedule import ScheduleState
from chalicelib.core.runs import metrics
from chalicelib.core.targets.answers import Answer, Never, NotNow
from chalicelib.flow import lookup
from chalicelib.flow.backfills import reprocess
from chalicelib.flow.definitions import store
from chalicelib.flow.jobs.actions import withdraw
from chalicelib.flow.runs import actions, context, dead_letters
from chalicelib.flow.views import explain, fires, limits, lineage, lists, present, schedule_list, spans
from chalicelib.flow.views.fires import EventInFireView, StateOfFireView
from chalicelib.flow.views.queues import Queues
from chalicelib.flow.views.views import run_in_full, run_view
from tests.support.clock import NOON
from tests.support.schedules import at
from tests.support.world import SQS, World, flights

ONE = "0 13 * * *"
FIRST = NOON + HOUR
REFUSED = Never("the queue refuses it")


class Fired:
    """A world in which the schedule ``batch`` has begun a fire. ``answers`` are those of the queue to the first try of
    an event, by its number."""

    def __init__(
        self,
        count: int,
        over: str | None = None,
        answers: Mapping[int, Answer] | None = None,
        span: str = "5m",
        **delivery: Any,
    ) -> None:
        self.world = World(wake_shards=1, history_shards=1)
        spread = {"count": count} | ({"over": over} if over else {})
        notify = {"target": SQS, "delivery": delivery}
        self.world.deploy(flights({"batch": at(ONE, "notify", spread=spread)}, notify=notify))
        self._answer(dict(answers or {}))
        state = self.world.ports.rows.get(ScheduleState, "demo.flights.batch")
        assert state is not None
        self.id = bundles.fire_id(state.schedule, state.generation, FIRST)
        self.world.clock.wait_until(FIRST - MINUTE - 1)
        self.world.pass_by(span)

    def event(self, number: int) -> str:
        return bundles.event_id(self.id, number)

    @property
    def line(self) -> StateOfFireView:
        return fires.of_fire(self.world.ports, self.id)

    def events(self, state: str | None = None, limit: int = 500) -> list[EventInFireView]:
        """All events of the fire, page by page."""
        found: list[EventInFireView] = []
        cursor: str | None = None
        while True:
            page = fires.events_of(self.world.ports, self.id, state, limit, cursor)
            found += page.items
            cursor = page.cursor
            if cursor is None:
                return found

    def _answer(self, answers: dict[int, Answer]) -> None:
        queue = self.world.targets.queue
        send = queue.start

        def start(run: Run, document: Mapping[str, Any]) -> Answer:
            found = bundles.number_of(run.run_id)
            answer = answers.pop(found[1], None) if found is not None else None
            return send(run, document) if answer is None else answer

        queue.start = start  # type: ignore[method-assign]


def counts(line: StateOfFireView) -> dict[str, int]:
    known: Any = line
    names = ("sent", "failed", "waiting", "retrying", "dropped", "unknown")
    return {name: known[name] for name in names if known[name]}


def test_e2_a_fire_says_what_became_of_its_events() -> None:
    fired = Fired(2_000)
    line = fired.line
    assert (line["schedule"], line["workflow"]) == ("demo.flights.batch", "demo.flights.notify")
    assert (line["nominal_at"], line["events"], line["state"]) == (iso(FIRST), 2_000, "SENT")
    assert counts(line) == {"sent": 2_000}
    assert line["sends"] == {"first": iso(FIRST), "last": iso(FIRST), "late_p50": 0, "late_max": 0}
    assert not line["at_least"]


def test_e2_a_fire_waits_before_its_instant() -> None:
    fired = Fired(1_000, span="1s")
    line = fired.line
    assert (line["state"], counts(line), line["sends"]) == ("WAITING", {"waiting": 1_000}, None)
    [job, *_] = fired.world.jobs("batch")
    view = Queues(fired.world.ports).job(job)
    assert (view["count"], view["fire"], view["spread"]) == (250, fired.id, {"index": 0, "count": 1_000})


def test_e2_a_fire_under_way_counts_what_is_not_prepared() -> None:
    fired = Fired(6_000, over="10m", span="2m")
    line = fired.line
    assert (line["events"], line["state"], line["unknown"]) == (6_000, "SENDING", 0)
    assert line["sent"] + line["waiting"] == 6_000
    assert 595 <= line["sent"] <= 605
    last = fired.events()[-1]
    assert (last["index"], last["state"], last["code"]) == (5_999, "WAITING", "due_later")
    assert last["due_at"] == iso(FIRST + 10 * MINUTE - SECOND // 10)


def test_e2_events_are_listed_by_number() -> None:
    fired = Fired(600, over="1m")
    events = fired.events(limit=7)
    assert [event["index"] for event in events] == list(range(600))
    assert [event["id"] for event in events] == [fired.event(number) for number in range(600)]
    assert [event["due_at"] for event in events] == [iso(FIRST + number * 100) for number in range(600)]
    assert {event["state"] for event in events} == {"SENT"}


def test_e2_failures_in_the_middle_are_found() -> None:
    bad = dict.fromkeys((0, 333, 334, 999), REFUSED)
    fired = Fired(1_000, answers=bad)
    line = fired.line
    assert (line["state"], counts(line)) == ("FAILED", {"sent": 996, "failed": 4})
    failed = fired.events("FAILED")
    assert [event["index"] for event in failed] == [0, 333, 334, 999]
    assert {event["reason"].text for event in failed} == {
        lookup.find_run(fired.world.ports, fired.event(0))[-1].reason.text
    }
    assert len(fired.events("SENT")) == 996


@pytest.mark.parametrize("bounds", [{"MAX_OWN": 5}, {"MAX_BUNDLES": 1, "AT_ONCE": 1}], ids=str)
def test_e2_lists_of_events_go_on_where_a_request_ends(
    monkeypatch: pytest.MonkeyPatch, bounds: dict[str, int]
) -> None:  # fmt: skip
    bad = (*range(240, 260), 700)
    fired = Fired(1_000, answers=dict.fromkeys(bad, REFUSED))
    for name, most in bounds.items():
        monkeypatch.setattr(fires, name, most)
    page = fires.events_of(fired.world.ports, fired.id, None, 1_000, None)
    assert page.cursor is not None and len(page.items) < 1_000
    assert [event["index"] for event in fired.events("FAILED")] == list(bad)
    assert [event["index"] for event in fired.events(limit=7)] == list(range(1_000))


def test_e2_counts_of_a_fire_that_is_read_in_part_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fired = Fired(1_000, answers=dict.fromkeys((3, 400, 401), REFUSED))
    monkeypatch.setattr(fires, "MAX_BUNDLES", 2)
    line = fired.line
    assert (line["at_least"], counts(line)) == (True, {"sent": 497, "failed": 3, "unknown": 500})


def test_e2_an_event_that_is_tried_again_is_told_apart() -> None:
    fired = Fired(500, answers={7: NotNow("slow down")}, span="2m", delay="10m")
    line = fired.line
    assert (line["state"], counts(line)) == ("SENDING", {"sent": 499, "retrying": 1})
    [event] = fired.events("RETRYING")
    assert (event["index"], event["code"]) == (7, "try_failed")
    fired.world.pass_by("15m")
    line = fired.line
    assert (line["state"], counts(line)) == ("SENT", {"sent": 500})
    assert line["sends"] is not None
    assert line["sends"]["late_max"] < SECOND, "the lateness of an event is that of its first try"


def test_e2_events_on_their_own_are_read_together() -> None:
    fired = Fired(500, answers=dict.fromkeys(range(100), NotNow("slow down")), span="2m", delay="10m")
    calls: list[None] = []
    fired.world.tables.before_call = lambda: calls.append(None)
    assert counts(fired.line) == {"sent": 400, "retrying": 100}
    assert len(calls) < 12, "what a hundred events have is read a hundred rows per call"


def test_e2_a_cancelled_event_is_dropped_on_record() -> None:
    fired = Fired(500, span="1s")
    withdraw(fired.world.ports, fired.event(7), "ada")
    assert counts(fired.line) == {"waiting": 499, "dropped": 1}
    fired.world.pass_by("5m")
    assert (fired.line["state"], counts(fired.line)) == ("DROPPED", {"sent": 499, "dropped": 1})
    [event] = fired.events("DROPPED")
    assert (event["index"], event["code"]) == (7, "cancelled")


def test_e2_a_fire_whose_schedule_was_disabled_was_dropped() -> None:
    fired = Fired(500, span="1s")
    fired.world.disable("batch")
    fired.world.pass_by("5m")
    assert (fired.line["state"], counts(fired.line)) == ("DROPPED", {"dropped": 500})
    assert {event["code"] for event in fired.events()} == {"schedule_ended"}


@pytest.mark.parametrize("count", [400, 900])
def test_e2_a_fire_keeps_its_events_when_an_update_gives_others(count: int) -> None:
    fired = Fired(500, span="1s")
    fired.world.put("batch", at(ONE, "notify", spread={"count": count}, on_update="carry"))
    fired.world.pass_by("5m")
    assert (fired.line["events"], counts(fired.line), fired.line["unknown"]) == (500, {"sent": 500}, 0)


def test_e6_a_redriven_event_is_sent_in_the_end() -> None:
    fired = Fired(500, answers={7: REFUSED})
    assert dead_letters.redrive(fired.world.ports, "demo", fired.event(7)) == 2
    assert counts(fired.line) == {"sent": 499, "retrying": 1}
    fired.world.settle()
    assert counts(fired.line) == {"sent": 500}
    run = lookup.find_run(fired.world.ports, fired.event(7))[-1]
    assert (run.attempt, run.spread) == (2, (7, 500))
    assert context.build(fired.world.ports, run)["spread"] == {"index": 7, "count": 500}


def test_e2_the_context_of_an_event_has_its_number() -> None:
    fired = Fired(500, over="50s")
    contexts = dict(fired.world.targets.queue.messages)
    assert contexts[fired.event(7)]["spread"] == {"index": 7, "count": 500}
    few = Fired(3)
    assert [document["spread"] for _, document in few.world.targets.queue.messages] == [
        {"index": number, "count": 3} for number in range(3)
    ]


# -- the id of an event wherever that of a run is accepted ----------------------------------------------------------


def test_e2_an_event_has_the_view_of_a_run() -> None:
    fired = Fired(600, over="1m")
    view = run_in_full(fired.world.ports, lookup.find_run(fired.world.ports, fired.event(301)))
    assert (view["run_id"], view["state"], view["count"], view["fire"]) == (fired.event(301), "SUCCEEDED", 1, fired.id)
    assert view["spread"] == {"index": 301, "count": 600}
    assert (view["due_at"], view["sends"], view["lateness_ms"]) == (iso(FIRST + 30_100), None, None)
    [event] = view["events"]
    assert event["instant"] == FIRST


def test_e2_an_event_that_waits_has_the_view_of_a_job() -> None:
    fired = Fired(600, over="1m", span="1s")
    ports = fired.world.ports
    view = Queues(ports).job(lookup.find_job(ports, fired.event(33)))
    assert (view["job_id"], view["count"], view["fire"]) == (fired.event(33), 1, fired.id)
    assert (view["due_at"], view["spread"]) == (iso(FIRST + 3_300), {"index": 33, "count": None})


def test_e2_many_events_are_not_run_again_at_once() -> None:
    fired = Fired(500)
    ports = fired.world.ports
    [run, _] = fired.world.runs("batch")
    with pytest.raises(SluiceError, match="expected the run of one event, got one of 250") as caught:
        actions.rerun(ports, run.run_id, "r1")
    assert (caught.value.code, fired.id in str(caught.value.hint)) == ("conflict", True)
    assert explain.why_work(ports, run.run_id)["why"].text == "250 events of its fire were sent"


def test_e2_why_explains_an_event_in_each_state() -> None:
    fired = Fired(500, answers={7: REFUSED}, span="1s")
    ports = fired.world.ports
    assert explain.why_job(ports, lookup.find_job(ports, fired.event(3)))["job_id"] == fired.event(3)
    withdraw(ports, fired.event(8), "ada")
    fired.world.pass_by("5m")
    known = [(number, explain.why_work(ports, fired.event(number))) for number in (3, 7, 8)]
    assert [(number, view["kind"], view["state"]) for number, view in known] == [
        (3, "run", "SUCCEEDED"),
        (7, "run", "FAILED"),
        (8, "record", "DROPPED"),
    ]
    assert all(view["run_id"] == fired.event(number) for number, view in known)


def test_e2_the_id_of_a_fire_is_none_of_a_run() -> None:
    fired = Fired(500)
    with pytest.raises(SluiceError) as caught:
        explain.why_work(fired.world.ports, fired.id)
    assert f"it is a fire of many events: sluice fires {fired.id}" in str(caught.value.hint)


def test_e2_why_finds_the_record_of_a_dropped_bundle() -> None:
    fired = Fired(500, span="1s")
    fired.world.disable("batch")
    fired.world.pass_by("5m")
    view = explain.why_work(fired.world.ports, fired.event(123))
    assert (view["kind"], view["state"], view["code"]) == ("record", "DROPPED", "schedule_ended")
    with pytest.raises(SluiceError) as caught:
        lookup.find_job(fired.world.ports, fired.event(123))
    assert "it was dropped at" in str(caught.value.hint)


def test_w15_an_event_runs_again_with_its_number() -> None:
    fired = Fired(500)
    ports = fired.world.ports
    job_id = actions.rerun(ports, fired.event(7), "r1")
    fired.world.settle()
    run = lookup.find_run(ports, job_id)[-1]
    assert (run.state, run.rerun_of, run.spread) == ("SUCCEEDED", fired.event(7), (7, 500))
    sent = dict(fired.world.targets.queue.messages)[job_id]
    assert (sent["rerun_of"], sent["spread"]) == (fired.event(7), {"index": 7, "count": 500})


def test_l21_an_event_is_processed_again() -> None:
    fired = Fired(500)
    ports = fired.world.ports
    request = Reprocess.model_validate({"run": fired.event(69), "scope": "only"})
    assert [step.schedule for step in reprocess.preview(ports, "demo", request).steps] == ["demo.flights.batch"]
    reprocess.begin(ports, "demo", request, "tester", "r1")
    fired.world.pass_by("2m")
    again = [run for run in fired.world.runs("batch") if run.rerun_of == fired.event(69)]
    assert [(run.state, run.spread) for run in again] == [("SUCCEEDED", (69, 500))]


def test_e2_a_lineage_begins_with_an_event() -> None:
    fired = Fired(500)
    ports = fired.world.ports
    view = lineage.lineage(ports, fired.event(7), 2, 2)
    assert view["nodes"][0]["id"] == fired.event(7)
    job_id = actions.rerun(ports, fired.event(7), "r1")
    fired.world.settle()
    again = lineage.lineage(ports, job_id, 1, 0)
    assert {(edge["from"], edge["to"]) for edge in again["edges"]} >= {(fired.event(7), job_id)}


def test_e2_a_run_of_many_events_says_how_many() -> None:
    fired = Fired(1_000, answers={3: REFUSED})
    runs = [run_view(run) for run in fired.world.runs("batch")]
    assert sorted(run["count"] for run in runs) == [1, 249, 250, 250, 250]
    large = [run for run in runs if run["sends"] is not None]
    assert {run["fire"] for run in runs} == {fired.id}
    assert sorted(run["spread"]["index"] for run in large if run["spread"]) == [0, 250, 500, 750]
    assert all(run["lateness_ms"] == 0 for run in large)


def test_e2_names_of_sixty_characters_have_fires() -> None:
    name = "b" * 60
    world = World(wake_shards=1, history_shards=1)
    document = flights({name: at(ONE, "w" * 60, spread={"count": 300})})
    document["workflows"] = {"w" * 60: {"target": SQS}}
    world.deploy(document, "n" * 60, "a" * 60)
    world.clock.wait_until(FIRST - MINUTE - 1)
    world.pass_by("5m")
    [fire_id] = {bundles.fire_of(run_id) for run_id, _ in world.targets.queue.messages}
    assert fire_id is not None
    assert counts(fires.of_fire(world.ports, fire_id)) == {"sent": 300}
    assert world.ports.rows.get(Fire, fire_id) is not None


def test_e2_a_fire_of_few_events_has_no_line() -> None:
    fired = Fired(3)
    with pytest.raises(SluiceError, match="fire") as caught:
        fires.of_fire(fired.world.ports, fired.id)
    assert caught.value.code == "not_found"
    assert {run_view(run)["fire"] for run in fired.world.runs("batch")} == {None}


# -- counts of events ------------------------------------------------------------------------------------------------


def test_e2_counts_of_jobs_and_runs_are_counts_of_events() -> None:
    fired = Fired(1_000, answers={3: REFUSED}, span="1s")
    ports = fired.world.ports
    assert lists.count(ports, "demo", 5_000) == 1_000
    assert lists.count(ports, "demo", 600) == 600, "a count ends where the quota does"
    fired.world.pause("batch")
    fired.world.clock.wait_until(FIRST + MINUTE)
    now = present.now_of(ports, "demo")
    assert now["waiting"]["count"] == sum(group["count"] for group in now["waiting"]["groups"]) == 1_000
    [glance] = schedule_list.glance(ports, ["demo.flights.batch"])["items"]
    assert glance["waiting"] == 1_000
    assert "1000 jobs waiting" in glance["why"].text
    fired.world.resume("batch")
    fired.world.pass_by("5m")
    [glance] = schedule_list.glance(ports, ["demo.flights.batch"])["items"]
    assert sorted((run["state"], run["count"]) for run in glance["last"]) == [("FAILED", 1), ("SUCCEEDED", 999)]
    found = spans.outcomes(ports, "demo")
    assert (found["runs"], found["states"]) == (1_000, {"FAILED": 1, "SUCCEEDED": 999})
    day = date(2026, 3, 2)
    [of_day] = spans.days(ports, "demo.flights.batch", day, day, ZoneInfo("UTC"))["days"]
    assert of_day["counts"] == {"FAILED": 1, "SUCCEEDED": 999}
    since = spans.Within(FIRST, FIRST + HOUR, 100)
    assert sum(spans.timeline(ports, "demo", since)["count"]) == 1_000


def test_o2_metrics_count_each_event() -> None:
    fired = Fired(600, span="1s")
    fired.world.pause("batch")
    fired.world.pass_by("2m")
    assert sum(fired.world.metrics.of(metrics.WAITS_BEGUN, "paused")) == 600
    sent = Fired(600)
    assert sent.world.metrics.of(metrics.FIRE_LATENESS) == [0] * 600


def test_e3_a_queue_of_large_fires_counts_their_events() -> None:
    world = World(wake_shards=1, history_shards=1)
    spread = {"count": 600}
    paced = {name: at(ONE, "notify", spread=spread, policy="calm") for name in ("one", "other")}
    store.put(world.ports, "namespace", "demo", {}, "tester")
    store.put(world.ports, "policy", "demo.calm", {"max_events": 100, "interval": "1m"}, "tester")
    world.deploy(flights(paced))
    world.clock.wait_until(FIRST - MINUTE - 1)
    world.pass_by("61s")
    ports = world.ports
    jobs = [job for name in ("one", "other") for job in world.jobs(name)]
    left = sum(job.waiting for job in jobs)
    assert len(jobs) < 10 and left > 1_000
    [limit] = limits.named(ports, "demo", "policy:demo.calm")
    assert left <= limit["waiting"] <= 1_200
    assert present.now_of(ports, "demo")["waiting"]["count"] == limit["waiting"]
    places = [place for job in jobs if (place := Queues(ports).of(job)) is not None]
    assert {place["waiting"] for place in places} == {limit["waiting"]}
    assert sorted(place["position"] or 0 for place in places)[:3] == [1, 251, 501]
    why = explain.why_job(ports, jobs[0])
    assert (why["count"], [each["waiting"] for each in why["limits"]]) == (jobs[0].waiting, [limit["waiting"]])
