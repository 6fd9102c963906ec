"""The page of the builder: its Python and its YAML are one document."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sluice import builder, yaml12

PAGE = (Path(__file__).parents[2] / "docs" / "builder.md").read_text()


def test_the_python_and_the_yaml_of_the_page_are_equal() -> None:
    [python, _, of_dag], [yaml, dag] = (
        re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.S) for kind in ("python", "yaml")
    )
    made: dict[str, Any] = {}
    exec(python, made)
    assert made["flights"].document() == yaml12.load(yaml)
    exec(of_dag, made)
    assert made["flights"].add(made["nightly"]).document()["dags"]["nightly"] == yaml12.load(dag)


def test_the_message_of_the_page_is_a_file_for_the_command_line() -> None:
    made: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)[1], made)
    assert yaml12.load(made["text"]) == {"schedule": "0 3 * * *", "zone": "Europe/Paris", "data": {"keep": 7}}


def test_each_function_that_the_page_names_exists() -> None:
    table = PAGE.partition("## Names")[2]
    functions = set(re.findall(r"`(\w+)\(", table)) | {
        "app",
        "dataset",
        "policy",
        "pool",
        "workflow",
        "schedule",
        "dag",
    }
    methods = set(re.findall(r"`\.(\w+)\(", table))
    assert {name for name in functions if not callable(getattr(builder, name, None))} == set()
    assert {name for name in methods if not hasattr(builder.Schedule, name)} == set()
