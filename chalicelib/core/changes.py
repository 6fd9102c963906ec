"""`replace` of the standard library, three times as fast for values with slots.

`dataclasses.replace` hands each field to the initializer by its name, which takes tens of microseconds for a row of
seventy fields. A job makes twenty copies of rows until it is a run that has ended. Here the fields are copied from slot
to slot. The modules through which each message of a burst goes use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # arguments are checked as those of the standard library
    from dataclasses import replace
else:
    import dataclasses
    from functools import cache
    from operator import attrgetter
    from types import MemberDescriptorType

    def replace(value, /, **changes):
        """A copy of a value with other contents of some fields. Raises TypeError for a name that is no field."""
        slots = _slots(type(value))
        if slots is None:
            return dataclasses.replace(value, **changes)
        read, setters = slots
        made = object.__new__(type(value))
        for put, content in zip(setters.values(), read(value), strict=True):
            put(made, content)
        for name, content in changes.items():
            if name not in setters:
                raise TypeError(f"expected fields of {type(value).__name__}, got {name}")
            setters[name](made, content)
        return made

    @cache
    def _slots(kind):
        """What reads all fields of a class at once, and what sets each. None for a class whose fields are no slots, or
        whose initializer does more than to set them."""
        names = [each.name for each in dataclasses.fields(kind)]
        slots = {name: getattr(kind, name, None) for name in names}
        simple = all(isinstance(slot, MemberDescriptorType) for slot in slots.values())
        if len(names) < 2 or not simple or hasattr(kind, "__post_init__"):
            return None
        return attrgetter(*names), {name: slot.__set__ for name, slot in slots.items()}
