"""Fewer searches of the garbage collector during a cold start. `handlers` imports this module before all others.

Imports and boto3's clients create many objects that stay. With Python's thresholds, searches for unreachable ones take
a tenth of the CPU of a cold start, and find next to nothing. One full search amid the imports takes 25 ms."""

from __future__ import annotations

import gc

gc.set_threshold(10_000, 50, 100)
