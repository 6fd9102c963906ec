"""All settings of the emulator in one record: each has a command-line flag, an environment variable and a default.

The field `max_running` has the flag `--max-running` and the variable `SLUICE_EMR_MAX_RUNNING`, unless the field names
another. The flag overrides the variable, and the variable the default.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from infra.local.rates import Rate

_STATE_DIR = Path(".local/emr")
_SWITCH = {"on": True, "off": False, "1": True, "0": False, "true": True, "false": False}


class BadSetting(Exception):
    """An invalid setting. The message names the expected and the given value, and what to do."""


def _about(about: str, least: float | None = None, most: float | None = None, **more: Any) -> dict[str, Any]:
    return {"about": about, "least": least, "most": most, **more}


def _setting(default: Any, about: str, least: float | None = None, most: float | None = None, **more: Any) -> Any:
    return field(default=default, metadata=_about(about, least, most, **more))


@dataclass(frozen=True)
class Settings:
    """See `python -m infra.local.emr_serverless --help`; names that end in _s are seconds, in _ms milliseconds."""

    host: str = _setting("127.0.0.1", "address to listen on")
    port: int = _setting(4570, "port to listen on; 0 takes a free one", 0, 65535)
    state_dir: Path = field(default=_STATE_DIR, metadata=_about("directory of the database and of running jobs"))
    region: str = _setting("us-east-1", "region in ARNs and events", env="AWS_DEFAULT_REGION")
    account_id: str = _setting("000000000000", "account in ARNs and events")
    endpoint_url: str = _setting("", "address of S3 and Lambda; empty: neither is used", env="AWS_ENDPOINT_URL")
    driver: str = _setting("spark", "driver of jobs: real Spark, or an instant stand-in", choices=("spark", "instant"))
    instant_ms: int = _setting(20, "milliseconds that a run of the instant driver takes", 0)
    spark_master: str = _setting("local[2]", "master of every Spark application")
    class_archive: bool = _setting(True, "share Java classes between runs (built once, in the background)")
    max_running: int = _setting(2, "concurrent runs on this machine, over all applications", 1)
    max_vcpus: int = _setting(32, "capacity of an application that has no maximumCapacity of its own", 1)
    start_tps: float = _setting(1.0, "StartJobRun per second; 0: no limit", 0)
    start_burst: int = _setting(25, "burst of StartJobRun", 1)
    cancel_tps: float = _setting(1.0, "CancelJobRun per second; 0: no limit", 0)
    cancel_burst: int = _setting(25, "burst of CancelJobRun", 1)
    list_tps: float = _setting(1.0, "ListJobRuns per second; 0: no limit", 0)
    list_burst: int = _setting(25, "burst of ListJobRuns", 1)
    get_tps: float = _setting(10.0, "GetJobRun per second; 0: no limit", 0)
    get_burst: int = _setting(50, "burst of GetJobRun", 1)
    run_state_function: str = _setting(
        "", "Lambda to invoke with every state change; empty: none", env="SLUICE_RUN_STATE_FUNCTION"
    )
    drop_events: float = _setting(0.0, "share of state-change events that is dropped", 0, 1)
    minute_s: float = _setting(60.0, "length of a minute of executionTimeoutMinutes; shorten it in tests", 0.001)
    stop_grace_s: float = _setting(5.0, "seconds from SIGTERM to SIGKILL of a Spark process group", 0)
    keep_run_dirs: bool = _setting(False, "keep the directory of each run for inspection")
    mirror_bucket_roots: bool = _setting(False, "allow a job to name a whole bucket, which is then downloaded")

    @property
    def rates(self) -> Mapping[str, Rate]:
        """The request rates by API."""
        return {
            "StartJobRun": Rate(self.start_tps, self.start_burst),
            "CancelJobRun": Rate(self.cancel_tps, self.cancel_burst),
            "ListJobRuns": Rate(self.list_tps, self.list_burst),
            "GetJobRun": Rate(self.get_tps, self.get_burst),
        }

    def __post_init__(self) -> None:
        if self.run_state_function and not self.endpoint_url:
            raise BadSetting(
                f"expected an endpoint to invoke {self.run_state_function!r} at, got none: set --endpoint-url or "
                "AWS_ENDPOINT_URL to the local cloud, or leave --run-state-function empty"
            )


def read(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Settings from the command line and the environment. Raises BadSetting."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.local.emr_serverless",
        description="EMR Serverless on a laptop: AWS's wire format and promises, jobs run by real Spark.",
    )
    for one in fields(Settings):
        about = f"{one.metadata['about']} (default {_shown(one.default)}, environment {_variable(one)})"
        parser.add_argument(_flag(one), help=about, metavar=_metavar(one))
    given = vars(parser.parse_args(arguments))
    values: dict[str, Any] = {}
    for one in fields(Settings):
        source, text = _flag(one), given[one.name]
        if text is None:
            source, text = _variable(one), environment.get(_variable(one), "")
            if text == "":
                continue
        values[one.name] = _converted(one, source, text)
    return Settings(**values)


def _flag(one: Any) -> str:
    return "--" + str(one.name).replace("_", "-")


def _variable(one: Any) -> str:
    return str(one.metadata.get("env", "SLUICE_EMR_" + one.name.upper()))


def _metavar(one: Any) -> str:
    if isinstance(one.default, bool):
        return "on|off"
    return "|".join(one.metadata.get("choices", ())) or str(type(one.default).__name__).replace("Posix", "").upper()


def _shown(default: Any) -> str:
    return ("on" if default else "off") if isinstance(default, bool) else repr(str(default))


def _converted(one: Any, source: str, text: str) -> Any:
    kind = type(one.default)
    choices = one.metadata.get("choices")
    try:
        if isinstance(one.default, bool):
            return _SWITCH[text.lower()]
        value = Path(text) if isinstance(one.default, Path) else kind(text)
    except (KeyError, ValueError):
        expected = "on or off" if kind is bool else {int: "a whole number", float: "a number"}.get(kind, "a value")
        raise BadSetting(f"{source}: expected {expected} ({one.metadata['about']}), got {text!r}") from None
    if choices and value not in choices:
        raise BadSetting(f"{source}: expected one of {', '.join(choices)}, got {text!r}")
    least, most = one.metadata["least"], one.metadata["most"]
    if (least is not None and value < least) or (most is not None and value > most):
        bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"
        raise BadSetting(f"{source}: expected a number {bounds} ({one.metadata['about']}), got {text!r}")
    return value
