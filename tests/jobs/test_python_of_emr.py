"""Jobs run on the Python of EMR Serverless, which is older than Sluice's Python.

EMR 7 runs 3.9 unless a custom image or archive contains another version:
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-python-libraries.html
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

JOBS = Path(__file__).parents[2] / "jobs"
NEWER = "import datetime\n\nat = datetime.datetime.now(datetime.UTC)\npairs = list(zip([1], [2], strict=True))\n"


def needs(*paths: Path) -> subprocess.CompletedProcess[str]:
    vermin = [sys.executable, Path(sys.executable).with_name("vermin"), "--target=3.9-", "--no-tips", "--violations"]
    return subprocess.run([*vermin, *paths], capture_output=True, text=True)


def test_every_job_and_the_run_context_run_on_the_python_of_emr() -> None:
    done = needs(*sorted(JOBS.glob("*.py")))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("code", ["datetime.UTC", "strict"])
def test_a_feature_that_emr_python_lacks_is_reported(tmp_path: Path, code: str) -> None:
    job = tmp_path / "job.py"
    job.write_text("\n".join(line for line in NEWER.splitlines() if "import" in line or code in line))
    done = needs(job)
    assert done.returncode != 0, done.stdout
