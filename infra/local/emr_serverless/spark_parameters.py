"""Parses `sparkSubmitParameters`, a command line in one string, and `spark-defaults` of configurationOverrides."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .records import JobRun

# Flags that are aliases of a property. Local mode has no executors, so most only count towards capacity.
_PROPERTY_FLAGS = {
    "--driver-cores": "spark.driver.cores",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--executor-cores": "spark.executor.cores",
    "--executor-memory": "spark.executor.memory",
    "--num-executors": "spark.executor.instances",
}
# Flags and properties that choose a cluster. They are ignored: the emulator is the cluster.
_CLUSTER_FLAGS = frozenset({"--master", "--deploy-mode", "--queue", "--total-executor-cores"})
_CLUSTER_PROPERTIES = frozenset({"spark.master", "spark.submit.deployMode"})
_BARE_FLAGS = frozenset({"--verbose", "-v", "--supervise"})


@dataclass(frozen=True)
class SubmitParameters:
    """Properties for `--conf`, and the other flags (`--py-files`, `--class`, ...) in their order."""

    properties: Mapping[str, str]
    flags: tuple[tuple[str, str], ...]


def of_run(run: JobRun) -> SubmitParameters:
    """The parameters of a run; its own `--conf` overrides its `spark-defaults`. Raises ValueError."""
    parsed = parse(run.spark_submit.get("sparkSubmitParameters") or "")
    overrides = run.request.get("configurationOverrides") or {}
    properties = {**_spark_defaults(overrides), **parsed.properties}
    return SubmitParameters(properties, parsed.flags)


def parse(text: str) -> SubmitParameters:
    """The parameters in a string. Raises ValueError unless it is a list of `--flag value` pairs."""
    properties: dict[str, str] = {}
    flags: list[tuple[str, str]] = []
    for flag, value in _pairs(text):
        if flag in ("--conf", "-c"):
            name, equals, setting = value.partition("=")
            if not equals:
                raise ValueError(f"sparkSubmitParameters: expected --conf property=value, got --conf {value}")
            properties[name.strip()] = setting
        elif flag in _PROPERTY_FLAGS:
            properties[_PROPERTY_FLAGS[flag]] = value
        elif flag not in _CLUSTER_FLAGS:
            flags.append((flag, value))
    for name in _CLUSTER_PROPERTIES:
        properties.pop(name, None)
    return SubmitParameters(properties, tuple(flags))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    tokens = iter(shlex.split(text))
    for token in tokens:
        if not token.startswith("-"):
            raise ValueError(f"sparkSubmitParameters: expected a flag such as --conf, got {token!r}")
        flag, equals, value = token.partition("=")
        if token in _BARE_FLAGS:
            continue
        if equals:
            yield flag, value
            continue
        following = next(tokens, None)
        if following is None:
            raise ValueError(f"sparkSubmitParameters: expected a value after {token}, got the end of the string")
        yield token, following


def _spark_defaults(overrides: Mapping[str, Any]) -> dict[str, str]:
    for configuration in overrides.get("applicationConfiguration") or ():
        if configuration.get("classification") == "spark-defaults":
            given = configuration.get("properties") or {}
            return {name: value for name, value in given.items() if name not in _CLUSTER_PROPERTIES}
    return {}
