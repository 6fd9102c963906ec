"""The periods of many schedules by day, beside all that makes, repeats and drops the work of a period (L23).

After each step the view says of each schedule what the list of its periods says. It does so without rows of ends, with
rows that have just been written, and with rows that are older than the step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chalicelib.core.backfills import period_ends as rules
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import DAY, HOUR, parse_instant
from chalicelib.core.rows.period_ends import PeriodEnds
from chalicelib.core.writes import Delete
from chalicelib.flow.history import period_ends
from chalicelib.flow.schedules import pauses
from chalicelib.flow.views import matrix, periods
from chalicelib.flow.views.schedule_list import Wanted
from tests.acceptance.words import all_of, concurrency, doze, on, partition
from tests.acceptance.words import time as at
from tests.support.backfills import begin, stop
from tests.support.crossings import at_each_call, cross
from tests.support.ledgers import Before
from tests.support.permissions import acting
from tests.support.snapshot import Start
from tests.support.world import World, flights, full

PARIS = "Europe/Paris"
SALES = {"each": "day", "format": "day=%Y-%m-%d", "zone": PARIS}
CLICKS = {"each": "6h", "format": "dt=%Y-%m-%d/hour=%H", "zone": PARIS}
MODELS = {"each": "week", "format": "week=%G-W%V", "zone": PARIS}
LAST = date(2026, 3, 20)
FIRST = LAST - timedelta(days=40)
Steps = Iterator[None]


def app(schedules: dict[str, Any]) -> dict[str, Any]:
    """An app with the days ``sales``, the quarters of days ``clicks`` and the weeks ``models``."""
    datasets = {
        name: {"bucket": "lake", "prefix": f"raw/{name}/", "keys": keys, "period": period}
        for name, keys, period in (
            ("sales", ["day"], SALES), ("clicks", ["dt", "hour"], CLICKS), ("models", ["week"], MODELS),
            ("areas", ["region", "day"], SALES),
        )
    }  # fmt: skip
    return flights(schedules) | {"datasets": datasets}


def of(dataset: str, **fields: Any) -> dict[str, Any]:
    """A schedule with one job for each day, of the partitions of a dataset."""
    return on({"type": "partition", "dataset": dataset, "of": "period"}, "clean", per="day", zone=PARIS, **fields)


def comes(world: World, *folders: str, ends: str | None = "SUCCESS") -> None:
    for folder in folders:
        world.upload(f"raw/{folder}/part-0", size=1)
    world.settle()
    if ends is not None:
        world.finish(ends)
        world.settle()


def clicks(day: str) -> list[str]:
    return [f"clicks/dt={day}/hour={hour}" for hour in ("00", "06", "12", "18")]


# -- what happens ------------------------------------------------------------------------------------------------------


def re_runs(world: World) -> Steps:
    world.deploy(app({"s": on(partition("sales"), "clean", concurrency(1), by=["day"])}))
    comes(world, "sales/day=2026-02-24", "sales/day=2026-02-25", ends="FAILED")
    yield
    comes(world, ends="FAILED")
    yield
    comes(world, "sales/day=2026-02-26", ends=None)
    begin(world, "s", partitions={}, only="failed", concurrency=1)
    yield
    world.settle()
    yield
    world.finish()
    world.settle()
    yield
    world.finish("FAILED")
    world.settle()


def backfills(world: World) -> Steps:
    world.deploy(app({"s": on(partition("sales"), "clean", concurrency(1), by=["day"])}))
    comes(world, *(f"sales/day=2026-02-{day}" for day in range(20, 26)), ends=None)
    world.disable("s")
    yield
    begun = begin(world, "s", partitions={}, concurrency=2)
    yield
    world.settle()
    world.finish()
    world.settle()
    yield
    stop(world, "s", begun, runs=True)
    world.settle()
    yield
    begin(world, "s", request="b2", partitions={}, only="missing")
    world.settle()


def late_again(world: World) -> Steps:
    world.deploy(app({"s": of("clicks", incomplete={"after": "1h"}, late="again")}))
    first, *others = clicks("2026-03-02")
    comes(world, *others)
    yield  # the period gathers
    doze(world, "12h")
    world.finish("FAILED")
    world.settle()
    yield  # incomplete
    comes(world, first, ends=None)
    yield
    world.finish()
    world.settle()


def fans_out(world: World) -> Steps:
    trigger = {"type": "partition", "dataset": "models", "of": {"periods": 1, "ending": "before"}}
    world.deploy(app({"s": on(trigger, "clean", per="day", zone=PARIS)}))
    comes(world, "models/week=2026-W09", ends="FAILED")
    yield
    comes(world, "models/week=2026-W10", ends=None)
    yield
    world.finish()
    world.settle()


def put_with_another_per(world: World) -> Steps:
    world.deploy(app({"s": of("clicks")}))
    comes(world, *clicks("2026-02-26"), *clicks("2026-02-27"))
    yield
    world.put("s", on({"type": "partition", "dataset": "clicks", "of": "period"}, "clean", per="week", zone=PARIS))
    yield
    comes(world, *(folder for day in range(9, 16) for folder in clicks(f"2026-03-{day:02}")), ends="FAILED")
    yield
    world.put("s", of("clicks"))


def deleted_and_made_again(world: World) -> Steps:
    made = on(partition("sales"), "clean", by=["day"])
    world.deploy(app({"s": made}))
    comes(world, "sales/day=2026-02-24", ends="FAILED")
    comes(world, "sales/day=2026-02-25", ends=None)
    yield
    world.delete("s")
    world.put("s", made)
    yield
    world.finish()
    world.settle()
    yield
    comes(world, "sales/day=2026-02-26", "sales/day=2026-02-24")


def fires(world: World) -> Steps:
    """Fires of three events, which fail; fires while the schedule is off; and one that is skipped."""
    world.deploy(flights({"s": on(at("0 3 * * *"), "clean", spread={"count": 3, "over": "1m"})}))
    doze(world, "15h3m")
    yield
    world.finish("FAILED")
    world.settle()
    yield
    begin(world, "s", from_="2026-02-27T00:00:00Z", to="2026-03-02T00:00:00Z", concurrency=1)
    world.settle()
    world.finish()
    world.settle()
    yield
    world.disable("s")
    doze(world, "1d")
    yield
    world.enable("s")
    pauses.skip(world.ports, full("s"), parse_instant("2026-03-05T03:00:00Z"), "tester")
    doze(world, "1d")


def regions(world: World) -> Steps:
    world.deploy(app({"s": on(partition("areas"), "clean", by=["region", "day"])}))
    comes(world, "areas/region=us/day=2026-02-24")
    comes(world, "areas/region=eu/day=2026-02-26", ends="FAILED")
    yield
    comes(world, "areas/region=us/day=2026-02-26", ends=None)


def two_namespaces(world: World) -> Steps:
    """``demo`` may use the days of ``shop``, where a schedule has the same short name."""
    world.deploy(app({"s": on(partition("sales"), "clean", by=["day"])}), namespace="shop")
    world.grant("shop", {"grants": [{"to": "demo", "datasets": ["sales"]}]})
    world.deploy(flights({"s": on(partition("shop.sales"), "clean", by=["day"])}))
    comes(world, "sales/day=2026-02-24")
    yield
    comes(world, "sales/day=2026-02-26", ends="FAILED")
    yield
    world.grant("shop", {"grants": []})


def joined(world: World) -> Steps:
    """A join whose other input does not come, and a stop."""
    world.deploy(app({"s": on(all_of(partition("sales"), partition("areas")), "clean", by=["day"])}))
    comes(world, "sales/day=2026-02-24")
    yield
    world.pause("s", "drain")
    yield
    world.resume("s")


HISTORIES: dict[str, Callable[[World], Steps]] = {
    each.__name__: each
    for each in (re_runs, backfills, late_again, fans_out, put_with_another_per, deleted_and_made_again, fires, regions,
                 two_namespaces, joined)
}  # fmt: skip


# -- what is shown -----------------------------------------------------------------------------------------------------


def shown(world: World, first: date = FIRST, last: date = LAST, zone: Any = UTC, limit: int = 100) -> dict[str, Any]:
    """The rows of the view, page by page."""
    found: dict[str, Any] = {}
    cursor: str | None = None
    while True:
        days = matrix.Days(first, last, zone)
        page = matrix.page(world.ports, "demo", Wanted(), days, limit, cursor)
        found |= {item["schedule"]: item for item in page.items}
        if page.cursor is None:
            return found
        cursor = page.cursor


def listed(world: World, name: str = "s") -> tuple[str, dict[str, dict[str, int]]]:
    """The letters of a schedule, and its days of several states, by the list of its periods."""
    counts: dict[str, Counter[str]] = {}
    since = parse_instant(f"{FIRST}T00:00:00Z") - DAY
    for each in periods.page(world.ports, full(name), since, world.clock.now(), 5_000, None)[0].items:
        zone = ZoneInfo(each["period"]["zone"] if each["period"] is not None else "UTC")
        day = datetime.fromtimestamp(parse_instant(each["at"]) / 1000, zone).date().isoformat()
        counts.setdefault(day, Counter())[each["state"]] += 1
    days = [(FIRST + timedelta(days=number)).isoformat() for number in range((LAST - FIRST).days + 1)]
    found = [counts.get(day, Counter()) for day in days]
    letters = (next((letter for state, letter in matrix.LETTERS.items() if state in of_day), ".") for of_day in found)
    return "".join(letters), {day: dict(count) for day, count in zip(days, found, strict=True) if len(count) > 1}


def agrees(world: World) -> str:
    row = shown(world)["demo.flights.s"]
    assert (row["days"], row["mixed"], row["why"]) == (*listed(world), None)
    days: str = row["days"]
    return days


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows count all that was claimed before now, and are always due."""
    monkeypatch.setattr(rules, "SETTLED", 0)
    monkeypatch.setattr(rules, "AGAIN", 0)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("kept", ["never", "at first", "always"])
@pytest.mark.parametrize("name", HISTORIES)
def test_l23_each_day_has_the_state_of_its_periods(world: World, name: str, kept: str) -> None:
    seen = set[str]()
    for number, _ in enumerate(chain(HISTORIES[name](world), [None])):
        seen |= set(agrees(world))
        world.clock.pass_by("1s")
        if kept == "always" or (kept == "at first" and number == 0):
            assert period_ends.keep(world.ports, [full("s")], {}) == 1
            agrees(world)
    assert seen & set("sfw"), "there was no work, so this shows nothing"


@pytest.mark.usefixtures("at_once")
def test_l23_the_runs_that_a_row_counts_are_not_read_again(world: World) -> None:
    world.deploy(app({"s": on(partition("sales"), "clean", by=["day"])}))
    comes(world, "sales/day=2026-02-24", "sales/day=2026-02-25")
    world.clock.pass_by("1s")
    period_ends.keep(world.ports, [full("s")], {})
    days = agrees(world)
    for run in world.runs("s"):
        world.ports.ledger.commit([Delete(run)])
    assert shown(world)["demo.flights.s"]["days"] == days, "it also outlives the runs in the table"
    world.ports.ledger.commit([Delete(PeriodEnds(full("s"), (), "", 0, 0))])
    assert set(shown(world)["demo.flights.s"]["days"]) == {"m", "."}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("most", [0, 1_000])
def test_l23_a_busy_namespace_shows_the_same(world: World, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """With more new runs than one list may have, each schedule lists its own."""
    world.deploy(app({name: on(partition("sales"), "clean", by=["day"]) for name in ("r", "s")}))
    comes(world, "sales/day=2026-02-24", ends=None)
    world.clock.pass_by("1s")
    period_ends.keep(world.ports, [full("s"), full("r")], {})
    monkeypatch.setattr(matrix, "MAX_NEW", most)
    comes(world, "sales/day=2026-02-25", ends="FAILED")
    rows = shown(world)
    assert rows["demo.flights.r"]["days"] == rows["demo.flights.s"]["days"] == agrees(world)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("few", [1, 100])
def test_l23_an_old_row_costs_no_list_of_each_day(world: World, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Of a schedule that has not run for months, the list of each day of the namespace since then is not read."""
    monkeypatch.setattr(matrix, "MAX_TOGETHER", few)
    world.deploy(app({"s": on(partition("sales"), "clean", by=["day"])}))
    comes(world, "sales/day=2026-02-24", ends=None)
    world.clock.pass_by("1s")
    period_ends.keep(world.ports, [full("s")], {})
    comes(world, "sales/day=2026-02-25")
    world.clock.pass_by("90d")
    claimed: list[Any] = []
    monkeypatch.setattr(type(world.ports.runs), "claimed", lambda *_: claimed.append(_) or ())
    assert agrees(world)[(date(2026, 2, 24) - FIRST).days :][:3] == "ssm"
    assert claimed == []


def test_l23_a_claim_while_it_is_read_hides_no_work() -> None:
    """A job becomes a run before any call of the view: the day is waiting or running, and never missing."""
    start, found = Start(_with_a_job), set[str]()

    def play(before: int | None) -> int:
        world, days = start.again(), list[str]()

        def claims() -> None:
            with acting("check"):
                world.settle()

        calls = cross(world, before, claims, lambda: days.append(shown(world)[full("s")]["days"]))
        found.add(days[0][(date(2026, 2, 24) - FIRST).days])
        return calls

    at_each_call(play, least=10)
    assert found == {"w", "r"}


def _with_a_job() -> World:
    world = World()
    world.deploy(app({"s": on(partition("sales"), "clean", by=["day"])}))
    world.upload("raw/sales/day=2026-02-24/part-0", size=1)
    return world


def test_l23_a_day_may_have_run_long_before_it_began(world: World) -> None:
    world.deploy(app({"s": on(partition("sales"), "clean", by=["day"])}))
    comes(world, "sales/day=2026-03-12")
    world.clock.pass_by("13d")
    day = date(2026, 3, 12)
    assert shown(world, day, day)[full("s")]["days"] == "s"
    period_ends.keep(world.ports, [full("s")], {})
    assert shown(world, day, day)[full("s")]["days"] == "s"


def test_l23_a_page_ends_when_it_has_read_enough(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("a", "b", "c", "d")
    world.deploy(app({name: on(partition("sales"), "clean", by=["day"]) for name in names}))
    comes(world, "sales/day=2026-02-24")
    whole = shown(world)
    assert list(whole) == [full(name) for name in names]
    assert shown(world, limit=3) == whole
    for bound in ("MAX_WORK", "MAX_EXPECTED"):
        with monkeypatch.context() as context:
            context.setattr(matrix, bound, 0)
            days = matrix.Days(FIRST, LAST, UTC)
            page = matrix.page(world.ports, "demo", Wanted(), days, 100, None)
            assert ([item["schedule"] for item in page.items], page.cursor) == ([full("a")], full("a"))
            assert shown(world) == whole


def test_l23_named_schedules_are_shown_alone(world: World) -> None:
    world.deploy(app({name: on(partition("sales"), "clean", by=["day"]) for name in ("a", "b", "c")}))
    days = matrix.Days(FIRST, LAST, UTC)
    first = matrix.page(world.ports, "demo", [full("c"), full("a"), full("c")], days, 1, None)
    rest = matrix.page(world.ports, "demo", [full("c"), full("a")], days, 1, first.cursor)
    assert [page.items[0]["schedule"] for page in (first, rest)] == [full("a"), full("c")]
    assert rest.cursor is None
    with pytest.raises(SluiceError, match="nothing named|does not exist|no schedule") as refused:
        matrix.page(world.ports, "demo", [full("none")], days, 9, None)
    assert refused.value.code == "not_found"


def test_l23_a_schedule_without_periods_says_why(world: World) -> None:
    world.deploy(flights({"s": on(partition(), "clean"), "busy": on(at("@every 10s"), "clean")}))
    rows = shown(world)
    assert rows[full("s")]["days"] == "." * 41
    assert "by that names the period of a dataset" in rows[full("s")]["why"].text
    assert "at most 10000 periods" in rows[full("busy")]["why"].text


def test_l23_a_fire_belongs_to_a_day_of_the_zone(world: World) -> None:
    world.deploy(flights({"s": on(at("30 23 * * *"), "clean")}))
    day = date(2026, 2, 28)
    assert shown(world, day, day)[full("s")]["days"] == "m"
    in_paris = shown(world, day, date(2026, 3, 2), ZoneInfo(PARIS))[full("s")]
    assert in_paris["days"] == "mmm", "those of 27 and 28 February, and of 1 March in UTC"


# -- who writes the rows -----------------------------------------------------------------------------------------------


def row_of(world: World, name: str = "s") -> PeriodEnds | None:
    return world.ports.rows.get(PeriodEnds, full(name))


def test_l23_a_row_is_written_a_week_after_the_last(world: World) -> None:
    world.deploy(app({"s": on(partition("sales"), "clean", by=["day"])}))
    comes(world, "sales/day=2026-02-24")
    looked: dict[str, int] = {}
    assert period_ends.keep(world.ports, [full("s")], looked) == 1
    first = row_of(world)
    assert first is not None
    assert first.complete_to == world.clock.now() - HOUR
    world.clock.pass_by("30m")
    calls = cross(world, None, lambda: None, lambda: period_ends.keep(world.ports, [full("s")], looked))
    assert calls == 0, "this process has just looked"
    world.clock.pass_by("6d")
    assert period_ends.keep(world.ports, [full("s")], looked) == 0
    world.clock.pass_by("1d")
    assert period_ends.keep(world.ports, [full("s"), full("s")], looked) == 1
    second = row_of(world)
    assert second is not None
    assert (second.rev, second.complete_to - first.complete_to) == (2, 7 * DAY + HOUR // 2)


def test_l23_a_row_that_another_has_written_stays(world: World) -> None:
    world.deploy(app({"s": on(partition("sales"), "clean", by=["day"])}))
    comes(world, "sales/day=2026-02-24")
    world.clock.pass_by("2h")

    def first() -> None:
        assert period_ends.keep(world.ports, [full("s")], {}) == 1

    world.ports = replace(world.ports, ledger=Before(world.ports.ledger, first))
    assert period_ends.keep(world.ports, [full("s")], {}) == 0
    row = row_of(world)
    assert row is not None
    assert row.rev == 1
    agrees(world)


def test_l23_other_schedules_have_no_row(world: World) -> None:
    """One without periods, one that is gone, one of a message, one of a DAG."""
    world.deploy(flights({"s": on(partition(), "clean"), "gone": on(at("0 2 * * *"), "clean")}))
    world.delete("gone")
    names = [full("s"), full("gone"), "demo.flights.~m", "demo.flights.d~a"]
    assert period_ends.keep(world.ports, names, {}) == 0


def test_l23_an_invocation_reads_a_bounded_number_of_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(period_ends, "MAX_READ", 1)
    world.deploy(app({name: on(partition("sales"), "clean", by=["day"]) for name in ("r", "s")}))
    comes(world, "sales/day=2026-02-24")
    world.clock.pass_by("2h")
    looked: dict[str, int] = {}
    assert [period_ends.keep(world.ports, [full("r"), full("s")], looked) for _ in range(3)] == [1, 1, 0]


def test_l23_older_runs_than_are_read_are_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.deploy(app({"s": on(partition("sales"), "clean", by=["day"])}))
    for day in ("24", "25", "26"):
        comes(world, f"sales/day=2026-02-{day}")
        world.clock.pass_by("1m")
    world.clock.pass_by("2h")
    for module in (period_ends, matrix):
        monkeypatch.setattr(module, "MAX_ATTEMPTS", 2)
    before = shown(world)[full("s")]
    assert period_ends.keep(world.ports, [full("s")], {}) == 1
    after = shown(world)[full("s")]
    assert before["days"] == after["days"]
    assert before["days"][(date(2026, 2, 24) - FIRST).days :][:4] == "mssm"
    assert before["complete_from"] == after["complete_from"] > "2026-03-02T12:00:00"
