"""What a leaf has gathered, whether that is enough, and the words that tell it.

`stand` is a pure question of a leaf, its progress and ``now``; the words that ``why`` shows are made here.
"""

from __future__ import annotations


def count_of(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
