"""The model of AWS: it repeats itself, knows the limits of AWS, and fails if a promise does not hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import aws_model
from benchmarks.aws_model import __main__ as command
from benchmarks.aws_model import calibrate, checks, cpu, large, scenarios
from benchmarks.aws_model.assumptions import Assumptions
from benchmarks.aws_model.functions import Source
from benchmarks.aws_model.region import FUNCTIONS, SOURCES, Setup, opened
from benchmarks.aws_model.services import BURSTS, HINTS, OBJECTS, Message
from benchmarks.aws_model.throughput import Throughput
from benchmarks.machine import ROOT
from benchmarks.progress import Progress
from benchmarks.target_queue import Arrival
from chalicelib import handlers
from infra import yaml_tags

SURE = {"sigma": 0.0, "straggler_share": 0.0, "repeat_share": 0.0, "tick_twice_share": 0.0}


@pytest.fixture(scope="module")
def recorded() -> cpu.RecordedCpu:
    return cpu.load()


def with_changes(**changes: Any) -> Setup:
    return Setup(Assumptions().with_changes(changes))


# -- repeatable, and true to the product -------------------------------------------------------------------------------


def test_e9_two_runs_of_the_model_with_one_seed_are_equal(recorded: cpu.RecordedCpu) -> None:
    first = scenarios.burst(Setup(), recorded, 60)
    assert scenarios.burst(Setup(), cpu.load(), 60) == first
    other = scenarios.burst(Setup(seed=2), recorded, 60)
    assert other["lateness_ms"] != first["lateness_ms"]
    assert (other["missed"], other["doubled"]) == (0, 0)


def test_e9_the_model_has_the_functions_of_the_template() -> None:
    stage = json.loads((ROOT / ".chalice/config.json").read_text())["stages"]["sluice"]["lambda_functions"]
    stage["api"] = stage.pop("api_handler")
    parameters = yaml_tags.load((ROOT / "infra/resources/parameters.yaml").read_text())["Parameters"]
    memory = {"api": "ApiMemory", "tick": "TickMemory", "check": "CheckMemory", "burst": "BurstMemory"}
    for name, function in FUNCTIONS.items():
        assert function.memory == parameters[memory.get(name, "EventMemory")]["Default"]
        assert function.timeout_ms == 1000 * stage[name]["lambda_timeout"]
    resources = yaml_tags.load((ROOT / "infra/resources/functions.yaml").read_text())["Resources"]
    burst = resources["Burst"]["Properties"]["Events"]["BurstSqsEventSource"]["Properties"]
    concurrency = {HINTS: "CheckConcurrency", BURSTS: "BurstConcurrency", OBJECTS: "ObjectsConcurrency"}
    assert {name: source.most_pollers for name, source in SOURCES.items()} == {
        name: parameters[parameter]["Default"] for name, parameter in concurrency.items()
    }
    assert SOURCES[BURSTS].batch_size == burst["BatchSize"]["Fn::If"][2] == 1


def test_e9_a_spread_fire_and_a_steady_load_all_arrive_in_time(recorded: cpu.RecordedCpu) -> None:
    many = scenarios.burst_one_schedule(Setup(), recorded, 60)
    steady = scenarios.steady(Setup(), recorded, per_second=3, seconds=3)
    assert many["jobs"] == 60
    assert steady["jobs"] == 9
    assert steady["lateness_ms"]["p50"] < many["lateness_ms"]["max"] < 5_000


def test_e9_the_fires_of_all_timers_are_prepared_and_counted(recorded: cpu.RecordedCpu) -> None:
    found = large.emission(Setup(), recorded, 90, 3)
    assert (found["timers"], found["emitters"]) == (90, 3)
    assert found["per_second"] == pytest.approx(90 / found["seconds"], rel=0.02)


def test_o3_overdue_jobs_are_delivered_once_within_two_ticks(recorded: cpu.RecordedCpu) -> None:
    found = large.overdue(with_changes(**SURE), recorded, 60, 30)
    assert found["lost_messages"] > 0
    assert found["ticks"] <= 2
    assert 0 < found["longest_tick_s"] < 60


@pytest.mark.long
def test_o3_a_tick_with_many_timers_and_overdue_rows_has_time(recorded: cpu.RecordedCpu) -> None:
    found = large.overdue(Setup(), recorded, 10_000, 10_000)
    assert found["ticks"] <= 2
    assert found["longest_tick_s"] < 60
    assert found["died"] == 0


@pytest.mark.parametrize("cause", [large.RESUME, large.SUCCESS])
def test_l4_jobs_that_wait_are_woken_and_delivered_once(recorded: cpu.RecordedCpu, cause: int) -> None:
    found = large.waking(with_changes(**SURE), recorded, 30, cause)
    assert (found["jobs"], found["died"]) == (30, 0)
    assert found["seconds"] < 60


def test_l8_an_uploaded_app_is_worked_off_after_its_answer(recorded: cpu.RecordedCpu) -> None:
    found = large.upload(with_changes(**SURE), recorded, 30)
    assert 0 < found["answered_s"] < found["seconds"] < 60


@pytest.mark.long
def test_e9_a_large_burst_is_in_time_as_its_parts_know_its_size(recorded: cpu.RecordedCpu) -> None:
    """Without the size, messages came 5.5 s ahead, in which Lambda starts 32 pollers; the 40th was 3 s late."""
    found = scenarios.burst(with_changes(**SURE), recorded, 3_000)
    assert found["seconds"] < 1.5
    assert found["burst_at_once"] >= 12


def test_e9_an_object_starts_a_run_and_the_wait_for_s3_is_apart(recorded: cpu.RecordedCpu) -> None:
    found = scenarios.event(with_changes(**SURE, s3_notification_sigma=0.0), recorded, 3)
    between = found["put_to_start_ms"]["p50"] - found["notified_to_start_ms"]["p50"]
    assert between == pytest.approx(Assumptions().s3_notification_ms, abs=1)


def test_e9_a_policy_is_kept_and_its_pace_is_reported(recorded: cpu.RecordedCpu) -> None:
    found = scenarios.pace(Setup(), recorded, 2, 1, 6)
    assert found["allowed_per_second"] == 2
    assert 0.5 < found["reached_per_second"] <= 2


def test_e9_an_unfinished_put_is_repeated_until_all_is_stored(recorded: cpu.RecordedCpu) -> None:
    whole = scenarios.registration(Setup(), recorded, 200)
    assert whole["requests"] == 1
    hurried = replace(FUNCTIONS["api"], timeout_ms=500)
    broken_off = scenarios.registration(Setup(functions={**FUNCTIONS, "api": hurried}), recorded, 200)
    assert broken_off["requests"] > 1
    assert broken_off["schedules"] == 200
    assert broken_off["unchanged_seconds"] < broken_off["seconds"]


def test_e9_clients_put_schedules_beside_each_other(recorded: cpu.RecordedCpu) -> None:
    alone, together = (scenarios.puts(with_changes(**SURE), recorded, clients, 5) for clients in (1, 4))
    assert (alone["puts"], together["puts"]) == (5, 20)
    assert together["per_second"] > 3 * alone["per_second"]


def test_the_cpu_of_the_api_is_recorded_apart(tmp_path: Path) -> None:
    file = tmp_path / "cpu.json"
    file.write_text(json.dumps({"segments": {"api|a|b|1|1": 1.0, "tick|a|b|1|1": 2.0}}))
    recording = cpu.RecordingCpu()
    recording.begin()
    recording.end(cpu.Segment("api", "a", "c", 1, 1))
    cpu.save_api(recording, 1.0, {"recorded_at": "now"}, file)
    found = json.loads(file.read_text())
    assert (sorted(found["segments"]), found["api"]) == (["api|a|c|1|1", "tick|a|b|1|1"], {"recorded_at": "now"})


# -- Lambda ------------------------------------------------------------------------------------------------------------


def test_b14_more_memory_is_faster_also_after_an_idle_hour(recorded: cpu.RecordedCpu) -> None:
    small, large = (scenarios.lone(Setup().at_memory(memory), recorded, 4) for memory in (256, 1769))
    assert small["lateness_ms"]["p50"] > large["lateness_ms"]["p50"]
    # The ticks of the hour keep the Lambda warm that sends, so an idle hour costs nothing more.
    idle, idle_large = (scenarios.idle_fire(Setup().at_memory(memory), recorded, 2) for memory in (256, 1769))
    assert idle["lateness_ms"]["p50"] > idle_large["lateness_ms"]["p50"]


def test_an_invocation_is_stopped_at_its_timeout_and_is_billed(recorded: cpu.RecordedCpu) -> None:
    with opened(Setup(), recorded) as region:
        ended: list[bool] = []
        end = region.timeline.now + 40_000
        region.invoke("api", lambda: region.free.clock.wait_until(int(end)), ended.append)
        region.timeline.run(end)
        assert ended == [False]
        assert region.lambdas["api"].usage.died == 1
        assert region.lambdas["api"].usage.billed_ms > 29_000
        # Its environment is not used again.
        region.invoke("api", lambda: None, ended.append)
        region.timeline.run(end + 5_000)
        assert (ended, region.lambdas["api"].usage.cold) == ([False, True], 2)


def test_a_warm_environment_serves_the_next_invocation(recorded: cpu.RecordedCpu) -> None:
    with opened(Setup(), recorded) as region:
        used = region.lambdas["api"].usage
        for wait in (1_000, 60_000, 3_600_000):
            region.invoke("api", lambda: None)
            region.timeline.run(region.timeline.now + wait)
        region.invoke("api", lambda: None)
        region.timeline.run(region.timeline.now + 1_000)
        assert (used.invocations, used.cold) == (4, 2)


def test_concurrency_is_that_of_the_account_or_the_reserved_one(recorded: cpu.RecordedCpu) -> None:
    functions = {**FUNCTIONS, "check": replace(FUNCTIONS["check"], reserved=2)}
    setup = replace(with_changes(account_concurrency=5), functions=functions)
    with opened(setup, recorded) as region:
        till = int(region.timeline.now + 20_000)
        for name in ("api", "check"):
            for _ in range(4):
                region.invoke(name, lambda: region.free.clock.wait_until(till))
        region.timeline.run(region.timeline.now + 10_000)
        assert region.lambdas["api"].usage.most_at_once == 3
        assert region.lambdas["check"].usage.most_at_once == 2
        assert region.lambdas["check"].usage.throttled >= 2


# -- queues ------------------------------------------------------------------------------------------------------------


def test_a_message_comes_after_its_delay_in_whole_seconds(recorded: cpu.RecordedCpu) -> None:
    with opened(with_changes(**SURE), recorded) as region:
        came: list[tuple[float, Message]] = []
        region.sqs.comes["hints"] = lambda message: came.append((region.timeline.now, message))
        begin = region.timeline.now
        region.sqs.send_message_batch("hints", [{"Id": "0", "MessageBody": "x", "DelaySeconds": 3}])
        region.timeline.run(begin + 10_000)
        assert [(at - begin, message.body) for at, message in came] == [(3_000 + Assumptions().visible_ms, "x")]


def test_a_standard_queue_repeats_some_messages(recorded: cpu.RecordedCpu) -> None:
    with opened(with_changes(repeat_share=1.0), recorded) as region:
        came: list[Message] = []
        region.sqs.comes["hints"] = came.append
        region.sqs.send_message_batch("hints", [{"Id": "0", "MessageBody": "x", "DelaySeconds": 0}])
        region.timeline.run(region.timeline.now + 1_000)
        assert [message.body for message in came] == ["x", "x"]


def test_repeated_hints_repeat_no_delivery(recorded: cpu.RecordedCpu) -> None:
    assert scenarios.burst(with_changes(repeat_share=1.0), recorded, 30)["doubled"] == 0


def test_five_pollers_at_first_and_three_hundred_more_a_minute(recorded: cpu.RecordedCpu) -> None:
    sources = {**SOURCES, HINTS: Source(batch_size=1, most_pollers=12)}
    with opened(replace(with_changes(**SURE), sources=sources), recorded) as region:
        due = int(region.timeline.now + 30_000)
        body = json.dumps({"due": due - 29_000, "refs": []})
        region.check._handle = lambda ports, event, context: (
            region.free.clock.wait_until(due) or {"batchItemFailures": []}
        )
        for number in range(40):
            region.sqs.enqueue(HINTS, f"{body}{number}")
        used, begin = region.lambdas["check"].usage, region.timeline.now
        region.timeline.run(begin + 150)
        assert used.invocations == 5
        region.timeline.run(begin + 1_050)
        assert used.invocations == 5 + 5
        region.timeline.run(begin + 20_000)
        assert used.most_at_once == 12


def at_once(setup: Setup, recorded: cpu.RecordedCpu, after_ms: float) -> int:
    """How many of 200 messages in the queue of bursts invoke at once, so long after they came; none ends meanwhile."""
    with opened(setup, recorded) as region:
        due = int(region.timeline.now + 100_000)
        region.bursts._handle = lambda ports, event, context: (
            region.free.clock.wait_until(due) or {"batchItemFailures": []}
        )
        for number in range(200):
            region.sqs.enqueue(BURSTS, json.dumps({"due": due, "refs": [], "n": number}))
        region.timeline.run(region.timeline.now + after_ms)
        return region.lambdas["burst"].usage.invocations


def test_e9_pessimistic_pollers_never_become_more(recorded: cpu.RecordedCpu) -> None:
    promised = Setup(aws_model.assumed_as("pessimistic").with_changes(SURE))
    assert at_once(with_changes(**SURE), recorded, 20_000) == 100
    assert at_once(promised, recorded, 20_000) == 5


def test_e9_a_provisioned_poller_takes_ten_messages_at_once(recorded: cpu.RecordedCpu) -> None:
    sources = {**SOURCES, BURSTS: replace(SOURCES[BURSTS], provisioned=4)}
    promised = Setup(aws_model.assumed_as("pessimistic").with_changes(SURE), sources=sources)
    assert at_once(promised, recorded, 520) < 25, "four pollers receive forty times a second"
    assert at_once(promised, recorded, 20_000) == 40
    grown = at_once(replace(with_changes(**SURE), sources=sources), recorded, 4_000)
    assert 80 < grown <= 100, "a thousand more a minute, and BurstConcurrency at most"


def test_e9_a_pessimistic_first_call_is_cold(recorded: cpu.RecordedCpu) -> None:
    with opened(Setup(aws_model.assumed_as("pessimistic")), recorded) as region:
        for _ in range(3):
            region.invoke("api", lambda: None)
            region.timeline.run(region.timeline.now + 60_000)
        assert region.lambdas["api"].usage.cold == 3


def test_e9_pessimistic_keys_share_the_throughput_of_a_partition() -> None:
    keys = [f"wake#{number}" for number in range(40)]
    taken = {}
    for name in ("usual", "pessimistic"):
        throughput = Throughput(aws_model.assumed_as(name).with_changes({"burst_s": 0.1, "table_writes_per_s": 40_000}))
        for key in keys:
            throughput.take("T", key, "w", 150, 0.0)
        taken[name] = sum(throughput.admits([("T", key)], "w", 60.0) for key in keys)
    # 150 units are 50 more than a key may use at once. After 60 ms it has ten left, and a shared partition has none.
    assert taken["usual"] == len(keys)
    assert 0 < taken["pessimistic"] < len(keys)


@pytest.mark.long
def test_e9_pessimistic_bursts_arrive_later_and_once(recorded: cpu.RecordedCpu) -> None:
    promised = Setup(aws_model.assumed_as("pessimistic").with_changes(SURE))
    usual, late = (scenarios.burst(each, recorded, 2_500) for each in (with_changes(**SURE), promised))
    own = {**SOURCES, BURSTS: replace(SOURCES[BURSTS], provisioned=2)}
    provisioned = scenarios.burst(replace(promised, sources=own), recorded, 2_500)
    assert late["seconds"] > 2 * usual["seconds"]
    assert provisioned["seconds"] < late["seconds"] / 2
    assert late["missed"] == late["doubled"] == provisioned["missed"] == provisioned["doubled"] == 0


def test_a_failed_message_comes_again_when_its_function_says(recorded: cpu.RecordedCpu) -> None:
    with opened(with_changes(**SURE), recorded) as region:
        begin = region.timeline.now
        region.sqs.enqueue(HINTS, "no hint")
        region.timeline.run(begin + 4_000)
        assert region.lambdas["check"].usage.failed_messages == 1
        region.timeline.run(begin + 12_000)
        assert region.lambdas["check"].usage.failed_messages == 2


def test_two_invocations_may_look_for_one_queue_at_once(recorded: cpu.RecordedCpu) -> None:
    """No lock is held during a call: another invocation, in another thread, would wait for it without an end."""
    with opened(with_changes(**SURE), recorded) as region:
        for _ in range(12):
            region.sqs.enqueue(BURSTS, "no hint")
        region.timeline.run(region.timeline.now + 4_500)
        assert region.lambdas["burst"].usage.failed_messages == 12


def test_an_error_of_a_handler_brings_all_its_messages_again(
    recorded: cpu.RecordedCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(event: Any, context: Any) -> Any:
        raise KeyError("broken")

    monkeypatch.setattr(handlers, "hints", broken)
    with opened(with_changes(**SURE), recorded) as region:
        for _ in range(2):
            region.sqs.enqueue(HINTS, "x")
        region.timeline.run(region.timeline.now + 5_000)
        assert region.lambdas["check"].usage.failed_messages == 2
        assert region.raised == ["KeyError: 'broken'"]


# -- DynamoDB and EMR --------------------------------------------------------------------------------------------------


def test_a_hot_key_is_throttled_and_everything_arrives(recorded: cpu.RecordedCpu) -> None:
    tight = with_changes(key_writes_per_s=1.0)
    found = scenarios.burst_one_schedule(tight, recorded, 1_000)
    assert found["throttled"]["JobsTable key"] > 0
    assert found["missed"] == 0
    assert scenarios.burst_one_schedule(Setup(), recorded, 1_000)["throttled"] == {}


def test_a_new_table_is_throttled_until_it_is_warm(recorded: cpu.RecordedCpu) -> None:
    found = scenarios.burst(with_changes(table_writes_per_s=60.0), recorded, 60)
    assert any(name.endswith(" table") for name in found["throttled"])
    assert found["missed"] == 0


def test_a_warm_table_takes_more_and_a_key_of_it_does_not(recorded: cpu.RecordedCpu) -> None:
    slow = with_changes(table_writes_per_s=60.0)
    assert any(name.endswith(" table") for name in scenarios.burst(slow, recorded, 60)["throttled"])
    assert scenarios.burst(replace(slow, warm_writes=4_000.0), recorded, 60)["throttled"] == {}
    tight = replace(with_changes(key_writes_per_s=1.0), warm_writes=40_000.0)
    assert scenarios.burst_one_schedule(tight, recorded, 1_000)["throttled"]["JobsTable key"] > 0


def test_a_write_to_a_row_in_a_transaction_conflicts(recorded: cpu.RecordedCpu) -> None:
    with opened(with_changes(**SURE), recorded) as region:
        row = {"pk": {"S": "a"}, "sk": {"S": "b"}}
        errors: list[str] = []

        def transact() -> None:
            try:
                region.dynamo.transact_write_items(TransactItems=[{"Put": {"TableName": "JobsTable", "Item": row}}])
            except Exception as error:
                errors.append(str(error))

        for _ in range(2):
            region.invoke("api", transact)
        region.timeline.run(region.timeline.now + 10_000)
        assert region.dynamo.conflicts == 1
        assert len(errors) == 1


def test_emr_refuses_a_start_beyond_its_quota(recorded: cpu.RecordedCpu) -> None:
    with opened(with_changes(emr_start_burst=2.0, emr_starts_per_s=0.0), recorded) as region:
        started = [region.emr.start_job_run("app", f"t{number}", f"r{number}") for number in range(2)]
        assert len({one["jobRunId"] for one in started}) == 2
        with pytest.raises(Exception, match="Rate exceeded"):
            region.emr.start_job_run("app", "t3", "r3")
        assert region.emr.refused == 1


# -- the promises ------------------------------------------------------------------------------------------------------


def test_every_broken_promise_fails_a_run_of_the_model(recorded: cpu.RecordedCpu) -> None:
    with opened(Setup(), recorded) as region:
        arrivals = region.target.arrivals
        arrivals.append(Arrival("a", 1_000, 1_000))
        checks.check_arrivals(region, 1)
        with pytest.raises(checks.Broken, match="expected 2 events at the target, got 1"):
            checks.check_arrivals(region, 2)
        arrivals.append(Arrival("a", 1_000, 1_500))
        with pytest.raises(checks.Broken, match="expected no event twice where no invocation died, got 1"):
            checks.check_arrivals(region, 1)
        region.lambdas["check"].usage.died = 1  # it may have died between a send and its record
        checks.check_arrivals(region, 1)
        arrivals.append(Arrival("a", 1_000, 999))
        with pytest.raises(checks.Broken, match="expected no message before its instant"):
            checks.check_arrivals(region, 1)


def test_a_pace_that_is_exceeded_in_any_interval_is_found() -> None:
    starts = [0, 900, 1_000, 1_899]
    checks.check_pace(starts, 2, 900)
    with pytest.raises(checks.Broken, match="at most 2 starts in any 1000 ms, got 3"):
        checks.check_pace(starts, 2, 1_000)


# -- assumptions, CPU and calibration ----------------------------------------------------------------------------------


def test_an_unrecorded_segment_takes_the_time_of_the_nearest() -> None:
    found = cpu.RecordedCpu({"check|a|b|1|1": 1.0, "check|a|b|5|1": 5.0, "tick|a|b|1|1": 9.0, "tick|c|d|1|1": 7.0})
    assert found.end(cpu.Segment("check", "a", "b", 1, 1)) == 1.0
    assert found.end(cpu.Segment("check", "a", "b", 100, 1)) == 5.0
    assert found.end(cpu.Segment("check", "c", "d", 1, 1)) == 7.0
    assert found.end(cpu.Segment("check", "x", "y", 1, 1)) == cpu.UNKNOWN_MS


def test_a_recording_is_read_back_in_ms_of_the_quiet_machine(tmp_path: Path) -> None:
    recording, segment = cpu.RecordingCpu(), cpu.Segment("check", "a", "b", 3, 0)
    for _ in range(3):
        recording.begin()
        spent = recording.end(segment)
        assert spent >= 0
    cpu.save(recording, 0.0, {"unit": "ms"}, tmp_path / "cpu.json")
    assert cpu.load(tmp_path / "cpu.json").end(segment) == 0.0


def test_an_unknown_assumption_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="expected names of .*, got weather"):
        Assumptions().with_changes({"weather": 1})
    with pytest.raises(ValueError, match="got 'dynamodb:Scan'"):
        Assumptions().with_changes({"calls": {"dynamodb:Scan": {"ms": 1}}})
    slower = Assumptions().with_changes({"calls": {"dynamodb:GetItem": {"ms": 9}}})
    assert (slower.calls["dynamodb:GetItem"].ms, slower.calls["dynamodb:Query"].ms) == (9, 6)


def smoke(tmp_path: Path, checked: dict[str, Any], state: str = "ok") -> Path:
    """A file with the output of `make smoke`: some text, and its report in the last line."""
    file = tmp_path / "smoke.txt"
    file.write_text("health ...\n" + json.dumps({"smoke": state, "stack": "sluice-dev", "checks": checked}))
    return file


def test_e9_smoke_of_an_account_calibrates_the_model(recorded: cpu.RecordedCpu, tmp_path: Path) -> None:
    slow = scenarios.burst_one_schedule(with_changes(latency_factor=2.0), recorded, 40)
    measured = {
        "health": {"answer_ms": 71.0},
        "burst of 1,000": {"late_ms": slow["lateness_ms"]["p50"], "last_ms": slow["lateness_ms"]["max"]},
        "partition to Spark": {"start_ms": 4_000.0, "run_s": 60.0},
    }
    checked = calibrate.read(smoke(tmp_path, measured))
    fitted, changed = calibrate.calibrated(Assumptions(), checked, recorded, 1, 40)
    assert fitted.latency_factor == pytest.approx(2.0, rel=0.1)
    assert fitted.api_overhead_ms == 71.0
    assert 2_000 < fitted.s3_notification_ms < 4_000
    assert changed["burst_late_ms"]["modelled"] == pytest.approx(slow["lateness_ms"]["p50"], rel=0.05)


def test_a_report_that_is_not_of_a_passed_smoke_is_refused(recorded: cpu.RecordedCpu, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("no report")
    with pytest.raises(ValueError, match="expected the JSON that `make smoke` prints"):
        calibrate.read(tmp_path / "other")
    with pytest.raises(ValueError, match="expected a smoke that passed, got 'failed'"):
        calibrate.read(smoke(tmp_path, {}, "failed"))
    with pytest.raises(ValueError, match="expected a burst with late_ms"):
        calibrate.calibrated(Assumptions(), {"burst of 1,000": "expected 1,000 messages"}, recorded, 1)


def test_the_command_of_the_model_prints_a_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["burst", "20", "--seed", "3", "--assume", '{"sigma": 0.1}', "--memory", "1769"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["seed"], found["jobs"], found["missed"]) == ("predicted", 3, 20, 0)
    with pytest.raises(SystemExit):
        command.main(["burst", "20", "--assume", '{"weather": 1}'])


def test_all_scenarios_of_the_model_are_played_and_shown(recorded: cpu.RecordedCpu) -> None:
    played = aws_model.plays(Setup(), recorded, (10_000, 60_000))
    groups = {group for group, _, _ in played}
    assert groups == {
        *("burst", "steady", "emission", "overdue", "waking", "lone", "event", "policies", "registration", "upload"),
        *("puts", "memory"),
    }
    abouts = {about for group, about, _ in played if group == "burst"}
    assert {"10,000 schedules", "60,000, warm, 16 shards"} <= abouts
    entry = {"about": "10 schedules", "jobs": 10, "lateness_ms": {"p50": 1, "max": 1_200}}
    [table] = aws_model.tables({"aws_model": {"kind": "predicted", "burst": [entry]}})
    assert "predicted" in str(table.title)
    assert [next(iter(column.cells)) for column in table.columns] == ["10 schedules", "10", "p50 1, max 1,200"]


def test_some_groups_are_played_and_the_others_kept(recorded: cpu.RecordedCpu, monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"seed": 0, "burst": [1], "lone": [2], "gone": [3], "played": {"burst": {"cpu": "old"}, "lone": {}}}
    monkeypatch.setenv("SLUICE_MODEL_GROUPS", "burst")
    monkeypatch.setattr(aws_model, "plays", lambda *_: [("burst", "all", lambda: {"n": 1}), ("lone", "x", dict)])
    monkeypatch.setattr(aws_model.results, "read", lambda: {"aws_model": old})
    found = aws_model.measure(Progress("aws_model", list[str]().append))["aws_model"]
    assert (found["seed"], found["burst"], found["lone"]) == (1, [{"about": "all", "n": 1}], [2])
    assert "gone" not in found
    assert found["played"]["burst"]["cpu"] == cpu.recorded_at()
    assert found["played"]["lone"] == {}


def test_scenarios_played_alone_leave_the_others_of_their_group(monkeypatch: pytest.MonkeyPatch) -> None:
    stamp = {"burst": {"commit": "old"}}
    old = {"burst": [{"about": "small", "n": 1}, {"about": "large", "n": 2}], "played": stamp}
    monkeypatch.setenv("SLUICE_MODEL_ABOUT", "large")
    monkeypatch.setenv("SLUICE_MODEL_ASSUMED", "pessimistic")
    monkeypatch.setattr(
        aws_model, "plays", lambda *_: [("burst", about, lambda: {"n": 3}) for about in ("small", "large")]
    )
    monkeypatch.setattr(aws_model.results, "read", lambda: {"aws_model_pessimistic": old})
    found = aws_model.measure(Progress("aws_model", list[str]().append))
    assert found.keys() == {"aws_model_pessimistic"}
    assert found["aws_model_pessimistic"]["burst"] == [{"about": "small", "n": 1}, {"about": "large", "n": 3}]
    assert found["aws_model_pessimistic"]["played"] == stamp


def test_a_policy_that_is_refused_has_no_figures(recorded: cpu.RecordedCpu) -> None:
    assert scenarios.pace(Setup(), recorded, 10_000_000, 1, 10) == {}


# -- fairness ----------------------------------------------------------------------------------------------------------

LATE_BESIDE_MS = 2_000  # of a quiet namespace


def test_o9_a_quiet_namespace_is_in_time_beside_a_noisy_one(recorded: cpu.RecordedCpu) -> None:
    found = scenarios.beside(Setup(), recorded, 600, every_s=1)
    assert found["quiet_fires_during"] > 0
    assert found["quiet_during_ms"]["max"] < LATE_BESIDE_MS


@pytest.mark.long
def test_o9_a_noisy_namespace_delays_others_at_most_as_itself(recorded: cpu.RecordedCpu) -> None:
    """The queue of hints is shared: beyond what it takes at once, a quiet namespace waits for the noisy one.
    `docs/security.md` has the figures."""
    found = scenarios.beside(Setup(), recorded, 25_000)
    assert found["quiet_fires_during"] > 5
    assert found["quiet_during_ms"]["max"] <= 1000 * found["noisy_seconds"]
