"""Exports and imports of whole worlds: what arrives, what is refused, and what a crash leaves (L14, O4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from chalicelib.aws.tables.items import FORMAT
from chalicelib.core.backfills.request import Reprocess
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.flow.backfills import reprocess
from chalicelib.flow.definitions import store
from sluice.operations.archive import export as exports
from sluice.operations.archive import load as loads
from sluice.operations.rules.manifest import MANIFEST, Manifest
from tests.faults import invariants
from tests.support import backfills
from tests.support.archives import SOURCE, MemoryArchive, copies_of, emptied, exported, imported
from tests.support.schedules import BY_DAY, after, at, at_most, partitions
from tests.support.world import EMR, World, day, flights

SMALL: dict[str, Any] = {"wake_shards": 1, "history_shards": 1}
ORDERS = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
EVERY = {"workflow": "join", "trigger": {"type": "time", "expression": "@every 10m"}, "enabled": True}


def busy() -> World:
    """A world with a run, a job in a queue, a job that gathers, a prepared fire, and a message."""
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(by=["day"], **at_most(1)), "two": partitions(count=2), "every": EVERY}))
    world.deploy({"workflows": {"clean": {"target": EMR}}}, namespace="other")
    for number in (1, 2):
        world.upload(day(number))
    world.settle()
    world.pass_by("9m")
    return world


def rows(world: World) -> dict[tuple[str, str, str], Any]:
    """The rows of a world, without the locks of prefixes, which no export has."""
    found = {(table, row["pk"]["S"], row["sk"]["S"]): row for table, row in world.tables.rows()}
    return {key: row for key, row in found.items() if not key[2].startswith("LOCK#")}


def elsewhere(archive: MemoryArchive, world: World, new: World | None = None, **how: Any) -> World:
    """Another world at the same instant, with what an archive has."""
    new = new or World(**SMALL)
    new.clock.wait_until(world.clock.now())
    new.targets, new.payloads = world.targets, world.payloads
    new.ports = new.with_ports(targets=world.targets, payloads=world.payloads)
    imported(new, archive, **how)
    return new


def test_l14_every_row_arrives_as_it_was() -> None:
    world = busy()
    before = rows(world)
    assert len(before) > 30
    archive = exported(world)
    emptied(world.tables)
    imported(world, archive)
    assert rows(world) == before


def test_l14_what_was_waiting_goes_on_in_another_installation() -> None:
    world = busy()
    new = elsewhere(exported(world, "demo"), world)
    assert new.ports.rows.get(Definition, "namespace", "other") is None
    new.pass_by("2m")  # the prepared fire of minute 10 is due
    new.finish()
    new.settle()
    new.finish()
    new.pass_by("2m")
    assert [run.state for run in new.runs("daily")] == ["SUCCEEDED", "SUCCEEDED"]
    assert [run.state for run in new.runs("two")] == ["SUCCEEDED"]
    assert len(new.runs("every")) == 1
    new.upload(day(1))
    new.settle()
    assert len(new.runs("daily")) == 2, "a known partition counts once, also after an import"
    invariants.check(new)


def test_l14_nothing_starts_before_the_last_door_is_open() -> None:
    """A tick and an event come after each write of an import: only what is imported completely reacts."""
    world = busy()
    archive = exported(world, "demo")
    new = World(**SMALL)
    new.clock.wait_until(world.clock.now() + 3_600_000)
    new.targets = world.targets
    new.ports = new.with_ports(targets=world.targets)
    started = len(world.targets.emr.calls)
    opened: list[bool] = []

    def meanwhile() -> None:
        if new.ports.rows.get(Definition, "namespace", "demo") is None:
            new.tables.after_write = lambda: None
            new.tick()
            opened.append(len(world.targets.emr.calls) > started)
            new.tables.after_write = meanwhile

    new.tables.after_write = meanwhile
    imported(new, archive)
    new.tables.after_write = lambda: None
    assert opened and not any(opened)
    new.tick()
    assert len(world.targets.emr.calls) > started


def test_l14_an_export_that_breaks_off_anywhere_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "MAX_PART", 2_000)
    world = busy()
    whole = exported(world, "demo")
    assert len([name for name in whole.files if name.endswith(".jsonl")]) == 3
    for number in range(1, 8):
        archive = Breaking(number)
        with pytest.raises(InterruptedError):
            exports.export(copies_of(world), archive, ["demo"], SOURCE, world.clock.now())
        archive.left = None
        exports.export(copies_of(world), archive, ["demo"], SOURCE, world.clock.now())
        assert archive.files == whole.files


class Breaking(MemoryArchive):
    """Files, and a disk that fails at the write of this number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.left: int | None = number

    def put(self, name: str, text: str) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                raise InterruptedError
        super().put(name, text)


def test_l14_an_import_that_breaks_off_anywhere_goes_on() -> None:
    world = busy()
    for number in range(1, 200):
        archive, new = exported(world, "demo"), World(**SMALL)
        new.clock.wait_until(world.clock.now())
        left = [number]

        def fails(left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise InterruptedError

        new.tables.after_write = fails
        try:
            imported(new, archive)
            break
        except InterruptedError:
            new.tables.after_write = lambda: None
            new.tick()
            imported(new, archive)
            new.pass_by("2m")
            assert len(new.runs("every")) == 1, f"after a failure at write {number}"
            assert len(new.runs("two")) == 1
    assert number > 10


def test_l14_rows_that_change_meanwhile_refuse_the_export() -> None:
    world = busy()
    copies = copies_of(world)
    reads = [0]
    page = copies.page

    def changing(table: Any, cursor: Any) -> Any:
        reads[0] += 1
        if reads[0] == 5:  # the second read has begun
            world.upload(day(3))
        return page(table, cursor)

    copies.page = changing  # type: ignore[method-assign]
    archive = MemoryArchive()
    with pytest.raises(SluiceError, match="changes while the export read") as refused:
        exports.export(copies, archive, ["demo"], SOURCE, world.clock.now())
    assert "freeze the installation" in str(refused.value.hint)
    assert "the files there now are incomplete" in str(refused.value.hint)
    assert MANIFEST not in archive.files
    exports.export(copies_of(world), archive, ["demo"], SOURCE, world.clock.now())
    assert MANIFEST in archive.files


def _newer_form(files: dict[str, str]) -> None:
    files[MANIFEST] = json.dumps({**json.loads(files[MANIFEST]), "version": 2})


def _newer_layout(files: dict[str, str]) -> None:
    files[MANIFEST] = json.dumps({**json.loads(files[MANIFEST]), "layout": FORMAT + 1})


def _truncated(files: dict[str, str]) -> None:
    files["jobs-000001.jsonl"] = files["jobs-000001.jsonl"][:-20]


def _changed(files: dict[str, str]) -> None:
    files["jobs-000001.jsonl"] = files["jobs-000001.jsonl"].replace("demo.flights", "demo.fligths", 1)


def _missing(files: dict[str, str]) -> None:
    del files["jobs-000001.jsonl"]


def _incomplete(files: dict[str, str]) -> None:
    del files[MANIFEST]


def _no_manifest(files: dict[str, str]) -> None:
    files[MANIFEST] = "[]"


@pytest.mark.parametrize(
    ("spoil", "message", "hint"),
    [
        (_newer_form, f"form 1 and layout {FORMAT} or lower, got form 2", "deploy the version"),
        (_newer_layout, f"layout {FORMAT} or lower, got form 1, layout {FORMAT + 1}", "deploy the version"),
        (_truncated, "the file is truncated", "export"),
        (_changed, "it was changed", "export"),
        (_missing, "expected jobs-000001.jsonl in the export, got none", "export"),
        (_incomplete, "the export is not complete", "run `sluice export` with the same --to"),
        (_no_manifest, "expected the manifest of an export", "export"),
    ],
)
def test_l14_an_export_that_is_not_whole_is_refused(
    spoil: Callable[[dict[str, str]], None], message: str, hint: str
) -> None:
    archive = exported(busy(), "demo")
    spoil(archive.files)
    new = World(**SMALL)
    with pytest.raises(SluiceError, match=message) as refused:
        imported(new, archive)
    assert hint in str(refused.value.hint)
    assert rows(new) == {}


@pytest.mark.parametrize(("namespaces", "got"), [(("demo",), "with demo"), ((), "with demo")])
def test_l14_names_that_exist_already_are_refused(namespaces: tuple[str, ...], got: str) -> None:
    archive = exported(busy(), *namespaces)
    new = World(**SMALL)
    new.deploy(flights({}))
    before = rows(new)
    with pytest.raises(SluiceError, match=got) as refused:
        imported(new, archive)
    assert "delete them there" in str(refused.value.hint)
    assert rows(new) == before


def test_l14_what_the_source_still_runs_is_refused() -> None:
    archive = exported(busy(), "demo")
    with pytest.raises(SluiceError, match="still runs them") as refused:
        imported(World(**SMALL), archive, copy=False)
    assert "--move" in str(refused.value.hint)


def test_l14_unknown_namespaces_and_used_folders_are_refused() -> None:
    world = busy()
    with pytest.raises(SluiceError, match="expected a namespace, got none") as refused:
        exported(world, "none")
    assert "demo, other" in str(refused.value.hint)
    archive = exported(world, "demo")
    with pytest.raises(SluiceError, match="got one with the export of demo of 2026"):
        exports.export(copies_of(world), archive, ["other"], SOURCE, world.clock.now())


def test_l14_datasets_get_the_buckets_of_the_new_installation() -> None:
    world = busy()
    new = elsewhere(exported(world, "demo"), world, buckets={"lake-bucket": "new-lake"})
    row = new.ports.rows.get(PrefixRow, "new-lake", "raw/flights/")
    assert row is not None and row.dataset == "demo.flights"
    assert new.ports.rows.get(PrefixRow, "lake-bucket", "raw/flights/") is None
    new.upload(day(5), bucket="new-lake")
    new.settle()
    assert len(new.runs("two")) == 1


def test_l14_plans_of_backfills_and_of_waiting_steps_arrive() -> None:
    """A step that waits has a plan, and no backfill yet."""
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(by=BY_DAY), "next": after("clean", "join", by=BY_DAY), "every": EVERY}))
    world.upload(day(1))
    for _ in range(3):
        world.settle()
        world.finish()
    asked = Reprocess.model_validate({"dataset": "flights", "from": {"year": 2013}})
    made = reprocess.begin(world.ports, "demo", asked, "tester", "r1")
    fires = {"from_": "2026-03-01T00:00:00Z", "to": "2026-03-01T01:00:00Z"}
    backfills.begin(world, "every", "r2", concurrency=1, **fires)
    plans = {key for key in rows(world) if key[1].startswith("PLAN#")}
    assert len(made.steps) == 2 and len(plans) == 3
    new = elsewhere(exported(world, "demo"), world)
    assert {key for key in rows(new) if key[1].startswith("PLAN#")} == plans
    for _ in range(9):
        new.pass_by("61s")
        new.settle()
        new.finish()
    assert [len(new.runs(name)) for name in ("daily", "next", "every")] == [2, 2, 6]


def test_l14_the_manifest_counts_rows_by_kind() -> None:
    archive = exported(busy(), "demo")
    made = Manifest.model_validate_json(archive.files[MANIFEST])
    lines = [line for name, text in archive.files.items() if name.endswith("jsonl") for line in text.splitlines()]
    assert sum(made.rows.values()) == len(lines)
    assert made.rows["Run"] == 2 and made.rows["Waiter"] == 1
    assert loads.TABLES == ("catalog", "jobs", "runs")


def test_o14_an_import_beside_one_without_lists_is_refused() -> None:
    world = World(**SMALL)
    world.deploy(flights({"s": at("0 1 * * *")}))
    world.allow("demo", execution_roles=["arn:aws:iam::000000000000:role/job"], entry_points=["s3://code/"])
    archive = exported(world, "demo")
    new = World(**SMALL, authorization="enforce", account="123456789012")
    new.deploy({"workflows": {"w": {"target": {"type": "sqs", "queue_url": ORDERS}}}}, namespace="other")
    before = rows(new)
    with pytest.raises(SluiceError) as failure:
        elsewhere(archive, world, new)
    assert failure.value.code == "conflict"
    assert "sluice allowed other --propose" in str(failure.value.hint)
    assert rows(new) == before
    new.allow("other", queues=["arn:aws:sqs:eu-west-1:123456789012:orders"])
    elsewhere(archive, world, new)
    assert new.ports.catalog.is_shared()


WITH_TARGET: dict[str, Any] = {"type": "sqs", "queue_url": ORDERS}
TENANTS: dict[str, Any] = SMALL | {"authorization": "enforce", "account": "123456789012"}
LISTED = ["arn:aws:sqs:eu-west-1:123456789012:orders"]


def using(*namespaces: str, settings: dict[str, Any] = TENANTS, **lists: Any) -> World:
    """A world in which a workflow, a message, a default target, and a schedule of each namespace name what is not their
    own."""
    world = World(**settings | {"authorization": "off"})
    probe = {"type": "probe", "target": {"type": "http", "url": "https://x.example.com/"}}
    for name in namespaces:
        world.deploy({
            "default_target": WITH_TARGET,
            "workflows": {"w": {"target": WITH_TARGET}},
            "schedules": {"s": at("0 1 * * *", "w", constraints=[probe])},
        }, namespace=name)  # fmt: skip
        if lists:
            world.allow(name, **lists)
    return world


def tenants(*namespaces: str, mode: str = "enforce") -> World:
    new = World(**TENANTS | {"authorization": mode})
    for name in namespaces:
        store.put(new.ports, "namespace", name, {}, "tester")
    return new


@pytest.mark.parametrize(("arriving", "here"), [(["demo"], ["other"]), (["demo", "late"], []), ([], [])])
def test_o14_what_arrives_beside_others_needs_its_lists(arriving: list[str], here: list[str]) -> None:
    world, new = using("demo", "late"), tenants(*here)
    before = rows(new)
    with pytest.raises(SluiceError) as failure:
        imported(new, exported(world, *arriving))
    assert failure.value.code == "conflict"
    assert "queue_url of workflow demo.flights.w" in failure.value.message
    assert "target.queue_url of default target of demo.flights" in failure.value.message
    assert "constraints.0.target.url of schedule demo.flights.s" in failure.value.message
    assert "sluice allowed demo --propose" in str(failure.value.hint)
    assert rows(new) == before
    world = using("demo", "late", queues=LISTED, hosts=["x.example.com"])
    imported(new, exported(world, *arriving))
    assert new.ports.rows.get(Definition, "namespace", "demo") is not None


def test_o14_a_resumed_import_compares_lists_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It began in an empty installation. Another namespace came before it was repeated."""
    archive, new = exported(using("demo"), "demo"), tenants()
    with monkeypatch.context() as patched:
        patched.setattr("sluice.operations.archive.sharing.count", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            imported(new, archive)
    store.put(new.ports, "namespace", "other", {}, "tester")
    with pytest.raises(SluiceError, match="expected that demo uses only what it may use beside others"):
        imported(new, archive)
    assert new.ports.rows.get(Definition, "namespace", "demo") is None
    store.delete(new.ports, "namespace", "other")
    imported(new, archive)
    store.put(new.ports, "namespace", "system", {}, "tester")
    imported(new, archive)  # all is there: a repetition changes nothing
    assert new.ports.rows.get(Definition, "namespace", "demo") is not None


def test_o14_what_arrives_alone_needs_no_lists() -> None:
    new = tenants("system")
    imported(new, exported(using("demo"), "demo"))
    assert new.ports.rows.get(Definition, "namespace", "demo") is not None


def test_o14_only_the_present_schedule_is_compared() -> None:
    world = using("demo", queues=LISTED)
    world.deploy({
        "default_target": WITH_TARGET, "workflows": {"w": {"target": WITH_TARGET}},
        "schedules": {"s": at("0 1 * * *", "w")},
    })  # fmt: skip
    imported(tenants("other"), exported(world, "demo"))


def test_o14_an_observed_import_logs_what_would_be_refused(caplog: pytest.LogCaptureFixture) -> None:
    new = tenants("other", mode="observe")
    imported(new, exported(using("demo"), "demo"))
    assert "namespace would be refused" in [record.getMessage() for record in caplog.records]
    assert new.ports.rows.get(Definition, "namespace", "demo") is not None


def test_l24_what_was_stopped_is_stopped_elsewhere_too() -> None:
    """Its stops, their marks and the new schedules of it. A start there brings back what ran before."""
    world = World(**SMALL)
    world.deploy(flights({"daily": partitions(by=["day"]), "held": partitions(by=["day"])}))
    world.pause("held")
    world.stop("demo", reason="table is repaired")
    world.upload(day(1))
    world.settle()
    new = elsewhere(exported(world, "demo"), world)
    new.pass_by("2m")
    assert (new.runs("daily"), new.runs("held")) == ([], [])
    assert "table is repaired" in new.jobs("daily")[0].reason.text
    new.put("late", partitions(by=["day"]))
    new.upload(day(2))
    new.pass_by("2m")
    assert new.runs("late") == [], "what is created there is stopped, too"

    new.start("demo")
    new.pass_by("2m")
    assert [len(new.runs(name)) for name in ("daily", "late", "held")] == [2, 1, 0]
    new.resume("held")
    new.settle()
    assert len(new.runs("held")) == 2
    invariants.check(new)
