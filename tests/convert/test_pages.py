"""The examples of docs/coming-from: each input is converted, and the result is the document beside it (L20)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.convert.conftest import accepted, converted

COMPARED = "dags-compared.md"  # a table beside other systems, without an example to convert
PAGES = sorted(page for page in (Path(__file__).parents[2] / "docs/coming-from").glob("*.md") if page.name != COMPARED)
INPUT = re.compile(r"<!-- input: (\w+) (\S+) -->\n```\w*\n(.*?)^```", re.S | re.M)
REPORT = re.compile(r"<!-- from the report -->\n```\n(.*?)^```", re.S | re.M)
DOCUMENT = re.compile(r"<!-- document -->\n```yaml\n(.*?)^```", re.S | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_l20_the_example_of_a_page_is_converted_as_it_says(page: Path, tmp_path: Path) -> None:
    inputs, documents = INPUT.findall(page.read_text()), DOCUMENT.findall(page.read_text())
    assert len(inputs) == len(documents) == 1
    (kind, name, text) = inputs[0]
    (tmp_path / name).write_text(text)
    document, report = converted(kind, tmp_path / name)
    accepted(document, tmp_path)
    assert yaml.safe_load(document) == yaml.safe_load(documents[0])
    lines = [line for shown in REPORT.findall(page.read_text()) for line in shown.splitlines()]
    assert [line for line in lines if line not in report.splitlines()] == []
