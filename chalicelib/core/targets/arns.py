"""Parts of the patterns of ARNs that documents of targets check."""

from __future__ import annotations

REGION = r"[a-z]{2}[a-z-]+-\d"
ARN = r"^arn:aws[a-z-]*:"
