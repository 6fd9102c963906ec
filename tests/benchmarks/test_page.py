"""The page about performance and its lab book show the figures of the results."""

from __future__ import annotations

import re

from benchmarks import results
from benchmarks.page import KINDS, LAB_BOOK, NOT_YET, PAGE, TABLES, page


def test_e9_the_pages_have_the_figures_of_the_results() -> None:
    texts = [path.read_text() for path in (PAGE, LAB_BOOK)]
    assert [page(text, results.read()) for text in texts] == texts, "run: python -m benchmarks.page"
    shown = re.findall(r"<!-- (?!end)(\w+) -->", "".join(texts))
    assert sorted(shown) == sorted(TABLES), "each table is on one page"


def test_a_missing_measurement_says_so() -> None:
    assert page("<!-- tick -->\n<!-- end -->", {}) == f"<!-- tick -->\n{NOT_YET}\n<!-- end -->"


def test_a_table_has_a_row_for_each_size_and_one_for_the_growth() -> None:
    one = {"schedules": 1_000, "calls": 10, "read_units": 2.0, "write_units": 5, "cpu_ms": 1.5}
    growth = {"calls": 1.0, "read_units": 1.0, "write_units": 1.0, "cpu_ms": 1.01}
    found = {"tick": {"sizes": [one], "growth": growth}}
    lines = page("<!-- tick -->\nold\n<!-- end -->", found).splitlines()
    assert lines[3] == "| 1,000 | 10 | 2.0 | 5 | 1.5 |"
    assert lines[4] == "| growth, first to last | 1.0 | 1.0 | 1.0 | 1.01 |"


KIND = re.compile(r"\b(counted|measured|predicted)\b", re.IGNORECASE)


def _sections() -> dict[tuple[str, str], str]:
    """The sections of the pages by page and heading; the text before the first heading is "top"."""
    found = {}
    for path in (PAGE, LAB_BOOK):
        parts = re.split(r"^## (.+)\n", "top\n" + path.read_text().partition("\n")[2], flags=re.M)
        bodies = {"top": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))
        found |= {(path.name, name): body for name, body in bodies.items()}
    return found


def test_e9_each_table_is_under_the_word_for_how_it_came_about() -> None:
    assert KINDS.keys() == TABLES.keys()
    homes = {
        name: body for body in _sections().values() for name in re.findall(r"<!-- (\w+) -->", body) if name != "end"
    }
    assert homes.keys() == TABLES.keys()
    wrong = [name for name, body in homes.items() if KINDS[name] not in body.partition("\n")[0].lower()]
    assert wrong == []


def test_b13_every_figure_is_counted_measured_or_predicted() -> None:
    untold = [
        name
        for name, body in _sections().items()
        if re.search(r"\d", body) and not KIND.search(body if name[1] == "top" else body.partition("\n")[0])
    ]
    assert untold == []


def test_b13_a_prediction_among_measurements_says_so() -> None:
    """A paragraph about AWS in a section of measurements is marked, because it was not measured there."""
    paragraphs = [
        paragraph
        for body in _sections().values()
        if body.lower().startswith("*measured") or body.lower().startswith("*counted")
        for paragraph in body.split("\n\n")
    ]
    about = [text for text in paragraphs if re.match(r"(\*\*)?In AWS\b", text)]
    assert about
    assert [text for text in about if "(predicted)" not in text] == []


def test_e9_each_prediction_is_shown_with_the_pessimistic_one() -> None:
    about = {"about": "one a minute", "fires": 20}
    entries = {
        key: {"lone": [{**about, "lateness_ms": dict.fromkeys(("p50", "p99", "max"), late)}]}
        for key, late in (("aws_model", 100), ("aws_model_pessimistic", 900))
    }
    lines = page("<!-- predicted_lone -->\n<!-- end -->", entries).splitlines()
    assert lines[3:5] == [
        "| one a minute | 20 | 100 | 100 | 100 | usual |",
        "| one a minute | 20 | 900 | 900 | 900 | pessimistic |",
    ]


def test_b13_predictions_of_the_results_are_marked() -> None:
    found = results.read()["aws_model"]
    assert found["kind"] == "predicted"
    assert found["assumed"]["calls"]["dynamodb:GetItem"]["ms"] > 0
