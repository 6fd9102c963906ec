"""Compares the documents with the repository: ids, tests, routes, figures and links."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from docs.pictures import decisions, states

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("jobs/*.md"),
        *ROOT.glob("job_library/*.md"),
    ]
)
INTERNALS = DOCS / "internals"
# Pages that hold what users do. The others say how it is made and shown, and may name files and tests.
FOR_USERS = sorted(
    {*DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("coming-from/*.md")}
    - {DOCS / f"{name}.md" for name in ("README", "architecture", "requirements", "interfaces")}
)
# Pages of which a reader runs the commands.
PASTED = [page for page in PAGES if not {"internals", "decisions"} & set(page.parts)]
STATUSES = ("done", "part", "planned")
ID = r"[LTCEWHO]\d+"


def rows(page: str) -> list[list[str]]:
    """The rows of a page's tables that begin with an id, cell by cell."""
    lines = (DOCS / page).read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if re.match(rf"\| {ID} \|", line)]


REQUIREMENTS = rows("requirements.md")


@cache
def functions(file: Path) -> frozenset[str]:
    """The test functions that a file defines; empty if there is no such file."""
    if not file.is_file():
        return frozenset()
    nodes = ast.walk(ast.parse(file.read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


def named_tests(row: list[str]) -> list[str]:
    return re.findall(r"`([^`]+)`", row[3])


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_each_requirement_has_an_id_of_its_own() -> None:
    assert set(Counter(row[0] for row in REQUIREMENTS).values()) == {1}


@pytest.mark.parametrize("row", REQUIREMENTS, ids=lambda row: row[0])
def test_a_requirement_has_a_status_and_a_done_one_is_shown(row: list[str]) -> None:
    assert len(row) == 4, f"expected id, requirement, status and tests, got {row}"
    status, _, note = row[2].partition(": ")
    assert status in STATUSES
    assert note or status != "part", f"{row[0]} does not say what is missing"
    assert named_tests(row) or status != "done", f"{row[0]} is marked done, and no test shows it"


@pytest.mark.parametrize("row", REQUIREMENTS, ids=lambda row: row[0])
def test_the_tests_named_for_a_requirement_exist(row: list[str]) -> None:
    for name in named_tests(row):
        file, _, function = name.partition("::")
        assert function in functions(ROOT / "tests" / file), f"{row[0]} names {name}, which does not exist"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    text = prose(page)
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert ROOT in (target, *target.parents), f"{link} leads out of the repository"
        assert not anchor or anchor in anchors(target), f"{link} names a heading that is not there"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_named_in_the_docs_exist(page: Path) -> None:
    for name in re.findall(r"`((?:tests|chalicelib|infra|docs|examples|jobs)/[\w/.-]+\.\w+)`", prose(page)):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_for_users_names_no_test(page: Path) -> None:
    assert re.findall(r"\btests/[\w/.]+", prose(page)) == [], "what shows a promise stands in docs/internals"


@pytest.mark.parametrize("page", PASTED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_block_of_a_page_can_be_pasted(page: Path) -> None:
    """A prompt before a command, or its output behind it, would be typed into the shell."""
    blocks = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(), flags=re.S | re.M)
    assert [text for _, text in blocks if re.search(r"^ *\$ ", text, flags=re.M)] == []
    assert "console" not in {language for language, _ in blocks}


def test_every_page_of_internals_is_listed() -> None:
    listed = re.findall(r"^\| \[([\w-]+\.md)\]", (INTERNALS / "README.md").read_text(), flags=re.M)
    assert sorted(["README.md", *listed]) == sorted(page.name for page in INTERNALS.glob("*.md"))


@pytest.mark.parametrize("page", sorted(INTERNALS.glob("*.md")), ids=lambda page: page.name)
def test_the_tests_named_in_internals_exist(page: Path) -> None:
    """A test in the text is named by its file, below the folder of the repository or below `tests/`."""
    for file, function in re.findall(r"`(?:tests/)?([\w/]+\.py)::(test_\w+)`", prose(page)):
        places = (ROOT / "tests" / file, ROOT / "tests" / "console" / file)
        assert any(function in functions(place) for place in places), f"{page.name} names {file}::{function}"


def first_cells(text: str) -> set[str]:
    """What the rows of a page's tables begin with, without the targets of links."""
    return {re.sub(r"\]\([^)]*\)", "]", cell) for cell in re.findall(r"^\| (.+?) \| ", text, flags=re.M)}


def test_each_guarantee_has_its_proof() -> None:
    page = (DOCS / "guarantees.md").read_text()
    promised = page[page.index("\n## Events\n") : page.index("\n## What may still be sent\n")]
    assert len(first_cells(promised)) > 50
    assert first_cells(promised) <= first_cells((INTERNALS / "proofs.md").read_text())


def test_the_lifecycle_figures_are_those_of_the_code() -> None:
    page = states.PAGE.read_text()
    assert states.with_figures(page) == page, "run `python -m docs.pictures.states`"


def test_the_reference_is_that_of_the_models() -> None:
    from docs.pictures import reference

    page = reference.PAGE.read_text()
    assert reference.with_fields(page) == page, "run `python -m docs.pictures.reference`"


def test_every_decision_is_listed_with_its_status() -> None:
    page = decisions.PAGE.read_text()
    assert decisions.with_table(page) == page, "run `python -m docs.pictures.decisions`"


@pytest.mark.parametrize("one", decisions.decisions(), ids=lambda one: one.page.name[:4])
def test_a_decision_is_accepted_or_names_a_later_one(one: decisions.Decision) -> None:
    assert one.status is not None, f"{one.page.name} has no status; run `python -m docs.pictures.decisions`"
    assert decisions.STATUS.fullmatch(one.status), f"{one.page.name}: Status: {one.status}"
    for number, file in one.by:
        assert (decisions.FOLDER / file).exists(), f"{one.page.name} names {file}, which does not exist"
        assert file.startswith(number)
        assert number != one.page.name[:4]


def test_each_performance_section_says_how_it_was_measured() -> None:
    page = (DOCS / "internals" / "measurements.md").read_text()
    sections = re.findall(r"^## (.+)\n(.*)", page, flags=re.M)
    assert len(sections) > 10
    untold = [name for name, first in sections if not re.match(r"\*(Counted|Measured|Predicted)\b", first)]
    assert untold == []
