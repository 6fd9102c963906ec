"""What has been approved of a job, and by whom (C16)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chalicelib.core.constraints.constraint import Approval
from chalicelib.core.documents import Document
from chalicelib.core.instants import iso


def approvals_of(constraints: Iterable[Document]) -> list[Approval]:
    return [each for each in constraints if isinstance(each, Approval)]


def told(said: Mapping[str, Any]) -> str:
    """Who approved, when, and with which words."""
    words = f": {said['why']}" if said.get("why") else ""
    return f"by {said['by']} at {iso(said['at'])}{words}"


def words_of(approvals: Mapping[str, Mapping[str, Any]]) -> str:
    """All of a job's, behind what fired it."""
    return "".join(f"; approved {told(approvals[key])}" for key in sorted(approvals))
