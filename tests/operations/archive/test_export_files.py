"""The files that an export writes, which rows they have, and what it says meanwhile (L14)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.backfill import PlanPart
from chalicelib.core.rows.definition import Definition, PrefixLock
from chalicelib.core.rows.kinds import TABLES
from chalicelib.core.rows.schedule import Subscription
from sluice.operations.archive import export as exports
from sluice.operations.archive.export import Sum, Wanted
from sluice.operations.ports import Archive, Copies, StoredCopy
from sluice.operations.rules.manifest import MANIFEST, PROGRESS, Manifest
from tests.aws.tables.test_unknown_attributes import sample
from tests.support import rows
from tests.support.archives import SOURCE, MemoryArchive
from tests.support.clock import NOON


def copy(table: str, row: Any, pk: str, sk: str = "x", **more: Any) -> StoredCopy:
    item = {"pk": {"S": pk}, "sk": {"S": sk}, **more}
    return StoredCopy(cast(Any, table), type(row).__name__, row, item)


def namespace(name: str) -> StoredCopy:
    return copy("catalog", Definition("namespace", name, {}, 1, NOON), "NAMESPACES", name)


def job(name: str, number: int = 1, **more: Any) -> StoredCopy:
    row = rows.job(f"j{number}", schedule=f"{name}.flights.s")
    return copy("jobs", row, f"{name} {number}", **more)


def run(name: str, number: int = 1) -> StoredCopy:
    return copy("runs", rows.run(f"r{number}", schedule=f"{name}.flights.s"), f"{name} {number}")


class Tables:
    """The pages of each table. Keeps which were read. Each read may see other pages."""

    layout = 3

    def __init__(self, *pages: Sequence[StoredCopy]) -> None:
        self.pages: dict[str, list[Sequence[StoredCopy]]] = {name: [] for name in TABLES}
        for page in pages:
            self.pages[page[0].table].append(page)
        self.read: list[tuple[str, Any]] = []

    def page(self, table: str, cursor: Any) -> tuple[tuple[StoredCopy, ...], Any]:
        self.read.append((table, cursor))
        number, pages = cursor or 0, self.pages[table]
        found = tuple(pages[number]) if pages else ()
        return found, number + 1 if number + 1 < len(pages) else None


Told = list[tuple[str, int]]


def export(
    tables: Tables, *namespaces: str, archive: MemoryArchive | None = None, told: Told | None = None
) -> MemoryArchive:
    archive = archive if archive is not None else MemoryArchive()
    tell = (lambda table, count: told.append((table, count))) if told is not None else (lambda table, count: None)
    exports.export(cast(Copies, tables), cast(Archive, archive), namespaces, SOURCE, NOON, tell)
    return archive


def lines(archive: MemoryArchive, name: str) -> list[str]:
    """The partition keys of the rows in a file, in order."""
    return [json.loads(line)["item"]["pk"]["S"] for line in archive.files[name].splitlines()]


def two() -> Tables:
    """Rows of two namespaces, in two pages of one table."""
    return Tables(
        [namespace("demo"), namespace("other")],
        [job("demo", 1), job("other", 1)],
        [job("demo", 2)],
        [run("other", 1)],
    )


# -- files -------------------------------------------------------------------------------------------------------------


def test_l14_an_export_has_a_file_of_each_table_with_rows() -> None:
    archive = export(two(), "demo")
    assert sorted(archive.files) == ["catalog-000000.jsonl", "jobs-000001.jsonl", MANIFEST, PROGRESS]
    assert lines(archive, "catalog-000000.jsonl") == ["NAMESPACES"]
    assert lines(archive, "jobs-000001.jsonl") == ["demo 1", "demo 2"]
    text = archive.files["jobs-000001.jsonl"]
    assert text.splitlines()[0] == '{"item":{"pk":{"S":"demo 1"},"sk":{"S":"x"}},"kind":"Job"}'
    made = Manifest.model_validate_json(archive.files[MANIFEST])
    assert (made.layout, made.namespaces, made.source, made.closed) == (3, ("demo",), SOURCE, False)
    assert made.exported_at == "2026-03-02T12:00:00.000Z"
    assert dict(made.rows) == {"Definition": 1, "Job": 2}
    assert [(part.file, part.table, part.rows) for part in made.parts] == [
        ("catalog-000000.jsonl", "catalog", 1),
        ("jobs-000001.jsonl", "jobs", 2),
    ]
    assert made.parts[1].sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert archive.files[MANIFEST] == json.dumps(made.model_dump(mode="json"), indent=2) + "\n"
    assert list(json.loads(archive.files[MANIFEST])["rows"]) == ["Definition", "Job"]


def test_l14_an_export_without_namespaces_has_all() -> None:
    archive = export(two())
    assert lines(archive, "jobs-000001.jsonl") == ["demo 1", "other 1", "demo 2"]
    made = Manifest.model_validate_json(archive.files[MANIFEST])
    assert (made.namespaces, sum(made.rows.values())) == ((), 6)


def test_l14_namespaces_of_an_export_are_sorted() -> None:
    made = Manifest.model_validate_json(export(two(), "other", "demo").files[MANIFEST])
    assert made.namespaces == ("demo", "other")


def test_l14_a_manifest_has_the_digest_of_the_exported_rows() -> None:
    """By it, the source refuses to give up rows that have changed since."""
    made = Manifest.model_validate_json(export(two(), "demo").files[MANIFEST])
    total = Sum()
    for each in (namespace("demo"), job("demo", 1), job("demo", 2)):
        total.add(exports.line_of(each))
    assert made.digest == total.as_text()


def test_l14_an_export_tells_what_it_has_read() -> None:
    """Of each table in the first read, and of each file in the second."""
    told: Told = []
    tables = two()
    export(tables, "demo", told=told)
    assert told == [("catalog", 1), ("jobs", 3), ("runs", 3)] * 2
    assert tables.read == [("catalog", None), ("jobs", None), ("jobs", 1), ("runs", None)] * 2


SHORTEST = len(exports.line_of(job("demo", 1, text={"S": ""})))


@pytest.mark.parametrize(("short", "files"), [(0, 2), (1, 1)])
def test_l14_a_file_ends_with_a_page_that_fills_it(short: int, files: int) -> None:
    """A file of less than four million characters gets the next page, too."""
    text = {"S": "x" * (4_000_000 - SHORTEST - short)}
    tables = Tables([namespace("demo")], [job("demo", 1, text=text)], [job("demo", 2)])
    told: Told = []
    archive = export(tables, "demo", told=told)
    names = sorted(name for name in archive.files if name.startswith("jobs"))
    assert len(names) == files
    assert told[3:] == [("catalog", 1), *[("jobs", 2), ("jobs", 3)][-files:], ("runs", 3)]
    if files == 2:
        assert lines(archive, "jobs-000001.jsonl") == ["demo 1"]
        assert lines(archive, "jobs-000002.jsonl") == ["demo 2"]


# -- what an export goes on from ---------------------------------------------------------------------------------------


class Full(MemoryArchive):
    """The disk is full when this file is written."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def put(self, name: str, text: str) -> None:
        if name == self.name:
            raise InterruptedError
        super().put(name, text)


def large() -> Tables:
    text = {"S": "x" * 4_000_000}
    return Tables(
        [namespace("demo"), namespace("other")],
        *([job("demo", number, text=text)] for number in (1, 2, 3)),
        [run("demo", 1)],
    )


def broken(tables: Tables, name: str, *namespaces: str) -> MemoryArchive:
    """An export that broke off at a file."""
    archive = Full(name)
    with pytest.raises(InterruptedError):
        export(tables, *namespaces, archive=archive)
    return MemoryArchive(archive.files)


def test_l14_the_progress_of_an_export_says_where_it_is() -> None:
    archive = broken(large(), "jobs-000002.jsonl", "demo")
    found = json.loads(archive.files[PROGRESS])
    total = Sum()
    for each in (namespace("demo"), job("demo", 1, text={"S": "x" * 4_000_000})):
        total.add(exports.line_of(each))
    whole = exports.digest(cast(Copies, large()), Wanted(frozenset({"demo"})))
    parts = found.pop("parts")
    assert found == {
        "namespaces": ["demo"],
        "first": whole.as_text(),
        "table": 1,
        "cursor": 1,
        "digest": f"{total.digest:x}",
        "rows": 2,
        "kinds": {"Definition": 1, "Job": 1},
    }
    assert [part["file"] for part in parts] == ["catalog-000000.jsonl", "jobs-000001.jsonl"]


def test_l14_an_export_that_broke_off_reads_on_in_the_middle() -> None:
    whole = export(large(), "demo")
    archive, tables = broken(large(), "jobs-000003.jsonl", "demo"), large()
    told: Told = []
    export(tables, "demo", archive=archive, told=told)
    assert archive.files == whole.files
    assert tables.read[5:] == [("jobs", 2), ("runs", None)]
    assert told[3:] == [("jobs", 4), ("runs", 5)]


@pytest.mark.parametrize("other", ["namespaces", "rows"])
def test_l14_an_export_of_other_rows_begins_anew(other: str) -> None:
    """Into the folder of one that broke off."""
    tables, namespaces = large(), ("demo",)
    if other == "rows":
        tables.pages["runs"].append([run("demo", 2)])
    else:
        namespaces = ("demo", "other")
    archive = broken(large(), "jobs-000003.jsonl", "demo")
    tables.read.clear()
    export(tables, *namespaces, archive=archive)
    assert archive.files == export(tables, *namespaces).files


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ('{"namespaces": ["demo", "other"], "exported_at": "2026"}', "demo, other of 2026"),
        ('{"namespaces": [], "exported_at": "2026"}', "an installation of 2026"),
        ("{}", "unknown namespaces"),
        ("[]", "unknown namespaces"),
        ("no json", "unknown namespaces"),
    ],
)
def test_l14_a_folder_with_an_export_is_refused(text: str, about: str) -> None:
    archive = MemoryArchive({MANIFEST: text})
    with pytest.raises(SluiceError) as refused:
        export(two(), "demo", archive=archive)
    assert refused.value.to_dict()["error"] == {
        "code": "conflict",
        "message": f"expected a folder without an export, got one with the export of {about}",
        "field": "--to",
        "hint": "name an empty folder",
    }
    assert archive.files == {MANIFEST: text}


@pytest.mark.parametrize(
    ("tables", "known"), [(two(), "demo, other"), (Tables([job("demo")]), "none")], ids=["some", "none"]
)
def test_l14_a_namespace_that_does_not_exist_is_named(tables: Tables, known: str) -> None:
    with pytest.raises(SluiceError) as refused:
        export(tables, "nowhere", "elsewhere")
    assert refused.value.to_dict()["error"] == {
        "code": "not_found",
        "message": "expected a namespace, got elsewhere, nowhere",
        "field": "NAMESPACE",
        "hint": f"the namespaces are {known}; without one, all are exported",
    }


def test_l14_changes_between_the_reads_refuse_an_export() -> None:
    """The files that are there are written again by the next export."""
    tables, archive = two(), MemoryArchive()

    def tell(table: str, count: int) -> None:
        if table == "runs":
            tables.pages["jobs"][1] = [job("demo", 3)]

    with pytest.raises(SluiceError) as refused:
        exports.export(cast(Copies, tables), cast(Archive, archive), ["demo"], SOURCE, NOON, tell)
    assert refused.value.to_dict()["error"] == {
        "code": "conflict",
        "message": "expected the same 3 rows in both reads, got changes while the export read the tables",
        "field": None,
        "hint": "freeze the installation as docs/export.md describes (sluice freeze), then export again with this "
        "--to; the files there now are incomplete, since they have no manifest.json: the next export overwrites them",
    }
    assert archive.files[PROGRESS] == "{}"
    assert MANIFEST not in archive.files


# -- which rows --------------------------------------------------------------------------------------------------------


def owned(*namespaces: str) -> Wanted:
    return Wanted(frozenset(namespaces))


def test_l14_a_row_belongs_to_the_export_of_its_namespace() -> None:
    wanted = owned("demo", "third")
    for name, expected in (("demo", True), ("third", True), ("other", False)):
        assert wanted.has(job(name)) is wanted.owns(job(name)) is wanted.counts(job(name)) is expected
    assert owned().owns(job("other"))


@pytest.mark.parametrize("namespaces", [(), ("demo",)])
def test_l14_no_export_has_the_locks_of_an_installation(namespaces: tuple[str, ...]) -> None:
    wanted = owned(*namespaces)
    lock = copy("catalog", sample(PrefixLock), "LOCK#1")
    assert (wanted.has(lock), wanted.owns(lock), wanted.counts(lock)) == (False, False, False)


def test_l14_a_part_of_a_plan_belongs_to_what_names_it() -> None:
    """It is in the files, and not in the digest: the first read may meet it before its backfill."""
    part = copy("jobs", replace(sample(PlanPart), plan="p1"), "PLAN#p1")
    wanted = owned("demo")
    assert not wanted.has(part)
    wanted.owns(copy("jobs", rows.backfill(schedule="other.flights.s"), "b"))
    assert not wanted.has(part)
    wanted.owns(copy("jobs", rows.backfill(), "b"))
    assert (wanted.has(part), wanted.owns(part), wanted.counts(part)) == (True, True, False)
    assert (owned().has(part), owned().counts(part)) == (True, False)


def test_l14_an_open_event_belongs_to_who_waits_for_it() -> None:
    """It is in the files of the export, and the row of another namespace stays out of the digest."""
    event = copy("jobs", rows.posted("p1", event=rows.event("p1", kind="event", key="event:lake:closed")), "EVENT#p1")
    wanted = owned("demo")
    assert not wanted.has(event)
    for name in ("lake", "demo"):
        row = replace(sample(Subscription), event_key="event:lake:closed", schedule=f"{name}.flights.s")
        wanted.owns(copy("catalog", row, "SUB#1"))
        assert wanted.has(event) is (name == "demo")
    assert (wanted.owns(event), wanted.counts(event)) == (False, False)


def test_l14_a_pending_notice_belongs_to_schedule_and_workflow() -> None:
    notice = copy("jobs", rows.notice(workflow="lake.core.count"), "NOTICE#1")
    assert (owned("demo").has(notice), owned("demo").owns(notice)) == (True, False)
    assert (owned("lake").has(notice), owned("lake").owns(notice)) == (True, True)
    assert not owned("other").has(notice)


# -- the digest --------------------------------------------------------------------------------------------------------


def test_l14_a_digest_depends_on_the_rows_and_not_on_their_order() -> None:
    one, other, third = Sum(), Sum(), Sum()
    for line in ("a", "b", "c"):
        one.add(line)
    for line in ("c", "a", "b"):
        other.add(line)
    for line in ("a", "b", "d"):
        third.add(line)
    assert one == other != third
    number = 0
    for line in ("a", "b", "c"):
        number ^= int(hashlib.sha256(line.encode()).hexdigest(), 16)
    assert one.as_text() == f"3:{number:064x}"
    assert Sum().as_text() == f"0:{'0' * 64}"


def test_l14_a_digest_counts_no_part_of_a_plan() -> None:
    part = copy("jobs", sample(PlanPart), "PLAN#p1")
    tables = Tables([namespace("demo")], [job("demo"), part])
    told: Told = []
    found = exports.digest(cast(Copies, tables), owned(), lambda table, count: told.append((table, count)))
    assert found == exports.digest(cast(Copies, Tables([namespace("demo")], [job("demo")])), owned())
    assert (found.rows, told) == (2, [("catalog", 1), ("jobs", 2), ("runs", 2)])


@pytest.mark.parametrize(
    "row",
    [
        copy("catalog", Definition("workflow", "demo.a.w", {}, 1, NOON), "NAMESPACES#x", "elsewhere"),
        copy("catalog", rows.schedule_state(), "NAMESPACES", "elsewhere"),
    ],
    ids=["another key", "another kind"],
)
def test_l14_only_rows_of_namespaces_say_which_there_are(row: StoredCopy) -> None:
    with pytest.raises(SluiceError, match="expected a namespace, got elsewhere"):
        export(Tables([namespace("demo"), row]), "elsewhere")
