"""The leases that an invocation holds on the jobs that it delivers (`core/rows/delivery_lease.py`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from chalicelib.core.instants import SECOND, Instant, Millis
from chalicelib.core.rows import delivery_lease as core
from chalicelib.core.rows.delivery_lease import MARGIN, DeliveryLease
from chalicelib.core.rows.job import Job
from chalicelib.core.writes import EndLease, TakeLease
from chalicelib.ports import Ports

# Two invocations that lease a job at once both leave it alone if they see each other. So it is tried again this long
# after the other lease was taken, and only then at the end of that lease.
AGAIN: Millis = 2 * SECOND
CLOCKS: Millis = SECOND  # that the clocks of two invocations may differ
MAX_TRIES = 3  # to take a lease; each conflict means that another invocation has just leased some of the same jobs
SEVERAL = 10  # jobs of one instant for which it pays to look whether a batch has them


@dataclass(frozen=True, slots=True)
class Kept:
    """``lost`` are the marks of the jobs that another invocation delivers. ``lapsed`` is whether a lease of the batch
    has ever ended before it was renewed. Others may have delivered its jobs meanwhile."""

    lost: frozenset[str]
    lapsed: bool


class Elsewhere:
    """Looks up which jobs other invocations deliver in their batches, to leave them alone. The leases of an instant are
    read once: one that is renewed later counts as ended when it would have ended."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._read: dict[Instant, tuple[DeliveryLease, ...]] = {}

    def ends(self, jobs: Iterable[Job], at: Instant) -> dict[str, Instant]:
        """The marks of the jobs that are leased in a batch at ``at``, each with the end of that lease. Jobs that are
        not due yet, or of whose instant there are not `SEVERAL`, are not looked up.

        ``at`` is the instant of the hint, which may arrive a little before. A hint for the end of a lease would
        otherwise find that lease, and be sent again until it ends."""
        found: dict[str, Instant] = {}
        now = self._ports.clock.now()
        for due, group in _by_due(jobs).items():
            if due > now or len(group) < SEVERAL:
                continue
            if due not in self._read:
                self._read[due] = self._ports.jobs.delivery_leases(due, ())
            living = [lease for lease in self._read[due] if lease.leased_until > at]
            ends = {mark: lease.leased_until for lease in living for mark in lease.covered}
            found |= {mark: ends[mark] for mark in map(core.mark, group) if mark in ends}
        return found


class Leases:
    """The leases of one batch, one for each instant at which its jobs are due. Mostly there is a single one."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._holder = uuid4().hex[:12]
        self._held: dict[Instant, DeliveryLease] = {}
        self._lost: set[str] = set()
        self._lapsed = False

    def take(self, jobs: Sequence[Job], longest: Millis, begin: Instant) -> dict[str, Instant]:
        """Lease the jobs that no other invocation delivers, for sends from ``begin`` on that take ``longest`` each.

        Returns the marks of the jobs that another invocation delivers or has just leased, each with the instant at
        which to try again.

        The leases of others are read after the own one is written. So of two invocations that lease a job in different
        batches, at least one sees the lease of the other. Several jobs are also looked for before: then the lease
        covers only those that are free. A single job is mostly free, so it is leased without that look. All leases of a
        single job are one row, so only the leases of batches are read for it: there may be thousands of others.
        """
        busy: dict[str, Instant] = {}
        for due, group in _by_due(jobs).items():
            others: dict[str, Instant] = {}
            for tried in range(MAX_TRIES):
                now = self._ports.clock.now()
                others = self._ends(due, now, group) if tried or len(group) > 1 else {}
                free = [job for job in group if core.mark(job) not in others]
                until = max(now, begin) + longest + MARGIN
                lease = core.lease_of(free, until, self._holder, now) if free else None
                if lease is None or self._ports.ledger.commit([TakeLease(lease, now)]) is None:
                    break
                others = dict.fromkeys(map(core.mark, group), until)
                lease = None
            if lease is not None:
                present = self._ports.clock.now()
                found = self._others(due, present, () if len(group) == 1 else None)
                given_up = lease.covered & found.keys()
                kept = self._without(lease, given_up) if given_up else lease
                if kept is not None:
                    self._held[due] = kept
                others |= {mark: _again(other, begin, present) for mark, other in found.items()}
            busy |= {mark: others[mark] for mark in map(core.mark, group) if mark in others}
        return busy

    def _without(self, lease: DeliveryLease, given_up: frozenset[str]) -> DeliveryLease | None:
        """Give up the jobs that others have leased: an invocation that tries again soon shall find them free.

        The row stays where it is. A reader of all leases could miss both a row that is deleted and the one that
        replaces it."""
        if given_up == lease.covered:
            self._ports.ledger.commit([EndLease(lease)])
            return None
        smaller = core.without(lease, given_up)
        refused = self._ports.ledger.commit([TakeLease(smaller, self._ports.clock.now(), over=lease.leased_until)])
        return smaller if refused is None else lease

    def take_alone(self, jobs: Sequence[Job], longest: Millis, begin: Instant) -> frozenset[str]:
        """Lease jobs that other invocations may be leasing in this moment, in other batches. Returns the marks of those
        that another one has, or may have.

        The leases of others are read after the own one is written. So of two invocations at least one sees the lease of
        the other, and then does not deliver what both of them have."""
        busy: set[str] = set()
        for due, group in _by_due(jobs).items():
            now = self._ports.clock.now()
            lease = core.lease_of(group, max(now, begin) + longest + MARGIN, self._holder, now)
            if self._ports.ledger.commit([TakeLease(lease, now)]) is not None:
                busy |= set(map(core.mark, group))
                continue
            self._held[due] = lease
            busy |= lease.covered & self._others(due, now, lease.covered if len(group) > 1 else ()).keys()
        return frozenset(busy)

    def keep(self, jobs: Iterable[Job], longest: Millis) -> Kept:
        """Renew the leases that end too soon for one more send of ``longest``, by the clock of any invocation.

        A lease that has ended is renewed, too, if no other invocation has taken it. But another one may have leased
        some of its jobs in another batch, so the leases of others are read again. What is found then holds for the rest
        of the batch: those jobs stay lost, and ``lapsed`` stays true.
        """
        now = self._ports.clock.now()
        for due, group in _by_due(jobs).items():
            lease = self._held.get(due)
            if lease is not None and lease.leased_until - CLOCKS < now + longest:
                ended, renewed = lease.leased_until, core.renewed(lease, now + longest + MARGIN)
                refused = self._ports.ledger.commit([TakeLease(renewed, now, over=ended)])
                lease = renewed if refused is None else None
                if lease is None:
                    del self._held[due]
                else:
                    self._held[due] = lease
                    present = self._ports.clock.now()
                    if present >= ended - CLOCKS:
                        self._lapsed = True
                        self._lost |= lease.covered & self._others(due, present - CLOCKS, lease.covered).keys()
            if lease is None:
                self._lost |= set(map(core.mark, group))
        return Kept(frozenset(self._lost), self._lapsed)

    def give_up(self, marks: frozenset[str]) -> None:
        """Give up the jobs with these marks, so that other invocations need not wait until the leases expire.

        What was sent stays covered: an invocation whose clock is behind may have read its rows before, and relies on
        them."""
        for due, lease in list(self._held.items()):
            if lease.covered & marks:
                kept = self._without(lease, lease.covered & marks)
                if kept is not None:
                    self._held[due] = kept
                else:
                    del self._held[due]

    def end(self) -> None:
        """End all leases now, so that other invocations need not wait until they expire."""
        for lease in self._held.values():
            self._ports.ledger.commit([EndLease(lease)])
        self._held.clear()

    def _ends(self, due: Instant, now: Instant, group: Sequence[Job]) -> dict[str, Instant]:
        singles = (core.mark(group[0]),) if len(group) == 1 else None
        return {mark: lease.leased_until for mark, lease in self._others(due, now, singles).items()}

    def _others(self, due: Instant, now: Instant, singles: Collection[str] | None) -> dict[str, DeliveryLease]:
        """The leases of other invocations that have not ended by ``now``, by the marks of their jobs. Of the leases on
        single jobs, only those on ``singles`` are read, or all if it is None."""
        living = [lease for lease in self._ports.jobs.delivery_leases(due, singles) if lease.leased_until > now]
        return {mark: lease for lease in living if lease.holder != self._holder for mark in lease.covered}


def _again(other: DeliveryLease, begin: Instant, now: Instant) -> Instant:
    """When to try a job again that another invocation has leased, for sends from ``begin`` on."""
    soon = max(other.taken_at, begin) + AGAIN
    return soon if soon > now else other.leased_until


def _by_due(jobs: Iterable[Job]) -> Mapping[Instant, list[Job]]:
    groups: dict[Instant, list[Job]] = {}
    for job in jobs:
        groups.setdefault(core.due_of(job), []).append(job)
    return groups
