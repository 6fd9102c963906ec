"""Jobs run on the Python of EMR Serverless, which is older than Sluice's Python.

EMR 7 runs 3.9 unless a custom image or archive contains another version:
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [*sorted((ROOT / "jobs").glob("*.py")), ROOT / "job_library" / "sluice_job.py"]
NEWER = "import datetime\n\nat = datetime.datetime.now(datetime.UTC)\npairs = list(zip([1], [2], strict=True))\n"


def needs(*paths: Path) -> subprocess.CompletedProcess[str]:
    vermin = [sys.executable, Path(sys.executable).with_name("vermin"), "--target=3.9-", "--no-tips", "--violations"]
    return subprocess.run([*vermin, *paths], capture_output=True, text=True)


def test_every_job_and_the_run_context_run_on_the_python_of_emr() -> None:
    done = needs(*FILES)
    assert done.returncode == 0, done.stdout


def unions(tree: ast.AST) -> Iterator[int]:
    """The lines that evaluate a union of types such as ``int | None``, outside of annotations, which are texts."""
    for child in ast.iter_child_nodes(tree):
        annotation = getattr(tree, "annotation", None), getattr(tree, "returns", None)
        if any(child is each for each in annotation):
            continue
        if isinstance(child, ast.BinOp) and isinstance(child.op, ast.BitOr):
            sides = [side.id for side in (child.left, child.right) if isinstance(side, ast.Name)]
            nothing = any(isinstance(side, ast.Constant) and side.value is None for side in (child.left, child.right))
            if nothing or set(sides) & {"int", "str", "float", "bool", "bytes", "dict", "list", "tuple", "set"}:
                yield child.lineno
        yield from unions(child)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_job_parses_and_is_typed_as_python_3_9(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    assert list(unions(tree)) == []
    assert "from __future__ import annotations" in path.read_text()


def test_a_union_of_types_at_run_time_is_found() -> None:
    text = "def f(x: int | None) -> str | None:\n    return isinstance(x, int | str)\nA = int | None\n"
    assert list(unions(ast.parse(text))) == [2, 3]


@pytest.mark.parametrize("code", ["datetime.UTC", "strict"])
def test_a_feature_that_emr_python_lacks_is_reported(tmp_path: Path, code: str) -> None:
    job = tmp_path / "job.py"
    job.write_text("\n".join(line for line in NEWER.splitlines() if "import" in line or code in line))
    done = needs(job)
    assert done.returncode != 0, done.stdout
