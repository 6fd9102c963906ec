"""The names and ids in sentences for users, so that a console turns them into links without reading English."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chalicelib.core import ids
from chalicelib.core.why import Mention

# The fields of views that hold sentences.
SENTENCES = ("why", "wakes", "arrived", "missing", "text", "reason", "fired_by")
DIGEST = 20  # characters, at the end of a job id

_ID = re.compile(r"[a-z0-9][\w~-]*(?:\.[\w~-]+){4}", re.ASCII)


def sentences(view: Any, fields: Iterable[str] = SENTENCES) -> Iterator[str]:
    """The sentences of a view and of all views in it."""
    if isinstance(view, Mapping):
        for field, value in view.items():
            if field in fields:
                yield from _texts(value)
            if not isinstance(value, str):
                yield from sentences(value, fields)
    elif isinstance(view, list | tuple):
        for each in view:
            yield from sentences(each, fields)


def found_in(texts: Iterable[str], known: Iterable[Mention]) -> list[Mention]:
    """The mentions that occur in these texts as whole words, the longest first: ``known`` ones, and the ids of runs and
    jobs, which have the kind ``run``. Of two known mentions with the same text the first counts."""
    whole = "\n".join(dict.fromkeys(texts))
    by_text: dict[str, Mention] = {}
    for mention in known:
        if mention.text not in by_text and mention.text in whole and _as_word(mention.text).search(whole):
            by_text[mention.text] = mention
    for text in _ID.findall(whole):
        parsed = ids.parse_job_id(text)
        if parsed is not None and len(parsed.digest) == DIGEST:
            by_text.setdefault(text, Mention(text, "run", text))
    return sorted(by_text.values(), key=lambda mention: (-len(mention.text), mention.text))


def _as_word(text: str) -> re.Pattern[str]:
    """A pattern for a text that is no part of a longer name. A point that ends a sentence ends a name, too."""
    return re.compile(rf"(?<![\w~.-]){re.escape(text)}(?![\w~-]|\.[\w~])")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, str))
