"""The folder of an export."""

from __future__ import annotations

import stat
from pathlib import Path

from sluice.operations.files import Folder


def test_only_the_owner_reads_an_export(tmp_path: Path) -> None:
    place = tmp_path / "export"
    Folder(place).put("manifest.json", "{}")
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()] == [0o600]
    assert Folder(place).text("manifest.json") == "{}"


def test_a_file_that_a_broken_export_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".a.part").write_text("half")
    (tmp_path / ".a.part").chmod(0o644)
    Folder(tmp_path).put("a", "whole")
    assert (tmp_path / "a").read_text() == "whole"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
