"""What the emulator says of a failed driver, from its logs: its exceptions, else its last line, never a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.local.emr_serverless import spark_process

WARNING = "26/11/20 11:56:30 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform\n"


@pytest.mark.parametrize(
    ("stdout", "stderr", "said"),
    [
        ("Traceback (most recent call last):\n  File x\nValueError: no rows\n", WARNING, "ValueError: no rows"),
        ("read 7 rows\nthe file is empty\n", WARNING, "the file is empty"),
        ("", f"{WARNING}no such class: Job\n{WARNING}", "no such class: Job"),
        ("", WARNING, ""),
    ],
)
def test_a_failed_driver_is_never_explained_by_a_warning(tmp_path: Path, stdout: str, stderr: str, said: str) -> None:
    (tmp_path / "stdout").write_text(stdout)
    (tmp_path / "stderr").write_text(stderr)
    assert spark_process.last_exceptions(tmp_path) == said
