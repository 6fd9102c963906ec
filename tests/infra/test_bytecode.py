"""A package contains its modules compiled, so no cold start compiles them; and Python accepts the compiled files."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from infra.bytecode import add_bytecode, compiled_name

SOURCES = {
    "app.py": "from parts import word\nprint(word.WORD)\n",
    "parts/__init__.py": "",
    "parts/word.py": "WORD = 'as packed'\n",
    "parts/template.py": "def {name}():\n",
}


def test_every_compiled_module_is_there_twice_and_the_rest_stays(tmp_path: Path) -> None:
    package = _package(tmp_path / "one.zip")
    assert add_bytecode(package) == 3
    names = zipfile.ZipFile(package).namelist()
    assert {compiled_name(name) for name in SOURCES if "template" not in name} <= set(names)
    assert compiled_name("parts/template.py") not in names
    assert add_bytecode(package) == 0, "what is compiled already is not added again"


def test_python_runs_compiled_code_without_reading_source(tmp_path: Path) -> None:
    package = _package(tmp_path / "one.zip")
    add_bytecode(package)
    zipfile.ZipFile(package).extractall(tmp_path / "task")
    (tmp_path / "task/parts/word.py").write_text("WORD = 'compiled again'\n")

    done = subprocess.run([sys.executable, "app.py"], cwd=tmp_path / "task", capture_output=True, text=True, check=True)
    assert done.stdout == "as packed\n"


def test_the_same_code_makes_the_same_package(tmp_path: Path) -> None:
    one, other = _package(tmp_path / "one.zip"), _package(tmp_path / "other.zip")
    add_bytecode(one)
    add_bytecode(other)
    assert one.read_bytes() == other.read_bytes()


def _package(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, source in SOURCES.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), source)
    return path
