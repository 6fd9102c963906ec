"""To which namespace a prefix of a bucket belongs, and which prefixes are Sluice's own (O14).

A prefix belongs to the namespace of the dataset there, or to the one to which an administrator gave it, and with it all
folders inside that do not belong to another namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


def is_in_own_folder(namespace: str, prefix: str) -> bool:
    """Whether a prefix is the folder with the name of a namespace, or lies in it. Jobs resolve ``..``, so a prefix with
    such a folder lies nowhere."""
    return prefix.startswith(f"{namespace}/") and not {".", ".."} & set(prefix.split("/"))


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
