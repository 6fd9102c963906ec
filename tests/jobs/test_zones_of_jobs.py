"""A job computes with the rules of the package ``tzdata`` if it has it, else with those of its image."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import sluice_job

from tests.support import zone_rules

ROOT = Path(__file__).parents[2]


def test_a_job_takes_the_rules_from_the_package_it_has(tmp_path: Path) -> None:
    """``py_files`` may have a zip of the package. Without the package, the rules are those of the image."""
    rules = zone_rules.made(tmp_path, "shipped", {"Europe/Paris": zone_rules.hours(7)})
    shipped = tmp_path / "tzdata.zip"
    with zipfile.ZipFile(shipped, "w") as archive:
        for name in ("tzdata/__init__.py", "tzdata/zoneinfo/__init__.py", "tzdata/zoneinfo/Europe/__init__.py"):
            archive.writestr(name, "")
        archive.write(rules.folder / "zoneinfo/Europe/Paris", "tzdata/zoneinfo/Europe/Paris")
    command = (
        "import sluice_job, datetime; print(datetime.datetime(2026, 1, 1, tzinfo=sluice_job.zone('Europe/Paris')))"
    )
    own = rules.folder / "zoneinfo"

    def shown(*path: Path, tzpath: str = "") -> str:
        variables = {"PYTHONPATH": ":".join(map(str, path)), "PYTHONTZPATH": tzpath}
        done = subprocess.run([sys.executable, "-S", "-c", command], env=variables, capture_output=True, text=True)
        return done.stdout.strip() or done.stderr.strip().splitlines()[-1]

    library = ROOT / "job_library"
    assert shown(shipped, library) == "2026-01-01 00:00:00+07:00"
    assert shown(library, tzpath=str(own)) == "2026-01-01 00:00:00+07:00"
    assert "expected a time zone such as Europe/Paris" in shown(library)


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../zones", "/etc/localtime", "Europe", "a\0b"])
def test_what_is_no_name_of_a_zone_is_refused(name: str) -> None:
    with pytest.raises(sluice_job.ContextError, match="expected a time zone such as Europe/Paris"):
        sluice_job.zone(name)
