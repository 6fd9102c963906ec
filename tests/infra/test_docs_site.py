"""The site of the documents: what `make docs` gives to mkdocs, which then builds it in strict mode."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import docs_site
from infra.docs_site import ROOT

PAGES = docs_site.pages()
FENCED = re.compile(r"^```.*?^```$", flags=re.S | re.M)


class Tolerant(yaml.SafeLoader):
    """Reads mkdocs.yml without the packages that its tags name."""


Tolerant.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def settings() -> Any:
    return yaml.load((ROOT / "mkdocs.yml").read_text(), Tolerant)


def leaves(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [leaf for each in (nav.values() if isinstance(nav, dict) else nav) for leaf in leaves(each)]


def test_the_navigation_has_every_page_once() -> None:
    listed = sorted(leaves(settings()["nav"]))
    assert listed == sorted(str(page) for page in PAGES if not re.match(r"docs/decisions/\d", str(page)))


def test_the_navigation_has_titles_in_the_order_of_need() -> None:
    tabs = settings()["nav"]
    assert [title for tab in tabs for title in tab] == [
        "Start",
        "How to",
        "Concepts",
        "Reference",
        "Operate",
        "Internals",
    ]
    for tab in tabs:
        ((_, items),) = tab.items()
        assert [item for item in items[1:] if isinstance(item, str)] == [], "only the index of a tab has no title"


def test_the_gate_builds_the_site() -> None:
    (needed,) = re.findall(r"^test: ([^#]*)##", (ROOT / "Makefile").read_text(), flags=re.M)
    assert "docs" in needed.split()


def test_the_site_is_built_in_strict_mode_with_a_search() -> None:
    read = settings()
    assert read["strict"] is True
    assert "search" in read["plugins"]
    assert set(read["validation"]["links"].values()) == set(read["validation"]["nav"].values()) == {"warn"}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_staged_page_loses_no_word_and_no_code(page: Path) -> None:
    text = (ROOT / page).read_text()
    staged = docs_site.with_blank_lines(text)
    assert staged.split() == text.split()
    assert FENCED.findall(staged) == FENCED.findall(text)


def test_a_list_gets_the_space_that_the_site_needs() -> None:
    page = "These:\n- one,\n  which goes on\n- two:\n  ```\n  code\n  ```\n\nNo list:\n| a |\n|---|\n"
    assert docs_site.with_blank_lines(page) == (
        "These:\n\n- one,\n    which goes on\n- two:\n\n    ```\n    code\n    ```\n\nNo list:\n\n| a |\n|---|\n"
    )


def test_staging_copies_pages_with_what_they_link_to(tmp_path: Path) -> None:
    docs_site.stage(tmp_path / "docs")
    assert all((tmp_path / "docs" / page).is_file() for page in PAGES)
    picture = "docs/pictures/overview.svg"
    assert (tmp_path / "docs" / picture).read_bytes() == (ROOT / picture).read_bytes()


def test_what_builds_the_site_is_pinned_and_kept_apart() -> None:
    rows = (ROOT / "docs" / "requirements.txt").read_text().splitlines()
    assert all(re.fullmatch(r"#.*|[\w-]+==[\w.]+", row) for row in rows)
    commands = subprocess.run(
        ["make", "--dry-run", "--always-make", "docs"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "build/docs-venv/bin/python -m infra.docs_site" in commands
    assert "requirements-dev.txt" not in commands
