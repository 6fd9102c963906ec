"""App documents in files: placeholders, and mistakes that are reported with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice.documents import load
from sluice.errors import WrongUsage


def write(folder: Path, text: str, name: str = "app.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_yaml_and_json_are_the_same_documents(tmp_path: Path) -> None:
    expected = {"namespace": "demo", "app": "flights", "datasets": {"flights": {"keys": ["year"], "count": 1}}}
    yaml = "namespace: demo\napp: flights\ndatasets: {flights: {keys: [year], count: 1}}\n"
    json = '{"namespace": "demo", "app": "flights", "datasets": {"flights": {"keys": ["year"], "count": 1}}}'
    assert load(write(tmp_path, yaml)) == expected
    assert load(write(tmp_path, json, "app.json")) == expected


def test_placeholders_are_filled_in_texts_wherever_they_are(tmp_path: Path) -> None:
    path = write(tmp_path, "a: s3://${bucket}/x\nb: [$bucket, {c: '${day}'}]\nn: 1\n")
    assert load(path, {"bucket": "lake", "day": "1"}) == {"a": "s3://lake/x", "b": ["lake", {"c": "1"}], "n": 1}


def test_two_dollar_signs_become_one(tmp_path: Path) -> None:
    assert load(write(tmp_path, "a: costs 5$$, ${x}\nb: $${x}\n"), {"x": "y"}) == {"a": "costs 5$, y", "b": "${x}"}


def test_a_value_is_text_and_is_not_read_as_yaml(tmp_path: Path) -> None:
    assert load(write(tmp_path, "a: ${x}\n"), {"x": "[1, 2]: {"}) == {"a": "[1, 2]: {"}


def test_keys_are_not_changed(tmp_path: Path) -> None:
    assert load(write(tmp_path, "${x}: 1\n"), {"x": "y"}) == {"${x}": 1}


def test_an_unknown_placeholder_is_named_with_its_field(tmp_path: Path) -> None:
    path = write(tmp_path, "workflows:\n  clean:\n    arguments: [a, '${buckett}']\n")
    with pytest.raises(WrongUsage) as wrong:
        load(path, {"bucket": "lake"})
    assert wrong.value.message == "expected a value for the placeholder ${buckett}, got none"
    assert wrong.value.field == f"{path}, line 3: workflows.clean.arguments.1"
    assert "--set buckett=" in str(wrong.value.hint)
    assert "or is --set bucket a typing error?" in str(wrong.value.hint)


def test_a_single_dollar_sign_is_an_error_with_its_correction(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage) as wrong:
        load(write(tmp_path, "a: 5$\n"))
    assert wrong.value.hint == "write $$ for a dollar sign"


def test_bad_yaml_is_reported_with_its_row(tmp_path: Path) -> None:
    path = write(tmp_path, "namespace: demo\napp: flights\n  x: [1\n")
    with pytest.raises(WrongUsage, match="expected YAML") as wrong:
        load(path)
    assert wrong.value.field == f"{path}, line 3"


def test_bad_json_is_reported_with_its_row(tmp_path: Path) -> None:
    path = write(tmp_path, '{\n"namespace": "demo",\n}', "app.json")
    with pytest.raises(WrongUsage, match="expected JSON") as wrong:
        load(path)
    assert str(wrong.value.field).startswith(f"{path}, line ")


def test_a_repeated_name_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "schedules:\n  clean: {a: 1}\n  clean: {a: 2}\n")
    with pytest.raises(WrongUsage, match="'clean' a second time") as wrong:
        load(path)
    assert wrong.value.field == f"{path}, line 3"


def test_yaml_anchors_and_merges_work(tmp_path: Path) -> None:
    path = write(tmp_path, "base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\n")
    assert load(path)["one"] == {"x": 1, "y": 3}


def test_a_date_stays_text(tmp_path: Path) -> None:
    assert load(write(tmp_path, "day: 2013-01-01\nat: 2013-01-01T00:00:00Z\n")) == {
        "day": "2013-01-01",
        "at": "2013-01-01T00:00:00Z",
    }


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words\n"])
def test_an_invalid_document_is_wrong_usage(tmp_path: Path, text: str) -> None:
    with pytest.raises(WrongUsage, match="expected an app document"):
        load(write(tmp_path, text))


def test_a_python_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="expected YAML"):
        load(write(tmp_path, "a: !!python/object/apply:os.getcwd []\n"))
    with pytest.raises(WrongUsage, match="got bytes"):
        load(write(tmp_path, "a: !!binary aGVsbG8=\n"))


def test_an_unreadable_file_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="No such file"):
        load(str(tmp_path / "missing.yaml"))
    with pytest.raises(WrongUsage, match="Is a directory"):
        load(str(tmp_path))
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WrongUsage, match="UTF-8"):
        load(str(tmp_path / "bytes.yaml"))
