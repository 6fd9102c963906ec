"""What a user asks for, checked before it is sent: a word out of a few, an instant, an option that comes once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

from sluice.errors import WrongUsage


def one_of(word: str, known: Sequence[str], field: str) -> str:
    """The known word that is meant, in whatever case it came. ``WrongUsage`` if it is none, with the nearest one."""
    for each in known:
        if each.lower() == word.lower():
            return each
    near = get_close_matches(word.lower(), [each.lower() for each in known], n=1)
    meant = next((each for each in known if near and each.lower() == near[0]), None)
    hint = f"did you mean {meant}?" if meant else None
    raise WrongUsage(f"expected one of {', '.join(known)}, got {word!r}", field, hint)


def instant(text: object, field: str) -> str:
    """An instant in UTC, as RFC 3339 has it. One without a zone is refused: nobody can know which one was meant."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        if moment is not None and moment.tzinfo is not None:
            return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        moment = None
    hint = f"add its zone: {moment.isoformat()}Z is that instant in UTC" if moment else None
    raise WrongUsage(f"expected an instant with its zone, such as 2026-11-22T05:00:00Z, got {text!r}", field, hint)


def only(option: str, given: Sequence[str] | None) -> str | None:
    """The value of an option that may come once. Of two, click would drop the first without a word, and a command
    that acts on what a filter chooses would then act on the wrong ones."""
    if given and len(given) > 1:
        raise WrongUsage(f"expected {option} once, got it {len(given)} times", option, "run the command once for each")
    return given[0] if given else None
