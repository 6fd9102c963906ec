"""One job for each listed value of a key: a partition without the key belongs to each of them (T27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from chalicelib.core.backfills.request import Reprocess
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.listed import MAX_VALUES
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR
from chalicelib.core.jobs.dry_run import dry_run
from chalicelib.core.rows.event import AppliedEvent
from chalicelib.core.triggers.partition import GivenPartition, partition_key
from chalicelib.core.writes import Create, Delete, DeleteJob, Write
from chalicelib.flow import lookup, period_jobs
from chalicelib.flow.backfills import reprocess
from chalicelib.flow.definitions import store
from chalicelib.flow.ingest import apply
from chalicelib.flow.runs.context import stored_events
from chalicelib.flow.schedules import actions
from chalicelib.flow.views import partitions, periods
from tests.acceptance.words import all_of, any_of, on, reasons, why_schedule
from tests.support.backfills import begin, preview
from tests.support.clock import NOON
from tests.support.crash import redelivered, wrap
from tests.support.ledgers import LedgerBetween
from tests.support.world import World, flights, full

PERIOD = {"each": "day", "format": "day=%Y-%m-%d"}
WEEK = {"each": "week", "format": "week=%G-W%V"}
REGIONS = ["us", "eu", "apac"]


def leaf(dataset: str, of: Any = None) -> dict[str, Any]:
    return {"type": "partition", "dataset": dataset} | ({"of": of} if of else {})


def app(schedule: dict[str, Any], **sales: Any) -> dict[str, Any]:
    """An app with ``models`` of no region, ``weeks``, the days of regions ``sales``, and the schedule ``s``."""
    datasets = {
        "models": {"bucket": "lake", "prefix": "raw/models/", "keys": ["version"]},
        "weeks": {"bucket": "lake", "prefix": "raw/weeks/", "keys": ["week"], "period": WEEK},
        "sales": {"bucket": "lake", "prefix": "raw/sales/", "keys": ["region", "day"], "period": PERIOD} | sales,
    }
    return flights({"s": schedule}) | {"datasets": datasets}


def each(trigger: dict[str, Any], regions: Sequence[str] = REGIONS, **fields: Any) -> dict[str, Any]:
    return on(trigger, "clean", **{"by": ["region"], "values": {"region": list(regions)}} | fields)


def daily(trigger: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return each(trigger, **{"per": "day"} | fields)


BOTH = all_of(leaf("weeks", "period"), leaf("sales", "period"))


def upload(world: World, *folders: str) -> None:
    for folder in folders:
        world.upload(f"raw/{folder}/part-0.parquet", size=5)
    world.settle()


def found(world: World) -> list[str]:
    """The values of the correlations of the runs, in their order."""
    return sorted("/".join((run.correlation or {}).values()) for run in world.runs("s"))


def test_t27_a_partition_of_no_value_starts_each_job(world: World) -> None:
    world.deploy(app(each(leaf("models"))))
    upload(world, "models/version=7", "models/version=7")
    assert found(world) == sorted(REGIONS)
    for run in world.runs("s"):
        context = world.context(run)
        [event] = context["events"]
        assert event["partition"] == {"version": "7"}
        assert context["correlation"] == run.correlation
    ids = {world.context(run)["events"][0]["id"] for run in world.runs("s")}
    assert len(ids) == 1 and reasons(world, "s") == []


def test_t27_each_partition_is_a_job_of_its_own_for_each_value(world: World) -> None:
    world.deploy(app(each(leaf("models"), coalesce=False)))
    world.pause("s")
    upload(world, "models/version=7", "models/version=8")
    world.resume("s")
    world.settle()
    assert found(world) == sorted(REGIONS * 2)


@pytest.mark.parametrize("per", ["day", None])
def test_t27_the_event_of_a_mark_is_applied_to_no_job_twice(world: World, per: str | None) -> None:
    """A repair applies again what is in a mark whose job is lost."""
    trigger = BOTH if per else all_of(leaf("models"), leaf("sales"))
    world.deploy(app(each(trigger, **({"per": per} if per else {}))))
    upload(world, "weeks/week=2026-W10" if per else "models/version=7")
    jobs = world.jobs("s")
    name = "demo.weeks" if per else "demo.models"
    rows = [row for row in world.ports.catalog.subscriptions(partition_key(name), 10, None).items if row.leaf == "0"]
    lost, *others = sorted(jobs, key=lambda job: job.sort_key)
    [event] = world.ports.jobs.events_of(lost.job_id, lost.schedule, lost.generation)
    mark = world.ports.rows.get(AppliedEvent, lost.schedule, lost.generation, event.id)
    assert mark is not None and others
    assert world.ports.ledger.commit([DeleteJob(lost), Delete(mark)]) is None
    apply.apply_event(world.ports, mark.event, rows, world.clock.now())
    assert {(job.job_id, job.leaves["0"].count) for job in world.jobs("s")} == {(job.job_id, 1) for job in jobs}


def test_t27_each_value_waits_for_its_own_parts(world: World) -> None:
    world.deploy(app(each(all_of(leaf("models"), leaf("sales")))))
    upload(world, "sales/region=eu/day=2026-03-02", "models/version=7")
    assert found(world) == ["eu"]
    assert sorted((job.correlation or {})["region"] for job in world.jobs("s")) == ["apac", "us"]
    assert "waits for 1 partition of demo.sales" in why_schedule(world, "s")["why"]
    upload(world, "sales/region=us/day=2026-03-02", "models/version=8", "sales/region=eu/day=2026-03-03")
    assert found(world) == ["eu", "eu", "us"]


def test_t27_a_week_starts_a_job_for_each_day_and_value(world: World) -> None:
    world.deploy(app(daily(BOTH)))
    upload(world, "weeks/week=2026-W10")
    assert (found(world), len(world.jobs("s"))) == ([], 21)
    upload(world, "sales/region=eu/day=2026-03-03", "sales/region=us/day=2026-03-09")
    assert found(world) == ["2026-03-03/eu"]
    [run] = world.runs("s")
    context = world.context(run)
    assert (run.correlation, context["period"]["label"]) == ({"day": "2026-03-03", "region": "eu"}, "2026-03-03")
    assert sorted(event["dataset"] for event in context["events"]) == ["demo.sales", "demo.weeks"]
    assert len(world.jobs("s")) == 21  # twenty of the week, and one of the next
    upload(world, "weeks/week=2026-W10")
    assert len(world.runs("s")) == 1


@pytest.mark.parametrize("of", [None, "period"])
def test_t27_a_value_that_is_not_listed_starts_nothing(world: World, of: str | None) -> None:
    world.deploy(app(each(leaf("sales", of), **({"per": "day"} if of else {}))))
    upload(world, "sales/region=mars/day=2026-03-02", "sales/region=eu/day=2026-03-02")
    assert [run.correlation["region"] for run in world.runs("s") if run.correlation] == ["eu"]
    assert "is for region=mars, which the values of the schedule do not list" in reasons(world, "s")[0]


def test_t27_values_of_two_keys(world: World) -> None:
    values = {"region": ["eu", "us"], "kind": ["new", "old"]}
    keys = {"keys": ["region", "day"]}
    world.deploy(app(each(any_of(leaf("models"), leaf("sales")), by=["region", "kind"], values=values), **keys))
    upload(world, "sales/region=eu/day=2026-03-02")
    assert found(world) == ["eu/new", "eu/old"]
    upload(world, "models/version=1")
    assert found(world) == ["eu/new", "eu/new", "eu/old", "eu/old", "us/new", "us/old"]


@pytest.mark.parametrize("after", [1, 3])
@pytest.mark.parametrize("trigger", ["weeks", "models"])
def test_t27_each_invocation_goes_on_with_the_values(world: World, trigger: str, after: int) -> None:
    """Each is killed after some jobs. The next one tries none of those again."""
    by_trigger = {
        "weeks": (daily(leaf("weeks", "period"), regions=["us", "eu"]), "week=2026-W10", 14),
        "models": (each(leaf("models")), "version=1", 3),
    }
    schedule, folder, count = by_trigger[trigger]
    world.deploy(app(schedule))
    points = wrap(world)
    points.armed, tries = True, list[str]()

    class Counted(LedgerBetween):
        def before(self, writes: Sequence[Write]) -> None:
            rows = [write.row for write in writes if isinstance(write, Create)]
            if any(isinstance(row, AppliedEvent) for row in rows):
                tries.append("applied")
                assert len(tries) <= count
                points.die_after = points.count + 1 if len(tries) % after == 0 else None

    world.ports = world.with_ports(ledger=Counted(world.ports.ledger))
    redelivered(lambda: world.upload(f"raw/{trigger}/{folder}/part-0.parquet", size=5))
    points.armed = False
    world.settle()
    assert (len(tries), len(world.runs("s"))) == (count, count)


def test_t27_a_dry_run_names_the_job_of_each_value(world: World) -> None:
    world.deploy(app(daily(BOTH)))
    schedule = lookup.existing(world.ports, full("s"))[1]
    datasets = period_jobs.datasets_of(world.ports, schedule)
    given = [
        GivenPartition(type="partition", dataset="weeks", partition={"week": "2026-W10"}),
        GivenPartition(type="partition", dataset="sales", partition={"region": "eu", "day": "2026-03-03"}),
        GivenPartition(type="partition", dataset="sales", partition={"region": "mars", "day": "2026-03-03"}),
    ]
    steps, left = dry_run(full("s"), schedule, given, NOON, datasets)
    assert ([step.fires for step in steps], len(left)) == ([False, True, False], 20)
    assert steps[2].why.text == "the schedule does not list region=mars in values"
    plain = each(leaf("models"))
    world.put("s", plain)
    given = [GivenPartition(type="partition", dataset="models", partition={"version": "1"})]
    steps, left = dry_run(full("s"), lookup.existing(world.ports, full("s"))[1], given, NOON)
    assert ([step.fires for step in steps], left) == ([True] * 3, [])


@pytest.mark.parametrize("trigger", ["weeks", "models"])
def test_t27_the_page_of_a_partition_names_each_value(world: World, trigger: str) -> None:
    by_trigger = {
        "weeks": (daily(BOTH, regions=["us", "eu"]), {"week": "2026-W10"}, 14),
        "models": (each(leaf("models")), {"version": "1"}, 3),
    }
    schedule, values, count = by_trigger[trigger]
    world.deploy(app(schedule))
    [(key, value)] = values.items()
    upload(world, f"{trigger}/{key}={value}")
    row = store.get(world.ports, "dataset", f"demo.{trigger}")
    dataset = Dataset.model_validate(row.document)
    page = partitions.one(world.ports, f"demo.{trigger}", dataset, values)
    assert len(page["waiting"]) + len(page["runs"]) == count
    assert {job["job_id"] for job in page["waiting"]} == {job.job_id for job in world.jobs("s")}


def test_t27_periods_list_each_listed_value(world: World) -> None:
    world.deploy(app(daily(BOTH)))
    upload(world, "weeks/week=2026-W10", "sales/region=eu/day=2026-03-02")
    page, _ = periods.page(world.ports, full("s"), NOON - 1, NOON + 86_400_000, 50, None)
    listed = {(each["values"] or {}).get("region") for each in page.items}
    assert listed == set(REGIONS)


def test_t27_a_run_now_of_one_value(world: World) -> None:
    world.deploy(app(daily(BOTH)))
    upload(world, "weeks/week=2026-W10", "sales/region=eu/day=2026-03-02")
    actions.run_now(world.ports, full("s"), {}, "r1", None, {"day": "2026-03-03", "region": "us"})
    world.settle()
    [run] = [run for run in world.runs("s") if run.correlation == {"day": "2026-03-03", "region": "us"}]
    assert [event["kind"] for event in world.context(run)["events"]] == ["run_now", "partition"]
    with pytest.raises(SluiceError) as refused:
        actions.run_now(world.ports, full("s"), {}, "r2", None, {"day": "2026-03-03", "region": "mars"})
    assert "a value of region that the schedule lists" in refused.value.message


def test_t27_a_re_processing_says_that_it_leaves_out_values(world: World) -> None:
    document = app(each(leaf("models")))
    document["schedules"]["copy"] = on(leaf("models"))
    world.deploy(document)
    upload(world, "models/version=1")
    asked = Reprocess.model_validate({"dataset": "models", "partition": {"version": "1"}})
    plan = reprocess.preview(world.ports, "demo", asked)
    assert [step.schedule for step in plan.steps] == [full("copy")]
    [left] = plan.not_followed
    assert (left.schedule, left.why.partition(":")[0]) == (full("s"), "has one run for each region")


@pytest.mark.parametrize("carry", [True, False])
def test_t27_an_update_of_the_list_while_jobs_gather(world: World, carry: bool) -> None:
    """The jobs of other values go on, unless the update restarts them; one that is added gets what comes afterwards."""
    world.deploy(app(daily(BOTH)))
    upload(world, "weeks/week=2026-W10")
    changed = daily(BOTH, values={"region": ["mars", *REGIONS]}) | ({"on_update": "carry" if carry else "drop"})
    world.put("s", changed)
    assert len(world.jobs("s")) == (21 if carry else 0)
    upload(world, "sales/region=eu/day=2026-03-03", "sales/region=mars/day=2026-03-04")
    assert found(world) == ["2026-03-03/eu", "2026-03-04/mars"]  # their week is registered


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (each(leaf("models"), by=[]), {}, "expected keys of by (there are none)"),
    (each(leaf("models"), values={"region": ["us", "us"]}), {}, "expected distinct values, got 'us'"),
    (each(leaf("models"), values={"region": []}), {}, "at least 1 item"),
    (each(leaf("models"), values={"region": ["us/eu"]}), {}, "a value of printable characters without '/'"),
    (each(leaf("models"), values={"region": ["S%C3%A3o"]}), {}, "expected a value as runs get it, got 'S%C3%A3o'"),
    (each(leaf("models"), [f"{n}" for n in range(1_001)]), {}, "expected at most 1,000 values, got '1,001'"),
    (each(all_of(leaf("models"), {"type": "event", "event": "x"})), {}, "values only where every leaf counts"),
    (each({"type": "quiet", "of": leaf("models"), "after": "1h"}), {}, "values only where every leaf counts"),
    (each(leaf("models"), by=["region"], values={}), {}, "or list its values: values: {region: [..]}"),
    (daily(BOTH, values={"region": [f"{n}" for n in range(150)]}), {},
     "for each partition of demo.weeks, got 'up to 1,050'"),
    (
        each(leaf("models"), by=["a", "b"], values={key: [f"{n}" for n in range(32)] for key in "ab"}), {},
        "at most 1,000 jobs for each partition of demo.models, got 'up to 1,024'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schedule", "sales", "why"), REFUSED, ids=[why[:40] for _, _, why in REFUSED])
def test_t27_lists_that_are_refused(world: World, schedule: dict[str, Any], sales: dict[str, Any], why: str) -> None:
    with pytest.raises((SluiceError, ValidationError)) as refused:
        world.deploy(app(schedule, **sales))
    assert why in f"{refused.value} {getattr(refused.value, 'hint', '')}"


def test_t27_more_jobs_than_known_when_the_keys_change(world: World) -> None:
    values = {key: [f"{n}" for n in range(32)] for key in "ab"}
    document = app(each(leaf("sales"), by=["a", "b"], values=values), keys=["a", "b", "day"])
    world.deploy(document)
    store.put(world.ports, "dataset", "demo.sales", document["datasets"]["sales"] | {"keys": ["day"]}, "tester")
    upload(world, "sales/day=2026-03-02")
    assert (found(world), world.jobs("s")) == ([], [])
    assert "belongs to more than 1,000 jobs" in reasons(world, "s")[0]


# -- many and strange values -------------------------------------------------------------------------------------------

STRANGE = {
    "a b": "a b",
    "S\u00e3o": "S%C3%A3o",
    "\u6771\u4eac": "\u6771\u4eac",
    "7": "7",
    "007": "007",
    "07:00": "07%3A00",
    "a%2Fb": "a%2Fb",
    "50%": "50%25",
    "x=y": "x=y",
    "-": "-",
    "__HIVE_DEFAULT_PARTITION__": "__HIVE_DEFAULT_PARTITION__",
}


@pytest.mark.parametrize("fans_out", [True, False])
def test_t27_strange_values(world: World, fans_out: bool) -> None:
    """By the value that runs get, and its folder. Two numbers with other zeros are two values."""
    lists = {"values": {"region": list(STRANGE)}}
    if fans_out:
        world.deploy(app(daily(BOTH, **lists)))
        upload(world, "weeks/week=2026-W10")
    else:
        world.deploy(app(on(leaf("sales", "period"), per="day"), **lists))
    for number, folder in enumerate(STRANGE.values()):
        assert len(world.runs("s")) == (number if fans_out else 0)
        upload(world, f"sales/region={folder}/day=2026-03-02")
    events = [event for run in world.runs("s") for event in world.context(run)["events"]]
    regions = [event["partition"]["region"] for event in events if event["dataset"] == "demo.sales"]
    assert sorted(regions) == sorted(STRANGE)
    assert len(world.runs("s")) == (len(STRANGE) if fans_out else 1)


def test_t27_a_thousand_listed_values(world: World) -> None:
    values = [f"r{number:03}" for number in range(MAX_VALUES)]
    world.deploy(app(each(all_of(leaf("models"), leaf("sales")), values)))
    upload(world, "models/version=1")
    generation = lookup.existing(world.ports, full("s"))[0].generation
    jobs = world.ports.jobs.jobs(full("s"), generation, 2_000, None).items
    assert sorted((job.correlation or {})["region"] for job in jobs) == values
    upload(world, "sales/region=r500/day=2026-03-02")
    assert found(world) == ["r500"]


def test_t25_a_thousand_listed_values_of_a_day(world: World) -> None:
    values = [f"r{number:03}" for number in range(MAX_VALUES)]
    world.deploy(app(on(leaf("sales", "period"), per="day"), values={"region": values}))
    upload(world, *(f"sales/region={value}/day=2026-03-02" for value in values[:-1]))
    why = why_schedule(world, "s")["why"]
    assert "waits for 1 of 1000 partitions of 2026-03-02 UTC in demo.sales: r999" in why
    upload(world, f"sales/region={values[-1]}/day=2026-03-02")
    events = stored_events(world.ports, world.runs("s")[0])
    assert events is not None and len(events) == MAX_VALUES


# -- what runs again ---------------------------------------------------------------------------------------------------

ONE_MORE = [f"sales/region={region}/day=2026-03-02" for region in ("us", "mars")]


@pytest.mark.parametrize("fields", [{}, {"per": "day"}], ids=["partitions", "periods"])
def test_t27_a_backfill_runs_no_value_that_is_not_listed(world: World, fields: dict[str, Any]) -> None:
    of = "period" if fields else None
    world.deploy(app(each(leaf("sales", of), **fields)))
    upload(world, *ONE_MORE)
    world.finish()
    world.settle()
    entries = preview(world, "s", partitions={})["entries"]
    assert {each["entry"]["region"] for each in entries if each["runs"]} == {"us"}
    named = {"values": [{"region": "mars", "day": "2026-03-02"}]}
    with pytest.raises(SluiceError, match="a value of region that the schedule lists, got 'mars'") as refused:
        begin(world, "s", partitions=named)
    assert (refused.value.field or "").startswith("partitions.values.0")


def test_t27_periods_of_listed_values_beside_others(world: World) -> None:
    """Only some keys are listed, so the registry says which combinations there are."""
    keys = {"keys": ["region", "shop", "day"]}
    schedule = daily(leaf("sales", "period"), by=["region", "shop"])
    world.deploy(app(schedule, **keys))
    upload(world, *(f"sales/region={region}/shop=1/day=2026-03-02" for region in ("us", "mars")))
    page, _ = periods.page(world.ports, full("s"), NOON - 36 * HOUR, NOON, 10, None)
    assert {(each["values"] or {})["region"] for each in page.items} == {"us"}


@pytest.mark.parametrize("fields", [{}, {"per": "day"}], ids=["partitions", "periods"])
def test_t27_no_run_again_of_a_value_that_is_not_listed(world: World, fields: dict[str, Any]) -> None:
    of = "period" if fields else None
    world.deploy(app(each(leaf("sales", of), **fields)))
    upload(world, *ONE_MORE)
    asked = {"dataset": "sales", "partition": {"region": "mars", "day": "2026-03-02"}}
    with pytest.raises(SluiceError) as refused:
        reprocess.preview(world.ports, "demo", Reprocess.model_validate(asked))
    assert refused.value.hint == "demo.flights.s does not list region=mars in values"
    both = {"dataset": "sales", "from": {"region": "mars"}, "to": {"region": "us"}}
    [step] = reprocess.preview(world.ports, "demo", Reprocess.model_validate(both)).steps
    assert len(step.entries) == 1 and "us" in step.entries[0]
