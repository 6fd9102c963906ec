"""Parts of the regular expressions with which the documents of targets check ARNs."""

from __future__ import annotations

REGION = r"[a-z]{2}[a-z-]+-\d"
ARN = r"^arn:aws[a-z-]*:"
