"""Sub-batches: their size, their instant, their rows, and the time that an invocation has for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from chalicelib import handlers
from chalicelib.aws.hints import encode
from chalicelib.core.instants import SECOND, Millis
from chalicelib.core.rows import kinds
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.kinds import Key
from chalicelib.core.targets import sub_batches
from chalicelib.core.targets.answers import Never
from chalicelib.core.writes import Write
from chalicelib.flow.deliveries import send
from chalicelib.flow.deliveries.leases import Elsewhere
from chalicelib.flow.deliveries.prepare import prepare
from chalicelib.flow.schedules import actions
from chalicelib.flow.system import sweep
from chalicelib.flow.system.dispatch import dispatch_together
from chalicelib.ports import Ports
from tests.support.deliveries_crossed import (
    EACH,
    TARGETS,
    Act,
    Interfering,
    deploy,
    due,
    fires,
    ids,
    many,
    once,
    spread,
)
from tests.support.ledgers import LedgerBetween
from tests.support.world import World, flights


@pytest.mark.parametrize("kind", TARGETS)
def test_a_call_has_what_the_target_takes_at_a_time(kind: str) -> None:
    world = World()
    deploy(world, {"daily": spread(40)}, kind)
    refs, instant = fires(world), due(world)
    target = Interfering(world)
    dispatch_together(world.ports, refs, instant)
    assert max(target.sizes) == TARGETS[kind][1]
    assert sum(target.sizes) == 40


def test_t4_each_sub_batch_is_measured_at_its_own_sending() -> None:
    world = World()
    deploy(world, {"daily": spread(30)}, delivery=EACH)
    refs, instant = fires(world), due(world)
    Interfering(world, takes="3s")
    dispatch_together(world.ports, refs, instant)
    lateness = sorted(run.lateness or 0 for run in world.runs("daily"))
    assert lateness == [0] * 10 + [3 * SECOND] * 10 + [6 * SECOND] * 10
    assert {run.claimed_at for run in world.runs("daily")} == {instant, instant + 3 * SECOND, instant + 6 * SECOND}


def test_an_invocation_out_of_time_passes_on_its_unsent_work() -> None:
    """1,000 callbacks of two seconds, 16 at a time, take 126 s; an invocation has 120."""
    world = World()
    deploy(world, {"daily": spread(1_000)}, "http", delivery=EACH)
    for _ in range(2):
        world.tick()
    refs, instant = fires(world), due(world)
    assert len(refs) == 1_000
    target = Interfering(world, takes="2s")
    ports = replace(world.ports, ends_at=instant + 120 * SECOND)

    assert dispatch_together(ports, refs, instant) == []

    assert world.clock.now() <= instant + 110 * SECOND
    first = len(ids(world))
    assert first == len(set(ids(world))) == 16 * 51
    assert len(world.runs("daily")) == 500, "a page of the history; the books of what was sent are kept"
    left = world.hints.due(world.clock.now())
    assert len(left) == 1_000 - first
    at = world.clock.now()
    assert dispatch_together(replace(world.ports, ends_at=at + 120 * SECOND), left, at) == []
    assert len(ids(world)) == len(set(ids(world))) == 1_000
    assert target.sizes.count(16) == 62


def test_an_invocation_out_of_time_passes_single_jobs_on() -> None:
    """A job that was tried before is checked separately; each call may take as long as its target allows."""
    world = World()
    deploy(world, many(30), "lambda")
    refs, instant = fires(world), due(world)
    Interfering(world, takes="20s")
    ports = replace(world.ports, ends_at=instant + 45 * SECOND)
    probed = [ref for ref in refs if ref.kind == "job"]
    assert dispatch_together(ports, probed, instant) == []
    assert len(ids(world)) == 16
    assert len(world.hints.due(world.clock.now())) == 14


class _SlowAhead:
    """Wraps a read of rows together, so that it takes this long. The action runs when the rows of the first one have
    been found."""

    def __init__(self, world: World, takes: list[str], during: Act = lambda: None) -> None:
        self._world, self._inner, self._takes = world, world.ports.prefetch, takes
        self._during = once(during)
        self.sizes: list[int] = []
        self.full_reads = 0

    def read(self, ports: Ports, wanted: list[Key]) -> Ports:
        self.full_reads += 1
        return self._inner.read(ports, wanted)

    def stamps(self, wanted: list[Key]) -> Any:
        found = self._inner.stamps(wanted)
        self._during()
        self.sizes.append(sum(kinds.kind_of(key).row is Job for key in wanted))
        if self._takes:
            self._world.clock.pass_by(self._takes.pop(0))
        return found


class _SlowCounts:
    """Wraps the reads of jobs, so that each read of a count of closings takes this long. The action runs when the first
    one has been found."""

    def __init__(self, world: World, takes: list[str], during: Act) -> None:
        self._world, self._inner, self._takes, self._during = world, world.ports.jobs, takes, once(during)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def closings(self, namespaces: Any) -> Any:
        found = self._inner.closings(namespaces)
        self._during()
        if self._takes:
            self._world.clock.pass_by(self._takes.pop(0))
        return found


def _leased(count: int) -> tuple[World, send.Leased]:
    """A world at the instant of a fire of so many jobs, all of them leased."""
    world = World()
    deploy(world, {"daily": spread(count)}, delivery=EACH)
    refs, instant = fires(world), due(world)
    return world, send.lease(world.ports, _prepared(world, refs, instant), instant)


def _leased_ahead(count: int) -> tuple[World, send.Leased]:
    """The same, leased before the instant: the count of closings is read instead of the rows."""
    world = World()
    deploy(world, {"daily": spread(count)}, delivery=EACH)
    refs, instant = fires(world), due(world)
    world.pass_by("55s")
    prepared = prepare(world.ports, refs, instant)
    leased = send.lease(world.ports, prepared.ready, instant, prepared.counts)
    assert leased.counts
    world.clock.wait_until(instant)
    return world, leased


def test_c13_facts_read_too_long_ago_are_read_again() -> None:
    world, leased = _leased(5)
    slow = _SlowAhead(world, ["2001ms", "2001ms", "2000ms"])
    sent = send.send(replace(world.ports, prefetch=slow), leased)
    assert slow.sizes == [5, 5, 5]
    assert len(sent.ends) == len(ids(world)) == 5


@pytest.mark.parametrize(
    ("takes", "calls"),
    [
        ("100ms", [(100, 10), (100, 10), (100, 5)]),
        ("101ms", [(101, 10), (101, 10), (101, 5)]),
        ("1900ms", [(1900, 10), (1900, 10), (1900, 5)]),
        ("2000ms", [(2000, 10), (2000, 10), (2000, 5)]),
        ("2001ms", [(2021, 10), (2021, 10), (2021, 5)]),
        ("2100ms", [(2120, 10), (2120, 10), (2120, 5)]),
    ],
)
def test_c13_a_slow_read_covers_one_call_made_at_once(takes: str, calls: list[tuple[Millis, int]]) -> None:
    """After a read of at most two seconds. After a longer one nothing is sent, and the next read begins 20 ms later."""
    world, leased = _leased(25)
    begin, made = world.clock.now(), []
    target = Interfering(world, before=lambda: made.append(world.clock.now() - begin))
    slow = _SlowAhead(world, [takes])
    send.send(replace(world.ports, prefetch=slow), leased)
    assert list(zip(made, target.sizes, strict=True)) == calls
    assert slow.sizes == {"100ms": [25], "2001ms": [25, 10, 15], "2100ms": [25, 10, 15]}.get(takes, [25, 10, 5])


def test_the_log_says_what_a_call_has_sent_and_how_late(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="sluice")
    world, leased = _leased(12)
    world.clock.pass_by("30ms")
    send.send(world.ports, leased)
    lines = [vars(line) for line in caplog.records if line.message == "sent"]
    assert [(line["size"], line["late_ms"]) for line in lines] == [(10, 30), (2, 30)]
    assert [run_id for line in lines for run_id in line["runs"]] == ids(world)


def test_e6_a_target_that_raises_leaves_each_outcome_open(caplog: pytest.LogCaptureFixture) -> None:
    world, leased = _leased(3)

    def breaks() -> None:
        raise ConnectionError("the connection broke")

    Interfering(world, before=breaks)
    sent = send.send(world.ports, leased)
    told = [why.text for why in sent.ends.values() if why is not None]
    assert told == ["try 1 of 3 failed, next try in 1s: the call failed: the connection broke"] * 3
    [line] = [vars(line) for line in caplog.records if line.levelname == "ERROR"]
    assert (line["message"], line["size"]) == ("target failed", 3)


@pytest.mark.parametrize("takes", ["101ms", "1900ms"])
def test_a_slow_read_covers_16_parallel_calls(takes: str) -> None:
    world = World()
    deploy(world, {"daily": spread(40)}, "http", delivery=EACH)
    refs, instant = fires(world), due(world)
    leased = send.lease(world.ports, _prepared(world, refs, instant), instant)
    target = Interfering(world)
    slow = _SlowAhead(world, [takes] * 3)
    send.send(replace(world.ports, prefetch=slow), leased)
    assert slow.sizes == target.sizes == [16, 16, 8]


@pytest.mark.parametrize("counted", [False, True], ids=["rows", "count"])
def test_c13_a_closing_during_a_slow_read_stops_the_next_call(counted: bool) -> None:
    """It is acknowledged when the rows, or the count, have been found. One call follows, and the next read sees it."""
    world, leased = _leased_ahead(120) if counted else _leased(120)
    takes, close = ["1900ms"] * 3, lambda: world.disable("daily")
    ports = replace(world.ports, jobs=_SlowCounts(world, takes, close)) if counted else world.ports
    reads = _SlowAhead(world, [] if counted else takes, (lambda: None) if counted else close)
    sent = send.send(replace(ports, prefetch=reads), leased)
    assert len(ids(world)) == 10
    assert len(sent.changed) == 110
    assert reads.sizes[:2] == ([10, 10] if counted else [50, 10])


def test_c13_a_closing_of_another_namespace_during_a_slow_read() -> None:
    """One count of closings of two has changed when the next read looks at them."""
    world = World()
    deploy(world, {"daily": spread(25)}, delivery=EACH)
    notify = {"notify": {"target": TARGETS["sqs"][0], "delivery": EACH}}
    world.deploy({"workflows": notify, "schedules": {"daily": spread(25)}}, namespace="second")
    refs, instant = fires(world), due(world)
    world.pass_by("55s")
    prepared = prepare(world.ports, refs, instant)
    leased = send.lease(world.ports, prepared.ready, instant, prepared.counts)
    assert leased.counts.keys() == {"demo", "second"}
    world.clock.wait_until(instant)
    first = [each.job.schedule for each in leased.ready][:10]
    counts = _SlowCounts(world, ["1900ms"], lambda: actions.disable(world.ports, "second.flights.daily", "tester"))
    send.send(replace(world.ports, jobs=counts), leased)
    sent = [run_id.partition(".")[0] for run_id in ids(world)]
    assert sent.count("demo") == 25
    assert sent.count("second") == sum(name.startswith("second.") for name in first)


@pytest.mark.parametrize(("left", "sent"), [(0, 10), (-1, 0)])
def test_the_call_after_a_slow_read_is_made_with_time_for_it(left: Millis, sent: int) -> None:
    """The read has used time of the invocation. The results of the call must still be recorded."""
    world, leased = _leased(10)
    needed = sub_batches.longest_call(TARGETS["sqs"][0]) + send.BOOKS_TIME
    ports = replace(world.ports, ends_at=world.clock.now() + 1_900 + needed + left)
    send.send(replace(ports, prefetch=_SlowAhead(world, ["1900ms"])), leased)
    assert len(ids(world)) == sent
    assert len(world.hints.due(world.clock.now())) == 10 - sent


@pytest.mark.parametrize("role", [False, True], ids=["list", "role"])
def test_o10_a_slow_read_makes_no_allow_list_older(role: bool) -> None:
    """It changes right after it was read. Almost five seconds later, a read of the rows takes two."""
    world = World(target_role_arns=("arn:aws:iam::123456789012:role/*",))
    deploy(world, {"daily": spread(5)})
    refs, instant = fires(world), due(world)
    world.clock.wait_until(instant - 3 * SECOND)
    ready = prepare(world.ports, refs, instant).ready
    leased = send.lease(world.ports, ready, instant)
    changed = {"target_role": "arn:aws:iam::123456789012:role/sluice-target-one"} if role else {"queues": []}
    world.allow("demo", **changed)
    world.clock.wait_until(instant + SECOND)
    send.send(replace(world.ports, prefetch=_SlowAhead(world, ["1900ms"])), leased)
    assert [call for call, _, _ in world.targets.sts.called_as] == ["start_many"] * 5 * role
    assert len(ids(world)) == 5 * role
    assert {run.state for run in world.runs("daily")} == {"SUCCEEDED" if role else "FAILED"}


def test_one_read_covers_fifty_messages() -> None:
    world = World()
    deploy(world, many(120))
    refs, instant = fires(world), due(world)
    leased = send.lease(world.ports, _prepared(world, refs, instant), instant)
    reads = _SlowAhead(world, [])
    send.send(replace(world.ports, prefetch=reads), leased)
    assert reads.sizes == [50, 50, 20]


def test_after_a_slow_read_the_next_ones_are_smaller() -> None:
    """They grow again with each quick one."""
    world, leased = _leased(150)
    slow = _SlowAhead(world, ["1ms", "101ms", "1ms", "1ms", "101ms"])
    sent = send.send(replace(world.ports, prefetch=slow), leased)
    assert slow.sizes == [50, 50, 10, 20, 30, 10, 20, 20]
    assert len(sent.ends) == len(ids(world)) == 150


def test_c13_permanently_slow_tables_postpone_a_delivery(caplog: pytest.LogCaptureFixture) -> None:
    world, leased = _leased(5)
    instant = world.clock.now()
    world.hints.sent.clear()
    sent = send.send(replace(world.ports, prefetch=_SlowAhead(world, ["2100ms"] * 100)), leased)
    assert (sent.ends, sent.changed, ids(world)) == ({}, (), [])
    assert 12 * SECOND <= world.clock.now() - instant <= 13 * SECOND
    assert world.hints.sent == [(world.clock.now() + SECOND, each.ref) for each in leased.ready]
    told = [(line.message, vars(line).get("hint"), vars(line).get("size")) for line in caplog.records[-2:]]
    assert told == [("tables slow", "no read of 5 jobs within 2000 ms", None), ("handed on", None, 5)]
    world.pass_by("2s")
    assert len(ids(world)) == 5


def test_a_call_after_slow_reads_begins_their_ten_seconds_anew() -> None:
    """Ten seconds of reads that are too slow are counted from the last call on."""
    world, leased = _leased(20)
    takes = (["2001ms"] * 4 + ["1900ms"]) * 2
    send.send(replace(world.ports, prefetch=_SlowAhead(world, takes)), leased)
    assert (len(ids(world)), takes) == (20, [])
    assert world.hints.sent == []


def test_a_read_covers_only_the_calls_that_begin_soon_enough() -> None:
    world = World()
    deploy(world, {"daily": spread(130)}, delivery=EACH)
    refs, instant = fires(world), due(world)
    leased = send.lease(world.ports, _prepared(world, refs, instant), instant)
    Interfering(world, takes="60ms")
    reads = _SlowAhead(world, [])
    assert len(send.send(replace(world.ports, prefetch=reads), leased).ends) == 130
    assert reads.sizes == [50, 20, 30, 20, 30, 20, 10]


def test_slow_tables_do_not_hand_a_batch_on_at_once() -> None:
    """Another invocation would prepare the jobs again, which makes tables slow that are slow from too much work."""
    world, leased = _leased(60)
    instant = world.clock.now()
    slow = _SlowAhead(world, ["1900ms"] * 30)
    sent = send.send(replace(world.ports, prefetch=slow), leased)
    assert len(sent.ends) == len(ids(world)) == 60
    assert slow.sizes == [50] + [10] * 5
    assert world.clock.now() == instant + 6 * 1_900
    assert world.hints.sent == []


@pytest.mark.parametrize(("count", "takes", "sizes"), [(5, ["2001ms"] * 3, [5] * 4), (25, ["101ms"] * 2, [25, 10, 5])])
def test_a_lease_by_the_sweep_costs_one_read_on_slow_tables(count: int, takes: list[str], sizes: list[int]) -> None:
    """The sweep's lease raises the revision of a job. The rows are read in full once, and then their stamps again. This
    sweep looked for leases on deliveries before there was one."""
    world, leased = _leased(count)
    world.clock.pass_by("10s")
    with patch.object(Elsewhere, "ends", return_value={}):
        sweep.sweep_all(world.ports)
    slow = _SlowAhead(world, list(takes))
    send.send(replace(world.ports, prefetch=slow), leased)
    assert (slow.sizes, slow.full_reads) == (sizes, 1)
    assert len(ids(world)) == count


class _Targets:
    """Wraps the targets, and keeps the instants at which an adapter was requested."""

    def __init__(self, world: World) -> None:
        self._world, self._inner = world, world.ports.targets
        self.asked_at: list[int] = []

    def of(self, kind: str, *role: Any) -> Any:
        self.asked_at.append(self._world.clock.now())
        return self._inner.of(kind, *role)


@pytest.mark.parametrize("count", [5, 60])
def test_the_client_of_a_target_is_made_before_the_instant(count: int) -> None:
    world = World()
    deploy(world, {"daily": spread(count)})
    refs, instant = fires(world), due(world)
    targets = _Targets(world)
    dispatch_together(replace(world.ports, targets=targets), refs, instant)
    assert min(targets.asked_at) < instant
    assert len(ids(world)) == count


class _Commits(LedgerBetween):
    """Keeps the number of writes of each commit."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.sizes: list[int] = []

    def before(self, writes: Sequence[Write]) -> None:
        self.sizes.append(len(writes))


@pytest.mark.parametrize(("takes", "sizes"), [("300ms", [100, 20]), ("1s", [20] * 6)])
def test_sends_below_a_second_are_recorded_together(takes: str, sizes: list[int]) -> None:
    """On a machine with too much work each send takes long; a record for each call would add to that work."""
    world = World()
    deploy(world, {"daily": spread(60)}, delivery=EACH)
    refs, instant = fires(world), due(world)
    leased = send.lease(world.ports, _prepared(world, refs, instant), instant)
    Interfering(world, takes=takes)
    commits = _Commits(world.ports.ledger)
    assert len(send.send(replace(world.ports, ledger=commits), leased).ends) == 60
    assert [size for size in commits.sizes if size > 1] == sizes


def test_a_window_that_ends_during_a_batch_is_respected() -> None:
    """An event that must not be late is dropped on record. Earlier sub-batches do not make it late."""
    world = World()
    timeout = {"after": "4s", "then": "abort"}
    deploy(world, {"daily": spread(25, timeout=timeout)}, delivery=EACH)
    refs, instant = fires(world), due(world)
    Interfering(world, takes="3s")
    dispatch_together(world.ports, refs, instant)
    assert len(ids(world)) == 20
    assert [record.kind for record in world.records("daily")] == ["ABORTED"] * 5


def test_each_target_address_has_its_own_ordered_batches() -> None:
    world = World()
    other = {"type": "sqs", "queue_url": "https://sqs.example/sluice-target-other"}
    schedules = many(24)
    for number in range(0, 24, 2):
        schedules[f"s{number:03d}"]["workflow"] = "other"
    world.deploy(flights(schedules, other={"target": other}))
    refs, instant = fires(world), due(world)
    target = Interfering(world)
    dispatch_together(world.ports, refs, instant)
    assert sorted(target.sizes) == [2, 2, 10, 10]
    names = [run_id.split(".")[2] for run_id in ids(world)]
    odd, even = ([name for name in names if int(name[1:]) % 2 == side] for side in (1, 0))
    assert (odd, even) == (sorted(odd), sorted(even))


def test_a_late_failure_is_recorded_at_instant_of_its_sub_batch() -> None:
    world = World()
    deploy(world, {"daily": spread(20)})
    refs, instant = fires(world), due(world)
    world.targets.queue.down = Never("no such queue")
    Interfering(world, takes="2s")
    dispatch_together(world.ports, refs, instant)
    letters = world.ports.runs.dead_letters("namespace", "demo", 100, None).items
    assert sorted({letter.first_try_at for letter in letters}) == [instant, instant + 2 * SECOND]


def test_the_runtime_gives_the_remaining_time_of_an_invocation(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    deploy(world, {"daily": spread(1)})
    monkeypatch.setattr(handlers, "ports", lambda: world.ports)

    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return 5_000

    refs = fires(world)
    world.clock.wait_until(due(world))
    record = {"messageId": "m", "body": encode(refs, world.clock.now())}
    assert handlers.hints({"Records": [record]}, Context()) == {"batchItemFailures": []}
    assert ids(world) == []
    assert list(world.hints.due(world.clock.now())) == refs, "another invocation has the time"
    assert handlers.hints({"Records": [record]}) == {"batchItemFailures": []}
    assert len(ids(world)) == 1


def _prepared(world: World, refs: list[Any], instant: int) -> Any:
    ready = prepare(world.ports, refs, instant).ready
    world.clock.wait_until(instant)
    return ready
