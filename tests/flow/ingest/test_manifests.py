"""When the partition of a manifest is ready, how often its folder is listed, and what `why` says meanwhile (T8)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from chalicelib.core.events.manifests import MAX_MANIFEST
from chalicelib.core.events.partitions import ObjectCreated
from chalicelib.core.instants import HOUR, SECOND
from chalicelib.core.rows.event import ManifestRow
from chalicelib.flow.definitions import prefixes
from chalicelib.flow.definitions.prefixes import Place
from chalicelib.flow.ingest import objects
from sluice.testing.memory import MemoryLake
from tests.support.answers import explain
from tests.support.schedules import partitions
from tests.support.world import World, flights, full

FOLDER = "raw/orders-v2/year=2026/month=09/"
MANIFEST = f"{FOLDER}_MANIFEST.json"
BUCKET = "lake-bucket"


class CountingLake(MemoryLake):
    """Counts the listings."""

    listed = 0

    def names(self, bucket: str, prefix: str) -> frozenset[str]:
        self.listed += 1
        return super().names(bucket, prefix)


class Delivery(World):
    """A dataset whose partitions are ready by a manifest. Each put has the next sequencer."""

    def __init__(self, **dataset: Any) -> None:
        super().__init__()
        self.lake = CountingLake()
        self.ports = self.with_ports(lake=self.lake)
        document = flights({"daily": partitions(dataset="orders", by=["year", "month"])})
        ready = {"manifest": "_MANIFEST.json"}
        prefix = {"bucket": "lake", "prefix": "raw/orders-v2/", "keys": ["year", "month"], "ready": ready}
        document["datasets"]["orders"] = {**prefix, **dataset}
        self.deploy(document)
        self.puts = 0

    def place(self, key: str, text: str | bytes = "") -> ObjectCreated:
        """Put an object without its notification."""
        self.puts += 1
        self.clock.pass_by("3s")
        at, etag = self.clock.now(), f"{hash(text):x}"
        self.lake.objects[BUCKET, key], self.lake.etags[BUCKET, key] = text, etag
        self.lake.put_at[BUCKET, key] = at - at % SECOND
        return ObjectCreated(BUCKET, key, at + 123, len(text), etag, f"{self.puts:016X}")

    def notify(self, created: ObjectCreated) -> str:
        return objects.match_object(self.ports, created)

    def comes(self, key: str, text: str | bytes = "") -> str:
        return self.notify(self.place(key, text))

    def runs_of(self) -> int:
        self.settle()
        self.finish()
        self.settle()
        return len(self.runs("daily"))

    def why(self) -> str:
        return str(explain.why_schedule(self.ports, full("daily"))["why"])


@pytest.mark.parametrize("mode", ["enforce", "off"])
def test_o14_a_manifest_does_not_tell_what_others_have(mode: str) -> None:
    world = Delivery()
    world.ports = world.with_ports(settings=replace(world.ports.settings, authorization=mode))
    theirs = {"secret": {"bucket": "lake", "prefix": "other/secret/", "keys": ["day"]}}
    world.deploy({"datasets": theirs}, "other", "app")
    for key in ("other/secret/day=09/there.csv", "other/secret/day=09/none.csv", "history/day=2026-03-01/x.json.gz"):
        world.place("other/secret/day=09/there.csv")
        answer = world.comes(MANIFEST, f"s3://{BUCKET}/{key}\n")
        if mode == "off":
            assert ("is ready" in answer) is ("there" in key), key
        else:
            assert "expected objects that belong to no other namespace" in answer and "is not ready" in answer, key
    world.grant("other", {"grants": [{"to": "demo", "datasets": ["secret"]}]})
    assert "is ready" in world.comes(MANIFEST, f"s3://{BUCKET}/other/secret/day=09/there.csv\n")


@pytest.mark.parametrize("is_there", [True, False])
def test_o14_a_nested_prefix_of_another_is_no_part_of_it(is_there: bool) -> None:
    """A prefix inside the folder of the partition. A notification of its objects leads to the other namespace alone."""
    world = Delivery()
    world.ports = world.with_ports(settings=replace(world.ports.settings, authorization="enforce"))
    world.deploy({}, "other", "app")
    inner = f"{FOLDER}part=1/"
    prefixes.give(world.ports, "other", Place(BUCKET, inner), nested=True)
    theirs = {"secret": {"bucket": "lake", "prefix": inner, "keys": ["day"]}}
    world.deploy({"datasets": theirs}, "other", "app")
    world.comes(f"{FOLDER}a.csv")
    if is_there:
        world.place(f"{inner}day=09/x.csv")
    answer = world.comes(MANIFEST, "a.csv\npart=1/day=09/x.csv\n")
    assert f"expected objects that belong to no other namespace, got some in s3://{BUCKET}/{inner}" in answer
    world.grant("other", {"grants": [{"to": "demo", "datasets": ["secret"]}]})
    world.place(f"{inner}day=09/x.csv")
    assert "is ready" in world.comes(MANIFEST, "a.csv\npart=1/day=09/x.csv\n")


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_t8_a_manifest_may_list_objects_outside_its_folder(scheme: str) -> None:
    """As the symlink manifests of Hive and S3 Inventory do."""
    world = Delivery()
    outside = "raw/orders-v2/data/0b6a.parquet"
    assert "outside the folder" in world.comes(MANIFEST, f"{scheme}://{BUCKET}/{outside}\n")
    assert f"expected s3://{BUCKET}/{outside}, got nothing" in world.why()
    world.comes(outside)
    assert "is ready" in world.comes(MANIFEST, f"{scheme}://{BUCKET}/{outside}\n")
    assert world.runs_of() == 1


def test_t8_a_manifest_of_s3_inventory_is_read() -> None:
    world = Delivery()
    world.comes("inventory/data/x.csv.gz")
    files = [{"key": "inventory/data/x.csv.gz", "size": 5, "MD5checksum": "f1"}]
    content = {"destinationBucket": f"arn:aws:s3:::{BUCKET}", "fileSchema": "Bucket, Key", "files": files}
    assert "is ready" in world.comes(MANIFEST, json.dumps(content))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[" * 200_000, "nested too deeply"),
        (b'["part-0.csv", "par', "cut off or broken"),
        (b"\x1f\x8b\xff", "expected a manifest in UTF-8"),
        ("part-0.csv".encode("utf-16-le"), "expected a manifest in UTF-8"),
        (b"x" * (MAX_MANIFEST * 10), f"expected an object of at most {MAX_MANIFEST} bytes, got {MAX_MANIFEST * 10}"),
        (b"s3://elsewhere/part-0.csv", "in the bucket of the dataset, lake-bucket, got s3://elsewhere/part-0.csv"),
    ],
)
def test_t8_a_manifest_that_cannot_be_read_is_in_the_log_and_why(
    content: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = Delivery()
    assert "is not ready yet" in world.comes(MANIFEST, content)
    assert why in world.why()
    assert "put a correct manifest" in world.why()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["bad manifest"]
    reads = len(world.lake.reads)
    assert "is not ready yet" in world.comes(f"{FOLDER}part-0.csv")
    assert len(world.lake.reads) == reads, "it is read again only when it is put again"

    assert "is ready" in world.comes(MANIFEST, "part-0.csv")
    assert "manifest" not in world.why()
    assert world.runs_of() == 1


def test_t8_why_names_what_a_manifest_waits_for() -> None:
    world = Delivery()
    world.comes(f"{FOLDER}part-0.csv")
    world.comes(MANIFEST, "part-0.csv\npart-1.csv\npart-2.csv")
    expected = "partition 2026/09 of demo.orders is not ready: its manifest lists 2 objects that have not come, such as"
    assert f"{expected} {FOLDER}part-" in world.why()
    for name in ("part-1.csv", "part-2.csv"):
        world.comes(f"{FOLDER}{name}")
    assert world.runs_of() == 1
    assert "manifest" not in world.why()


def test_t8_why_of_a_job_names_the_manifest_of_its_values() -> None:
    world = Delivery()
    schedule = {"workflow": "clean", "by": ["year", "month"], "enabled": True}
    trigger = {"type": "all", "triggers": [{"type": "partition", "dataset": "orders"}, {"type": "event", "event": "e"}]}
    world.put("both", {**schedule, "trigger": trigger})
    world.post("e", year="2026", month="09")
    for month in ("08", "09"):
        world.comes(MANIFEST.replace("09", month), "part-0.csv")
    [job] = world.jobs("both")
    why = str(explain.why_job(world.ports, job)["why"])
    assert "partition 2026/09 of demo.orders is not ready" in why
    assert "2026/08" not in why


@pytest.mark.parametrize("manifest_at", [0, 50, 100])
def test_t8_a_folder_is_listed_a_few_times_not_for_each_object(manifest_at: int) -> None:
    """In any order of arrival; each object is put right before its notification, or all are before the first."""
    for seed in range(5):
        world, chance = Delivery(), random.Random(seed)
        names = [f"part-{number:05}.parquet" for number in range(100)]
        arrivals = chance.sample(names, 100)
        world.lake.reads.clear()
        for number, name in enumerate(arrivals):
            if number == manifest_at:
                world.comes(MANIFEST, json.dumps(names))
            world.comes(f"{FOLDER}{name}")
        if manifest_at == 100:
            world.comes(MANIFEST, json.dumps(names))
        for _ in range(20):
            world.comes(f"{FOLDER}later-{seed}.parquet")
        assert world.runs_of() == 1
        assert world.lake.listed <= 15
        assert world.lake.reads.count(MANIFEST) <= 15 + manifest_at


@pytest.mark.parametrize("again", [{}, {"rewritten": "again"}])
@pytest.mark.parametrize("order", list(permutations([0, 1, 2])))
def test_t8_notifications_in_any_order_make_one_event(again: dict[str, str], order: tuple[int, ...]) -> None:
    """All is in the bucket before the first notification; each comes twice."""
    world = Delivery(**again)
    created = [world.place(f"{FOLDER}a.csv"), world.place(MANIFEST, "a.csv\nb.csv"), world.place(f"{FOLDER}b.csv")]
    for number in (*order, *order):
        world.notify(created[number])
    assert world.runs_of() == 1


def test_t22_a_new_manifest_before_its_data_counts_later() -> None:
    world = Delivery(rewritten="again")
    world.comes(f"{FOLDER}a.csv")
    world.comes(MANIFEST, "a.csv")
    assert world.runs_of() == 1
    world.clock.pass_by("1h")

    second = world.place(MANIFEST, "a.csv\nb.csv")
    assert "is not ready yet" in world.notify(second)
    assert world.runs_of() == 1
    assert "b.csv, which has not come" in world.why()
    last = world.place(f"{FOLDER}b.csv")
    for created in (last, second, last, second):
        world.notify(created)
    assert world.runs_of() == 2


def test_t8_an_invocation_that_listed_earlier_checks_again() -> None:
    """The manifest's listing lacks the last object, which is put and notified before the row is written."""
    world = Delivery()
    world.comes(f"{FOLDER}a.csv")
    manifest = world.place(MANIFEST, "a.csv\nb.csv")
    names, done = world.lake.names, []

    def slow(bucket: str, prefix: str) -> frozenset[str]:
        found = names(bucket, prefix)
        if not done:
            done.append(True)
            assert "is ready" in world.comes(f"{FOLDER}b.csv")
        return found

    world.lake.names = slow
    assert "is ready" in world.notify(manifest)
    assert world.runs_of() == 1
    assert "manifest" not in world.why()


def test_t8_the_row_of_a_complete_manifest_goes_later() -> None:
    world = Delivery()
    world.comes(f"{FOLDER}a.csv")
    world.comes(MANIFEST, "a.csv\nb.csv")
    waiting = world.ports.rows.get(ManifestRow, "demo.orders", ("2026", "09"))
    assert waiting is not None and waiting.waits and waiting.expires_at is None
    world.comes(f"{FOLDER}b.csv")
    complete = world.ports.rows.get(ManifestRow, "demo.orders", ("2026", "09"))
    assert complete is not None and not complete.waits
    assert complete.expires_at is not None and complete.expires_at > world.clock.now() + HOUR


class Around:
    """A port before and after whose calls other invocations may run."""

    def __init__(self, port: Any, calls: tuple[str, ...], act: Callable[[], None]) -> None:
        self._port, self._calls, self._act = port, calls, act

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)
        if name not in self._calls:
            return call

        def crossed(*given: Any, **named: Any) -> Any:
            self._act()
            answer = call(*given, **named)
            self._act()
            return answer

        return crossed


class Crossing(Delivery):
    """Objects are put and notified in a random order, also while another invocation is between two calls."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(rewritten="again")
        self.chance, self.depth = chance, 0
        self.to_put: list[tuple[str, str]] = []
        self.unread: list[ObjectCreated] = []
        rows: Any = Around(self.ports.rows, ("get",), self._perhaps)
        ledger: Any = Around(self.ports.ledger, ("commit",), self._perhaps)
        lake: Any = Around(self.lake, ("names", "stored"), self._perhaps)
        self.ports = self.with_ports(rows=rows, ledger=ledger, lake=lake)

    def all_of(self, *objects: tuple[str, str]) -> None:
        self.to_put = self.chance.sample(objects, len(objects))
        while self.to_put or self.unread:
            self._step()

    def _perhaps(self) -> None:
        if (self.to_put or self.unread) and self.depth < 3 and self.chance.random() < 0.25:
            self.depth += 1
            self._step()
            self.depth -= 1

    def _step(self) -> None:
        if self.to_put and self.chance.random() < 0.5:
            self.unread += [self.place(*self.to_put.pop())] * self.chance.randint(1, 2)
            self.chance.shuffle(self.unread)
        elif self.unread:
            created = self.unread.pop()
            try:
                self.notify(created)
            except RuntimeError:  # too many conflicts: the notification comes again
                self.unread.insert(0, created)


@pytest.mark.parametrize("seed", range(30))
def test_t22_invocations_that_cross_count_each_version_once(seed: int) -> None:
    world = Crossing(random.Random(seed))
    data = [f"{FOLDER}part-{number}.csv" for number in range(1 + seed % 4)]
    for version in (data, [*data, f"{FOLDER}extra.csv"]):
        names = "\n".join(f"s3://{BUCKET}/{key}" for key in version)
        world.all_of((MANIFEST, names), *((key, "") for key in version if (BUCKET, key) not in world.lake.objects))
        world.runs_of()
    assert len(world.runs("daily")) == 2
    assert "manifest" not in world.why()
