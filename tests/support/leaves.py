"""The types of leaves, for tests of lists of them. `tests/core/triggers/test_registry.py` lists them by hand."""

from __future__ import annotations

from chalicelib.core.documents import types_of
from chalicelib.core.triggers.gathering import GATHERING
from chalicelib.core.triggers.registry import GIVEN, LEAVES

LEAF_TYPES = [kind for leaf in LEAVES for kind in types_of(leaf)]
GATHERING_TYPES = [kind for leaf in GATHERING for kind in types_of(leaf)]  # those that quiet and absent may contain
GIVEN_TYPES = [kind for given in GIVEN for kind in types_of(given)]  # those for which a dry run accepts an event
