"""YAML is read by the rules of version 1.2, and each field keeps its line number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluice import documents, yaml12
from sluice.errors import WrongUsage


def from_file(folder: Path, text: str) -> documents.Source:
    path = folder / "app.yaml"
    path.write_text(text, encoding="utf-8")
    return documents.source(str(path))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, word) for word in ("yes", "no", "on", "off", "Yes", "NO", "y", "n")),
        *((word, word == "true") for word in ("true", "false")),
        *((word, None) for word in ("null", "~", "")),
        ("12", 12),
        ("-3", -3),
        ("0o14", 12),
        ("0x1f", 31),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        ("010", "010"),
        ("08", "08"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2013-01-01", "2013-01-01"),
        ("=", "="),
    ],
)
def test_a_plain_word_is_read_by_yaml_1_2(text: str, value: Any) -> None:
    read = yaml12.load(f"a: {text}\n")["a"]
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize("key", ["on", "yes", "null", "true", "1", "2013-01-01", "010"])
def test_a_key_is_the_text_that_stands_there(key: str) -> None:
    assert yaml12.load(f"{key}: 1\n") == {key: 1}


@pytest.mark.parametrize("text", ["on", "yes", "1e3", "0o14", "08", "1:30", "2013-01-01", "null", "12", "true", "1_0"])
def test_a_text_is_the_same_after_it_is_written(text: str) -> None:
    document = {text: text, "list": [text, 12, 1000.0, True, None]}
    assert yaml12.load(yaml12.dump(document)) == document


APP = """\
namespace: demo
base: &base
  retries: {attempts: 2}
schedules:
  a.b:
    workflow: x
  nightly:
    <<: *base
    workflow: clean
    trigger:
      type: all
      triggers:
        - type: time
          expression: 0 5 * * *
        - {type: partition, dataset: flights}
"""


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("namespace", 1),
        ("schedules.nightly", 7),
        ("schedules.nightly.workflow", 9),
        ("schedules.nightly.trigger.triggers.0.expression", 14),
        ("schedules.nightly.trigger.triggers.1.dataset", 15),
        ("schedules.a.b", 5),
        ("schedules.a.b.workflow", 6),
        ("schedules.nightly.retries.attempts", 3),
        ("schedules.nightly.zone", 7),
        ("schedules.nightly.trigger.triggers.7", 12),
        ("dags", None),
    ],
)
def test_a_field_is_found_by_its_line(tmp_path: Path, field: str, line: int | None) -> None:
    assert from_file(tmp_path, APP).line_of(field) == line


def test_a_field_of_a_json_file_has_its_line_too(tmp_path: Path) -> None:
    path = tmp_path / "app.json"
    path.write_text('{\n\t"namespace": "demo",\n\t"schedules": {\n\t\t"nightly": {"zone": "CE\\/T"}\n\t}\n}\n')
    assert documents.source(str(path)).line_of("schedules.nightly.zone") == 4


def test_a_placeholder_without_a_value_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage) as wrong:
        from_file(tmp_path, "a: ${one}x\nb: ['y${one}', '${one}']\n")
    assert [problem.field for problem in wrong.value.problems] == [f"{tmp_path / 'app.yaml'}, line 1: a"]


def test_every_placeholder_without_a_value_is_told(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage) as wrong:
        from_file(tmp_path, "a: ${one}\nb:\n  - ${two}\n")
    answer = [(problem.field, problem.message) for problem in wrong.value.problems]
    path = tmp_path / "app.yaml"
    assert answer == [
        (f"{path}, line 1: a", "expected a value for the placeholder ${one}, got none"),
        (f"{path}, line 3: b.0", "expected a value for the placeholder ${two}, got none"),
    ]


def test_every_repeated_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage) as wrong:
        from_file(tmp_path, "a: 1\na: 2\nb: {c: 1, c: 2}\n")
    path = tmp_path / "app.yaml"
    assert [problem.field for problem in wrong.value.problems] == [f"{path}, line 2", f"{path}, line 3"]


def test_an_alias_that_repeats_itself_is_refused(tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"{b}: &{b} [{', '.join(['*' + a] * 10)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True))
    with pytest.raises(WrongUsage, match="expected at most 100000 values"):
        from_file(tmp_path, bomb)
    with pytest.raises(WrongUsage, match="expected an alias of another value"):
        from_file(tmp_path, "a: &a [*a]\n")


def test_merge_keys_that_double_cost_no_time(tmp_path: Path) -> None:
    """Each object merges the one before it twice: without a bound, the last would have 2 ** 60 entries."""
    steps = "".join(f"k{i}: &k{i}\n  <<: [*k{i - 1}, *k{i - 1}]\n" for i in range(1, 60))
    assert from_file(tmp_path, "k0: &k0 {x: 1}\n" + steps).document["k59"] == {"x": 1}


def test_merge_keys_that_copy_too_much_are_refused(tmp_path: Path) -> None:
    entries = ", ".join(f"x{number}: 1" for number in range(1_000))
    many = ", ".join(["*a"] * 200)
    with pytest.raises(WrongUsage, match="copy at most 100000 entries"):
        from_file(tmp_path, f"a: &a {{{entries}}}\nb: {{<<: [{many}]}}\n")


def test_the_nearest_of_merged_values_still_counts(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b], y: 3}\n"
    assert from_file(tmp_path, text).document["c"] == {"x": 1, "y": 3, "z": 2}


def test_a_number_that_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="expected a number that JSON can hold, got inf") as wrong:
        from_file(tmp_path, "a: .inf\n")
    assert wrong.value.field == f"{tmp_path / 'app.yaml'}, line 1: a"
