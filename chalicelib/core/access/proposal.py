"""The allow-list that covers what a namespace uses, before the installation has several namespaces (O14)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from chalicelib.core.access.allowed import MAX_PATTERNS, RULES, Allowed, Installation, Kind, Named, check, resolved
from chalicelib.core.access.queue_urls import OWN
from chalicelib.core.errors import SluiceError


def refusal(named: Named, allowed: Allowed | None, namespace: str, installation: Installation) -> SluiceError | None:
    """Why a namespace may not use a thing, or None."""
    try:
        check([named], allowed, namespace, installation)
    except SluiceError as error:
        return error
    return None


def is_newly_refused(named: Named, allowed: Allowed | None, namespace: str, alone: Installation) -> bool:
    """Whether a namespace may use a thing now, and may not once the installation has several namespaces."""
    if refusal(named, allowed, namespace, alone) is not None:
        return False
    return refusal(named, allowed, namespace, replace(alone, is_shared=True)) is not None


def propose(
    uses: Iterable[Named], allowed: Allowed | None, namespace: str, alone: Installation, partition: str
) -> dict[str, Any]:
    """The present list with a list for each kind of which a use would be refused. That list has all uses of the kind,
    by their exact names, because it takes the place of the rule of names. What no pattern can name is left out."""
    uses = list(uses)
    wanted = {each.kind for each in uses if is_newly_refused(each, allowed, namespace, alone)}
    present = allowed.model_dump(mode="json", exclude_none=True) if allowed is not None else {}
    return present | {kind: _patterns(kind, uses, alone, partition) for kind in RULES if kind in wanted}


def _patterns(kind: Kind, uses: Iterable[Named], alone: Installation, partition: str) -> list[str]:
    named = {_pattern(resolved(each, alone), partition) for each in uses if each.kind == kind}
    found = sorted(pattern for pattern in named if re.fullmatch(RULES[kind].form, pattern, re.ASCII))
    if kind == "entry_points" and len(found) > MAX_PATTERNS:
        found = sorted({f"{address.rpartition('/')[0]}/" for address in found})
    return found[:MAX_PATTERNS]


def _pattern(value: str, partition: str) -> str:
    """A value as a pattern: a pattern has the partition, and may leave the region open."""
    return f"arn:{partition}:{value.removeprefix(f'arn:{OWN}:')}" if value.startswith(f"arn:{OWN}:") else value
