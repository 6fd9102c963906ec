"""To which namespace a prefix of a bucket belongs, and which prefixes are Sluice's own (O14).

A prefix belongs to the namespace of the dataset there, or to the one to which an administrator gave it, and with it all
folders inside that do not belong to another namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chalicelib.core.errors import invalid
from chalicelib.core.rows.definition import PrefixRow

MAX_FOLDERS = 50  # folders of a key that are checked, from the outermost
AUDIT = "audit/"  # the folder of exported audit records, in any bucket
# The folders of the lake that Sluice and its own app write.
OF_SLUICE = ("history/", "history_late/", "history_compact/", "history_report/", AUDIT)


def folders_of(key: str) -> list[str]:
    """The folders of a key, the outermost first."""
    return [key[: index + 1] for index, letter in enumerate(key) if letter == "/"][:MAX_FOLDERS]


def path_of(prefix: str) -> list[str]:
    """The folders of a prefix, and the prefix, the outermost first."""
    return list(dict.fromkeys((*folders_of(prefix), prefix)))


def first_folder(prefix: str) -> str:
    """The outermost folder of a prefix. Prefixes that lie in each other have the same one."""
    return prefix[: prefix.index("/") + 1]


def is_of_sluice(prefix: str) -> bool:
    """Whether a prefix of the lake is one of Sluice's own folders, or lies in one."""
    return prefix.startswith(OF_SLUICE)


def check_folders(prefix: str) -> None:
    """Raise ``invalid`` for a new prefix whose folders cannot be compared: jobs resolve ``..``, and only so many
    folders of an object are looked up."""
    folders = prefix.split("/")[:-1]
    if {".", ".."} & set(folders):
        raise invalid("prefix", "a prefix without the folders . and ..", prefix, "write the folder that is meant")
    if len(folders) > MAX_FOLDERS:
        hint = "choose one with fewer folders"
        raise invalid("prefix", f"a prefix of at most {MAX_FOLDERS} folders", len(folders), hint)


def is_in_own_folder(namespace: str, prefix: str) -> bool:
    """Whether a prefix is the folder with the name of a namespace, or lies in it."""
    return prefix.startswith(f"{namespace}/")


def matched(rows: Iterable[PrefixRow]) -> PrefixRow | None:
    """The row of the dataset that gets an object, of the rows of the folders of its key: the longest one of the
    namespace to which the innermost folder belongs. None if that has no dataset there."""
    longest_first = sorted(rows, key=lambda row: len(row.prefix), reverse=True)
    own = (row for row in longest_first if row.dataset and row.namespace == longest_first[0].namespace)
    return next(own, None)


def in_the_way(namespace: str, around: Sequence[PrefixRow], inside: Iterable[PrefixRow]) -> PrefixRow | None:
    """The row of another namespace that a prefix of ``namespace`` lies in, or that lies in it. ``around`` are the rows
    of the prefix and of the folders around it, the outermost first, and ``inside`` those of the folders inside it.

    What lies inside is in nobody's way if an administrator gave the namespace the prefix, or a folder around it.
    """
    if around and around[-1].namespace != namespace:
        return around[-1]
    if any(row.owner == namespace for row in around):
        return None
    return next((row for row in inside if row.namespace != namespace), None)
