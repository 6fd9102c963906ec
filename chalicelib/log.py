"""Structured logs: one JSON object a line, with the ids that follow a piece of work through the steps."""

from __future__ import annotations

from aws_lambda_powertools.logging import Logger

logger = Logger(service="sluice", utc=True)
