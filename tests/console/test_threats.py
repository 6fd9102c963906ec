"""Each threat that docs/internals/console.md names has its tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent.parent / "docs" / "internals" / "console.md"
THREATS = re.findall(r"^\| ([^|]+) \| [^|]+ \| (`test_[^|]+`) \|$", PAGE.read_text(encoding="utf-8"), re.M)


def test_the_page_has_a_table_of_threats() -> None:
    assert len(THREATS) >= 10


@pytest.mark.parametrize(("threat", "tests"), THREATS, ids=[threat[:40] for threat, _ in THREATS])
def test_a_threat_of_the_page_has_its_tests(threat: str, tests: str) -> None:
    for name in re.findall(r"`([^`]+)`", tests):
        file, _, test = name.partition("::")
        assert f"def {test}(" in (FOLDER / file).read_text(encoding="utf-8")
