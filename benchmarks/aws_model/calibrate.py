"""Calibration: assumptions that reproduce what `make smoke` has measured on a real account.

Smoke measures whole ways, not single calls. Three of its figures set three assumptions:

- the lateness of a burst of 1,000 events (`late_ms`): the factor of all durations of calls
- the time from the put of an object to the start of its run (`start_ms`): the notification of S3
- the answer of the health route (`answer_ms`): what API Gateway and the network add to a request
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.aws_model import scenarios
from benchmarks.aws_model.assumptions import Assumptions
from benchmarks.aws_model.invocation import Cpu
from benchmarks.aws_model.region import Setup

JOBS = 1_000  # as smoke's burst
ROUNDS = 5
MIN_FACTOR, MAX_FACTOR = 0.1, 20.0  # of the factor
CLOSE = 0.02


def read(file: Path) -> Mapping[str, Any]:
    """The checks of a report of smoke: the last line of its output, or a file with that alone. Raises ValueError for
    any other content, and for a smoke that has failed."""
    lines = file.read_text().strip().splitlines()
    try:
        report = json.loads(lines[-1])
        checks: Mapping[str, Any] = report["checks"]
        passed = report["smoke"] == "ok"
    except (IndexError, KeyError, TypeError, ValueError):
        raise ValueError(f"expected the JSON that `make smoke` prints as its last line, got {file}") from None
    if not passed:
        raise ValueError(f"expected a smoke that passed, got {report['smoke']!r} in {file}")
    return checks


def calibrated(
    assumed: Assumptions, checks: Mapping[str, Any], cpu: Cpu, seed: int, jobs: int = JOBS
) -> tuple[Assumptions, dict[str, Any]]:
    """The assumptions that fit these checks, and what was changed. Raises ValueError if the burst is missing."""
    burst = next((figures for name, figures in checks.items() if name.startswith("burst")), None)
    if not isinstance(burst, Mapping) or "late_ms" not in burst:
        raise ValueError("expected a burst with late_ms among the checks of smoke, got none")
    factor, modelled = _factor(assumed, float(burst["late_ms"]), cpu, seed, jobs)
    changes: dict[str, Any] = {"latency_factor": round(factor, 3)}
    changed: dict[str, Any] = {"burst_late_ms": {"measured": burst["late_ms"], "modelled": modelled}}
    answered = checks.get("health", {}).get("answer_ms")
    if answered is not None:
        changes["api_overhead_ms"] = float(answered)
    begun = checks.get("partition to Spark", {}).get("start_ms")
    if begun is not None:
        fitted = assumed.with_changes(changes)
        inside = scenarios.event(Setup(fitted, seed), cpu, 15)["notified_to_start_ms"]["p50"]
        changes["s3_notification_ms"] = max(1.0, float(begun) - inside)
    return assumed.with_changes(changes), {**changes, **changed}


def _factor(assumed: Assumptions, measured: float, cpu: Cpu, seed: int, jobs: int) -> tuple[float, float]:
    """The factor of all durations that makes the model's burst as late as the measured one, by the secant method."""

    def late(factor: float) -> float:
        setup = Setup(assumed.with_changes({"latency_factor": factor}), seed)
        return float(scenarios.burst_one_schedule(setup, cpu, jobs)["lateness_ms"]["p50"])

    near, far = assumed.latency_factor, assumed.latency_factor * 2.0
    late_near, late_far = late(near), late(far)
    for _ in range(ROUNDS):
        if abs(late_near - measured) > abs(late_far - measured):
            near, far, late_near, late_far = far, near, late_far, late_near
        if abs(late_near - measured) <= CLOSE * measured or late_near == late_far:
            break
        step = (measured - late_near) * (far - near) / (late_far - late_near)
        far, late_far = near, late_near
        near = min(MAX_FACTOR, max(MIN_FACTOR, near + step))
        late_near = late(near)
    return near, late_near
