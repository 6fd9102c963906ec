"""Record the deliveries of a bundle: one transaction settles many of its events (`core/fires/bundles.py`).

The run of a bundle says which of its events were sent. It is written with the first of them, in the transaction that
changes or deletes the bundle. So what was sent has a run, also if the other events are dropped. Events that the target
has not taken leave the bundle, in the same transaction: each is a job with a next try, or a failed run with its dead
letter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from chalicelib.core import ids
from chalicelib.core.changes import replace
from chalicelib.core.fires import bundles, fire
from chalicelib.core.fires.bundles import Plan
from chalicelib.core.rows.job import Job
from chalicelib.core.rows.ref import Ref, ref_of
from chalicelib.core.rows.run import Record, Run
from chalicelib.core.runs import queued, sends
from chalicelib.core.targets.answers import Started
from chalicelib.core.writes import Create, Delete, DeleteJob, Put, Replace, Write
from chalicelib.flow.deliveries.ends import MAX_BYTES, Answered, Ends, bytes_of, ended, next_of
from chalicelib.flow.notices import notices
from chalicelib.ports import MAX_CONFLICTS, Ports, too_many_conflicts

LEAVERS = 25  # events that leave their bundle in one transaction; each takes up to three writes


@dataclass
class Settled:
    """What became of the deliveries of a bundle. ``ends`` as in `books.Books`. ``alone`` are those of events
    that had left the bundle before they were recorded."""

    ends: Ends = field(default_factory=dict)
    alone: list[Answered] = field(default_factory=list)


def settle(ports: Ports, answered: Sequence[Answered]) -> Settled:
    """Record the deliveries of one bundle, given in the order of their numbers. Raises RuntimeError after
    ``MAX_CONFLICTS`` conflicts in a row."""
    found = Settled()
    for part in _parts(answered):
        _settle(ports, part, found)
    return found


def _parts(answered: Sequence[Answered]) -> Iterator[list[Answered]]:
    part: list[Answered] = []
    leavers = size = 0
    for each in answered:
        leaves = not isinstance(each.answer, Started)
        more = bytes_of(each) if leaves else 0
        if leaves and (leavers == LEAVERS or size + more > MAX_BYTES):
            yield part
            part, leavers, size = [], 0, 0
        part.append(each)
        leavers, size = leavers + leaves, size + more
    if part:
        yield part


def _settle(ports: Ports, answered: Sequence[Answered], found: Settled) -> None:
    row = answered[0].ready.row
    for _ in range(MAX_CONFLICTS):
        bundle = ports.rows.get(Job, row.schedule, row.generation, row.sort_key)
        run = ports.rows.get(Run, row.job_id, row.attempt)
        if bundle is None or bundle.closed or bundle.job_id != row.job_id:
            if _after_the_end(ports, answered, run, found):
                return
            continue
        inside = [each for each in answered if bundles.has(bundle, each.ready.job)]
        if not inside or _commit(ports, bundle, run, inside, found):
            found.alone += [each for each in answered if each not in inside and not _is_sent(run, each)]
            return
    raise too_many_conflicts(f"recording the deliveries of {row.job_id}", "the sweep will hint the bundle again")


def _commit(ports: Ports, bundle: Job, run: Run | None, inside: Sequence[Answered], found: Settled) -> bool:
    """Settle events of a bundle. Returns whether no other write came first."""
    now = ports.clock.now()
    nexts = {each.ready.ref: next_of(ports, each, now) for each in inside if not isinstance(each.answer, Started)}
    taken = [each for each in inside if isinstance(each.answer, Started)]
    left = {each.ready.job.index for each in inside if each.ready.ref in nexts}
    later = bundles.settled(bundle, {each.ready.job.index for each in taken}, left)
    plan: list[Write] = (
        [Replace(later)] if later is not None else [DeleteJob(bundle, exact=True), *queued.leave(bundle)]
    )
    if taken:
        plan.append(_written(run, _run_of(ports, bundle, run, taken, {*bundle.left, *left})))
    for each_next in nexts.values():
        plan += each_next.plan
    if ports.ledger.commit(plan) is not None:
        return False
    found.ends |= {each.ready.ref: None for each in taken}
    for ref, each_next in nexts.items():
        found.ends[ref] = each_next.why
        notices.hint(ports, each_next.notices)
        if each_next.job is not None and each_next.job.wake_at is not None:
            ports.hints.send([ref_of(each_next.job)], each_next.job.wake_at, now)
    return True


def _run_of(
    ports: Ports, bundle: Job, run: Run | None, taken: Sequence[Answered], left: Collection[int]
) -> Run:  # fmt: skip
    """The run of a bundle, with these deliveries. Events in ``left`` have left the bundle."""
    sent = [(each.ready.job.due_at or each.at, each.at) for each in taken]
    known = run or replace(_first_run(ports, bundle, taken[0]), count=0, ended_at=taken[-1].at)
    ahead = {*known.ahead, *(each.ready.job.index for each in taken)}
    count = bundles.next_gap(bundle.index, known.count, {*ahead, *left})
    # The run keeps its first end, which names the day of its line in the history.
    return replace(
        known,
        count=count,
        ahead=tuple(sorted(number for number in ahead if number >= bundle.index + count)),
        left=tuple(sorted(number for number in left if number < bundle.index + count)),
        sends=sends.of(sent, known.sends),
        rev=known.rev if run is None else known.rev + 1,
    )


def _written(stored: Run | None, run: Run) -> Write:
    return Create(run) if stored is None else Replace(run)


def _first_run(ports: Ports, bundle: Job, taken: Answered) -> Run:
    """The run of a bundle, from that of the first of its events that was sent."""
    if not isinstance(taken.answer, Started):
        raise TypeError("expected a delivery that was taken")
    own = bundle.job_id
    run = ended(taken.called, taken.answer, taken.at)
    request = replace(
        run.request,
        context_uri=ports.payloads.context_uri(own),
        client_token=ids.client_token(own, 1),
        name=f"{own}-1"[-256:],
    )
    due = bundles.due(bundle, bundle.index)
    return replace(
        run,
        run_id=own,
        request=request,
        target_id=None,
        created_at=bundle.created_at,
        due_at=due,
        accepted_at=due,
        event=fire.fire_event(bundles.event_of(bundle, bundle.index)),
        spread=(bundle.index, Plan(*bundle.plan).events),
        plan=bundle.plan,
    )


def _is_sent(run: Run | None, each: Answered) -> bool:
    """Whether the run of a bundle says that an event was sent: another invocation was faster."""
    fire_id = bundles.fire_of_bundle(each.ready.row.job_id)
    return run is not None and bundles.run_of_event(run, fire_id, each.ready.job.index) is not None


def _after_the_end(ports: Ports, answered: Sequence[Answered], run: Run | None, found: Settled) -> bool:
    """Record what was sent of a bundle that was dropped, or divided, meanwhile. Returns whether no other write came
    first."""
    bundle = answered[0].ready.row
    record = ports.rows.get(Record, bundle.job_id)
    unknown = [each for each in answered if not _is_sent(run, each)]
    taken = [each for each in unknown if isinstance(each.answer, Started)]
    if record is None or not taken:
        found.alone += unknown
        return True
    left = bundle.left if run is None else (*bundle.left, *run.left)
    rest = record.count - len(taken)
    replaced = record.recorded_at if rest <= 0 else None
    dropped = replace(_run_of(ports, bundle, run, taken, set(left)), dropped_at=replaced)
    kept: Write = Put(replace(record, count=rest, rev=record.rev + 1)) if rest > 0 else Delete(record)
    if ports.ledger.commit([_written(run, dropped), kept]) is not None:
        return False
    found.ends |= {each.ready.ref: None for each in answered}
    return True


def rows_of(answered: Sequence[Answered]) -> dict[Ref, list[Answered]]:
    """The deliveries of each bundle, in the order of their numbers."""
    groups: dict[Ref, list[Answered]] = {}
    for each in answered:
        groups.setdefault(each.ready.row_ref, []).append(each)
    return {ref: sorted(group, key=lambda each: each.ready.job.index) for ref, group in groups.items()}
