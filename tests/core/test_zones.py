"""Every process takes the rules of time zones from the pinned package, not from the machine."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import tzdata

from chalicelib.core import instants, zones
from chalicelib.core.errors import SluiceError
from chalicelib.core.instants import HOUR, parse_instant
from sluice import zones as of_client
from tests.support import zone_rules

ROOT = Path(__file__).parents[2]
# These alone read the rules: the service, the client, and a job on EMR, which has no other module of Sluice.
READERS = ("chalicelib/core/zones.py", "sluice/zones.py", "job_library/sluice_job.py")
FOLDERS = ("chalicelib", "sluice", "infra", "jobs", "job_library", "benchmarks", "examples")
OTHER_RULES = ("pytz", "tzlocal", "dateutil", "pendulum", "arrow")
ANOTHER = """
import sys, zoneinfo
zoneinfo.reset_tzpath(to=[sys.argv[1]])
sys.path.insert(0, "job_library")
import sluice_job
from chalicelib.core import instants
from sluice import zones
from datetime import datetime
for zone in (instants.zone("America/Vancouver"), zones.zone("America/Vancouver"), sluice_job.zone("America/Vancouver")):
    print(datetime(2026, 12, 1, 9, tzinfo=zone).utcoffset())
print(datetime(2026, 12, 1, 9, tzinfo=zoneinfo.ZoneInfo("America/Vancouver")).utcoffset())
"""


def test_no_process_asks_the_zone_database_of_the_machine(tmp_path: Path) -> None:
    """The machine has a database of its own, in which Vancouver is on the time of Moscow."""
    rules = zone_rules.made(tmp_path, "old", {"America/Vancouver": zone_rules.hours(3)})
    command = [sys.executable, "-c", ANOTHER, str(rules.folder / "zoneinfo")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *own, of_machine = done.stdout.splitlines()
    expected = datetime(2026, 12, 1, 9, tzinfo=zones.zone("America/Vancouver")).utcoffset()
    assert (own, of_machine) == ([str(expected)] * 3, "3:00:00")


def test_no_other_module_makes_a_zone() -> None:
    found = []
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        name = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text())):
            calls = isinstance(node, ast.Call) and re.search(r"\bZoneInfo\b|\btzlocal\b", ast.unparse(node.func))
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if (calls and name not in READERS) or any(each.split(".")[0] in OTHER_RULES for each in modules):
                found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert found == [], "take zones from chalicelib/core/instants.py, or from sluice/zones.py in the client"


def test_the_tests_compare_with_the_same_rules() -> None:
    wall = datetime(2026, 12, 1, 9)
    assert wall.replace(tzinfo=ZoneInfo("America/Vancouver")).utcoffset() == (
        wall.replace(tzinfo=instants.zone("America/Vancouver")).utcoffset()
    )


def test_service_client_and_lambda_have_one_version() -> None:
    pins = {name: (ROOT / name).read_text() for name in ("requirements.txt", "requirements-lambda.lock")}
    pinned = {re.search(r"^tzdata==(\S+)", text, re.MULTILINE)[1] for text in pins.values()}
    client = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert pinned == {tzdata.__version__}
    assert f"tzdata>={tzdata.__version__}" in client, "a preview of sluice.testing is as new as the service"
    assert zones.version() == tzdata.IANA_VERSION


def test_service_and_client_have_the_same_zones() -> None:
    names = (Path(tzdata.__file__).parent / "zones").read_text().split()
    wall = datetime(2027, 7, 1, 12)
    for name in names:
        offsets = {wall.replace(tzinfo=one(name)).utcoffset() for one in (zones.zone, of_client.zone)}
        assert len(offsets) == 1, name
    assert "Europe/Paris" in names


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../zones", "/etc/localtime", "europe/paris", "Europe", "a\0b"])
def test_what_is_no_name_of_a_zone_is_refused(name: str) -> None:
    assert (zones.zone(name), of_client.zone(name)) == (None, None)
    with pytest.raises(SluiceError, match="expected a time zone such as Europe/Paris or UTC"):
        instants.zone(name)


def test_made_rules_have_their_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change = parse_instant("2026-11-01T09:00:00Z")
    rules = zone_rules.made(tmp_path, "2026y", {"America/Vancouver": zone_rules.hours(-7, (change, -8))})
    zone_rules.use(monkeypatch, rules)
    zone: Any = instants.zone("America/Vancouver")
    shown = [datetime.fromtimestamp(at / 1000, zone).utcoffset().total_seconds() for at in (change - 1000, change)]
    assert ([each / 3600 for each in shown], zones.version()) == ([-7, -8], "2026y")
    assert datetime.fromtimestamp((change + 365 * 24 * HOUR) / 1000, zone).hour == 1
