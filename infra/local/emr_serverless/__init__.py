"""EMR Serverless on a laptop: AWS's wire format and guarantees, with jobs run by real Spark.

`wire` parses a request (by moto's parser of the API model), and `job_runs` checks it. The `ledger` is the only module
that changes the state of a run. The `scheduler` decides which run starts when, and a `driver` runs it.
`docs/local-emr.md` lists the behaviour that equals AWS's, and the differences."""

from .server import Emulator
from .settings import BadSetting, Settings

__all__ = ["BadSetting", "Emulator", "Settings"]
