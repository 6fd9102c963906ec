"""The kinds of leaves that there are. A new kind is a file of its own, and a name here."""

from __future__ import annotations

from chalicelib.core.triggers.absent import AbsentTrigger
from chalicelib.core.triggers.elapsed import ElapsedTrigger
from chalicelib.core.triggers.gathering import GATHERING
from chalicelib.core.triggers.leaf import Leaf
from chalicelib.core.triggers.quiet import QuietTrigger
from chalicelib.core.triggers.time import TimeTrigger

LEAVES: tuple[type[Leaf], ...] = (TimeTrigger, *GATHERING, QuietTrigger, ElapsedTrigger, AbsentTrigger)
