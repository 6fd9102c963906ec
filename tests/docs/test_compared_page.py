"""docs/coming-from/dags-compared.md: each row about Sluice names tests, and these exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "coming-from" / "dags-compared.md").read_text()


def rows(page: str) -> list[list[str]]:
    lines = re.findall(r"^\| (?!row|system)(.+) \|$", page, flags=re.M)
    return [line.split(" | ") for line in lines if not line.startswith("---")]


def test_each_test_of_the_compared_page_exists() -> None:
    known = {
        name for path in TESTS.rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert named - known == set()
    shown = PAGE.partition("## What shows it")[2].partition("## Where")[0]
    assert all("`test_" in tests for _, tests in rows(shown))


def test_each_system_of_the_compared_page_has_its_sources() -> None:
    systems = [
        name.strip().removesuffix(" (op jobs)") for name in PAGE.partition("| | Sluice |")[2].split("\n")[0].split("|")
    ]
    sources = [cells[0] for cells in rows(PAGE.partition("## Where it is from")[2])]
    assert sources == [name for name in systems if name]
