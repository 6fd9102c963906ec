"""Metrics in CloudWatch's embedded metric format: lines in the log of a Lambda, from which CloudWatch takes them.

They cost no call. They are kept during an invocation and written at its end: one line for all metrics without a reason
and one for each reason, and more where a crowd has more than a hundred values of a metric.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from chalicelib.core.runs.metrics import NAMESPACE, Measure
from chalicelib.log import logger


class EmfMetrics:
    """Implements `ports.Metrics`. ``stage`` is a dimension of all."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._kept: dict[str, list[tuple[Measure, float]]] = {}

    def add(self, measure: Measure, value: float, reason: str = "") -> None:
        self._kept.setdefault(reason, []).append((measure, value))

    def flush(self) -> None:
        """Write what was measured since the last time. Nothing is written if there is nothing."""
        kept, self._kept = self._kept, {}
        for reason, measured in kept.items():
            try:
                self._write(reason, measured)
            except Exception:  # the work is done; that it was not measured must not undo it
                logger.exception("not measured", extra={"size": len(measured)})

    def _write(self, reason: str, measured: list[tuple[Measure, float]]) -> None:
        dimensions = {"stage": self._stage} | ({"reason": reason} if reason else {})
        # An empty service, or Powertools adds a dimension of that name.
        written = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, service="", default_dimensions=dimensions)
        for measure, value in measured:
            written.add_metric(measure.name, measure.unit, value)
        if written.metric_set:  # Powertools has written each hundred values of a metric by itself
            written.flush_metrics()
