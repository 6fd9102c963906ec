"""The owners of prefixes: who may put a dataset where, and what an administrator gives to a namespace (O14).

What is nested is found by several reads. So each change of a prefix also writes the lock of its first folder, which was
read before them: of two changes at the same time, the second one meets a conflict, and reads again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from chalicelib.core import errors
from chalicelib.core.access.grants import ForeignUse
from chalicelib.core.definitions import prefixes
from chalicelib.core.errors import SluiceError, invalid
from chalicelib.core.names import SYSTEM
from chalicelib.core.rows.access import AllowedRow
from chalicelib.core.rows.definition import Definition, PrefixLock, PrefixRow
from chalicelib.core.why import Mention, Why, plain
from chalicelib.core.writes import Create, Delete, ExpectDefinition, Put, Replace, Write
from chalicelib.flow import grants
from chalicelib.flow.definitions import buckets
from chalicelib.flow.lookup import every, require
from chalicelib.log import logger
from chalicelib.ports import MAX_CONFLICTS, Ports


class Place(NamedTuple):
    """A prefix of a bucket. The bucket has its real name, which is not ``lake``."""

    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"


def claimed(ports: Ports, dataset: str, place: Place, before: Place | None) -> list[Write]:
    """The writes with which a dataset gets its prefix, and releases the one that it had before. Raises ``conflict`` or
    ``invalid`` for a prefix that it may not have."""
    locks = [lock_of(ports, place)]
    if before is not None and not _share_a_lock(place, before):
        locks.append(lock_of(ports, before))
    check(ports, dataset, place)
    given, now = ports.rows.get(PrefixRow, *place), ports.clock.now()
    new = Create(PrefixRow(*place, dataset, now)) if given is None else Put(replace(given, dataset=dataset, since=now))
    return [new, *(_without_dataset(ports, dataset, before) if before is not None else ()), *locks]


def released(ports: Ports, dataset: str, place: Place) -> list[Write]:
    """The writes with which a dataset releases its prefix. The prefix goes on to belong to the namespace only if an
    administrator gave it: without data, it would block others for nothing."""
    lock = lock_of(ports, place)
    return [*_without_dataset(ports, dataset, place), lock]


def check(ports: Ports, dataset: str, place: Place) -> None:
    """Raise ``conflict`` or ``invalid`` if a dataset may not have a prefix. An installation that observes logs what
    depends on roles, and one that checks no roles does not check it."""
    prefixes.check_folders(place.prefix)
    namespace, is_of_system = dataset.partition(".")[0], is_of_sluice(ports, place)
    if is_of_system and namespace != SYSTEM:
        raise reserved(place)
    around = ports.catalog.prefixes_around(*place)
    here = _at(place, around)
    if here is not None and (here.dataset not in ("", dataset) or here.namespace != namespace):
        raise _taken(here)
    if is_of_system or ports.settings.authorization == "off":
        return
    try:
        _check_others(ports, namespace, place, around)
        _check_own(ports, namespace, place, around)
    except SluiceError as error:
        if ports.settings.authorization == "enforce":
            raise
        logger.warning("dataset would be refused", extra={"dataset": dataset, "why": error.message})


def give(ports: Ports, namespace: str, place: Place, nested: bool) -> tuple[PrefixRow, bool]:
    """Give a prefix to a namespace, which then may have datasets there whatever its name and its neighbours are. With
    ``nested`` it may lie in a prefix of another namespace, or around one. Returns the row, and whether it is new.

    Raises ``not_found`` for an unknown namespace. Raises ``invalid`` for a bucket that is not watched, and for Sluice's
    own folders. Raises ``conflict`` if the prefix belongs to another namespace, or is nested without ``nested``.
    """
    buckets.check_watched(ports, place.bucket)
    prefixes.check_folders(place.prefix)
    if is_of_sluice(ports, place):
        raise reserved(place)
    for _ in range(MAX_CONFLICTS):
        require(ports, "namespace", namespace)
        space = ports.rows.get(Definition, "namespace", namespace)
        lock = lock_of(ports, place)
        around = ports.catalog.prefixes_around(*place)
        here = _at(place, around)
        if here is not None and here.namespace != namespace:
            raise _has_an_owner(here)
        if here is not None and here.owner:
            return here, False
        if not nested:
            _check_others(ports, namespace, place, around, "add nested: true (sluice prefixes give --nested) to do it")
        row = replace(here, owner=namespace) if here is not None else PrefixRow(*place, "", owner=namespace)
        if space is not None and ports.ledger.commit([Put(row), lock, ExpectDefinition(space)]) is None:
            return row, True
    raise errors.changed_meanwhile(f"the prefix {place}")


def take(ports: Ports, namespace: str, place: Place) -> None:
    """Take a prefix back from the namespace to which it was given. Its datasets stay, and own their prefixes. Raises
    ``not_found`` if the prefix was not given to it."""
    if not _take(ports, namespace, place):
        hint = "sluice prefixes list BUCKET shows them; that of a dataset is released with the dataset"
        raise errors.not_found(f"prefix that was given to namespace {namespace}", str(place), hint)


def take_all(ports: Ports, namespace: str) -> None:
    """Take back all prefixes that were given to a namespace, unless it exists: another one may get its name."""
    for bucket in ports.settings.notified_buckets:
        for row in every(partial(ports.catalog.prefixes_in, bucket, "")):
            if row.owner == namespace:
                _take(ports, namespace, Place(row.bucket, row.prefix), if_gone=True)


def _take(ports: Ports, namespace: str, place: Place, if_gone: bool = False) -> bool:
    """Returns False if the prefix is not given to the namespace. With ``if_gone`` also if the namespace exists."""
    for _ in range(MAX_CONFLICTS):
        lock = lock_of(ports, place)
        # Read after the lock: a request that gives the prefix to a new namespace of this name writes the lock.
        if if_gone and ports.rows.get(Definition, "namespace", namespace) is not None:
            return False
        row = ports.rows.get(PrefixRow, *place)
        if row is None or row.owner != namespace:
            return False
        if ports.ledger.commit([_without_owner(row), lock]) is None:
            return True
    raise errors.changed_meanwhile(f"the prefix {place}")


def to_keep(ports: Ports, namespace: str, place: Place) -> str:
    """What to do before a dataset is deleted, so that the namespace may use its prefix again: the beginning of a hint,
    empty if nothing has to be done."""
    if ports.settings.authorization != "enforce":
        return ""
    left = tuple(row for row in ports.catalog.prefixes_around(*place) if row.owner or row.prefix != place.prefix)
    try:
        _check_own(ports, namespace, place, left)
    except SluiceError:
        return f"{_ask(namespace, place)}, then "
    return ""


def is_foreign(ports: Ports, namespace: str, place: Place) -> bool:
    """Whether objects at a prefix are not for a namespace: they are Sluice's own, or those of another namespace that
    grants no dataset there. An installation that does not enforce roles calls none foreign."""
    if ports.settings.authorization != "enforce":
        return False
    if is_of_sluice(ports, place):
        return namespace != SYSTEM
    around = ports.catalog.prefixes_around(*place)
    if not around or around[-1].namespace == namespace:
        return False
    row = prefixes.matched(around)
    return row is None or bool(grants.used_of(ports, [ForeignUse("datasets", row.dataset, namespace)]).missing)


def foreign_in(ports: Ports, namespace: str, place: Place, keys: Iterable[str]) -> set[str]:
    """The prefixes inside a prefix whose objects are among ``keys``, and are not for a namespace."""
    if ports.settings.authorization != "enforce":
        return set()
    inside = list(every(partial(ports.catalog.prefixes_in, *place)))
    if all(row.namespace == namespace for row in inside):
        return set()
    longest_first = sorted((row.prefix for row in inside), key=len, reverse=True)
    found = {next((prefix for prefix in longest_first if key.startswith(prefix)), None) for key in keys}
    return {prefix for prefix in found if prefix and is_foreign(ports, namespace, Place(place.bucket, prefix))}


def is_of_sluice(ports: Ports, place: Place) -> bool:
    """Whether Sluice writes into a prefix: all of the control bucket, some folders of the lake, and the audit records
    of another bucket."""
    settings, (bucket, prefix) = ports.settings, place
    of_lake = bucket == settings.lake_bucket and prefixes.is_of_sluice(prefix)
    return (
        of_lake
        or bucket == settings.control_bucket
        or (bucket == settings.audit_bucket and prefix.startswith(prefixes.AUDIT))
    )


def _at(place: Place, around: tuple[PrefixRow, ...]) -> PrefixRow | None:
    return next((row for row in around if row.prefix == place.prefix), None)


def lock_of(ports: Ports, place: Place) -> Write:
    """The next lock of a prefix. It must be read before everything on which a change relies."""
    folder = prefixes.first_folder(place.prefix)
    lock = ports.rows.get(PrefixLock, place.bucket, folder)
    return Create(PrefixLock(place.bucket, folder)) if lock is None else Replace(replace(lock, rev=lock.rev + 1))


def _share_a_lock(place: Place, other: Place) -> bool:
    folders = {prefixes.first_folder(each.prefix) for each in (place, other)}
    return place.bucket == other.bucket and len(folders) == 1


def _without_dataset(ports: Ports, dataset: str, place: Place) -> list[Write]:
    row = ports.rows.get(PrefixRow, *place)
    if row is None or row.dataset != dataset:
        return []
    return [Put(replace(row, dataset="", since=0)) if row.owner else Delete(row)]


def _without_owner(row: PrefixRow) -> Write:
    return Put(replace(row, owner="")) if row.dataset else Delete(row)


def _check_others(
    ports: Ports, namespace: str, place: Place, around: tuple[PrefixRow, ...], hint: str | None = None
) -> None:
    """Raise ``conflict`` for a prefix that lies in one of another namespace, or around one: one of the two would take
    the objects of the other."""
    inside = every(partial(ports.catalog.prefixes_in, *place))
    other = prefixes.in_the_way(namespace, around, inside)
    if other is None:
        return
    lies_in = place.prefix.startswith(other.prefix)
    wait = ", wait for partitions of that dataset by a grant of its namespace," if lies_in and other.dataset else ""
    got = f"got {place}, which lies {'in' if lies_in else 'around'} "
    raise SluiceError(
        "conflict",
        _with("expected a prefix apart from those of other namespaces, " + got, other, f" ({other.prefix})"),
        "prefix",
        hint or f"choose another prefix{wait} or {_ask(namespace, place)} --nested",
    )


def _check_own(ports: Ports, namespace: str, place: Place, around: tuple[PrefixRow, ...]) -> None:
    """Raise ``invalid`` if a namespace takes a prefix that nobody has given to it, where others could want it: an
    installation with one namespace leaves all prefixes to that one."""
    if namespace == SYSTEM or around or prefixes.is_in_own_folder(namespace, place.prefix):
        return
    if not ports.catalog.is_shared(namespace):
        return
    listed = ports.rows.get(AllowedRow, namespace)
    if listed is None or listed.document.get("buckets") is None:
        expected = f"a prefix in the folder {namespace}/, or in a prefix that belongs to namespace {namespace}"
        hint = f"choose one, or {_ask(namespace, place)} (or sluice allowed {namespace}, list buckets)"
        raise invalid("prefix", expected, str(place), hint)


def _ask(namespace: str, place: Place) -> str:
    return f"ask an administrator of the installation: sluice prefixes give {namespace} {place}"


def _taken(row: PrefixRow) -> SluiceError:
    message = _with(f"expected a prefix of its own, got {row.bucket}/{row.prefix}, which belongs to ", row)
    return SluiceError("conflict", message, "prefix", "choose another prefix")


def _has_an_owner(row: PrefixRow) -> SluiceError:
    """The error for an administrator who gives a prefix of one namespace to another."""
    place = Place(row.bucket, row.prefix)
    hint = f"take it back first: sluice prefixes take {row.owner} {place}"
    if row.dataset:
        hint = f"delete dataset {row.dataset} first, or give it another prefix"
    message = _with(f"expected a prefix without an owner, got {place}, which belongs to ", row)
    return SluiceError("conflict", message, "prefix", hint)


def _with(text: str, row: PrefixRow, place: str = "") -> Why:
    """A message that ends with the dataset or the namespace of a row, of which only its readers may know."""
    if row.dataset:
        return plain(f"{text}dataset ", Mention(f"{row.dataset}{place}", "other", row.dataset))
    return plain(text, Mention(f"namespace {row.owner}{place}", "other", row.owner))


def reserved(place: Place) -> SluiceError:
    folders = ", ".join(prefixes.OF_SLUICE)
    expected = f"a prefix outside the folders of Sluice (in the lake {folders}; all of the control bucket)"
    return invalid("prefix", expected, str(place), "choose another prefix; Sluice writes its own files there")
