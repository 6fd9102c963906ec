"""The types of leaves, constraints and targets by their registries, and the kinds of writes, for tests of these lists.
`tests/core/triggers/test_registry.py` lists those of leaves by hand.
"""

from __future__ import annotations

from chalicelib.core import writes
from chalicelib.core.constraints.registry import CONSTRAINTS
from chalicelib.core.documents import types_of
from chalicelib.core.limits import writes as limit_writes
from chalicelib.core.targets.registry import TARGETS
from chalicelib.core.triggers.gathering import GATHERING
from chalicelib.core.triggers.registry import GIVEN, LEAVES

LEAF_TYPES = [kind for leaf in LEAVES for kind in types_of(leaf)]
GATHERING_TYPES = [kind for leaf in GATHERING for kind in types_of(leaf)]  # those that quiet and absent may contain
GIVEN_TYPES = [kind for given in GIVEN for kind in types_of(given)]  # those for which a dry run accepts an event
CONSTRAINT_TYPES = [kind for constraint in CONSTRAINTS for kind in types_of(constraint)]
TARGET_TYPES = [kind for target in TARGETS for kind in types_of(target)]
WRITES = sorted(
    {
        each
        for each in (*vars(writes).values(), *vars(limit_writes).values())
        if isinstance(each, type) and issubclass(each, writes.Write) and each is not writes.Write
    },
    key=lambda kind: kind.__name__,
)
