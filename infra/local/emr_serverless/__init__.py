"""EMR Serverless on a laptop: AWS's wire format and promises, with jobs run by real Spark.

A request goes through `wire` (moto's parsing of the API model) and `job_runs` (what is promised) into the `ledger`, the
one place where a run changes state; `scheduler` decides what starts when, a `driver` runs it. `docs/local-emr.md`
tells what it keeps of AWS and where it differs.
"""

from .server import Emulator
from .settings import BadSetting, Settings

__all__ = ["BadSetting", "Emulator", "Settings"]
