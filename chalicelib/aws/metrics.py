"""Metrics in CloudWatch's embedded metric format: log lines of a Lambda, which CloudWatch reads as metrics.

They cost no call. Values are collected during an invocation and written at its end: one line for all metrics without a
reason, and one for each reason. A metric with more than a hundred values takes further lines.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from chalicelib.core.runs.metrics import NAMESPACE, Measure
from chalicelib.log import logger


class EmfMetrics:
    """Implements `ports.Metrics`. ``stage`` is a dimension of all metrics."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._kept: dict[str, list[tuple[Measure, float]]] = {}

    def add(self, measure: Measure, value: float, reason: str = "") -> None:
        self._kept.setdefault(reason, []).append((measure, value))

    def flush(self) -> None:
        """Write the values since the last flush; nothing if there are none."""
        kept, self._kept = self._kept, {}
        for reason, measured in kept.items():
            try:
                self._write(reason, measured)
            except Exception:  # the work is done; a lost metric must not fail it
                logger.exception("metrics not written", extra={"size": len(measured)})

    def _write(self, reason: str, measured: list[tuple[Measure, float]]) -> None:
        dimensions = {"stage": self._stage} | ({"reason": reason} if reason else {})
        # The service is empty; otherwise Powertools adds a dimension of that name.
        written = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, service="", default_dimensions=dimensions)
        for measure, value in measured:
            written.add_metric(measure.name, measure.unit, value)
        if written.metric_set:  # Powertools itself writes whenever a metric has a hundred values
            written.flush_metrics()
