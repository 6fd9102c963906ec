"""Whether the periods of a dataset fit those of a schedule (T25, T27)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.definitions.schedule import Schedule
from chalicelib.core.errors import invalid
from chalicelib.core.instants import DAY, HOUR, Millis
from chalicelib.core.time import period_names
from chalicelib.core.time.period_names import longest as length
from chalicelib.core.triggers import tree
from chalicelib.core.triggers.leaf import Leaf
from chalicelib.core.triggers.parts import MAX_BYTES, MAX_JOBS, MAX_PARTS, size_of

# Of those whose length varies.
_SHORTEST: Mapping[str, Millis] = {"month": 28 * DAY, "quarter": 90 * DAY, "year": 365 * DAY}


def check(name: str, dataset: Dataset, schedule: Schedule, leaf: Leaf) -> None:
    """Raise ``invalid`` unless the partitions of a dataset that a period of the schedule has are known."""
    per, rule = schedule.per, dataset.period
    if per is None:
        return
    if rule is None:
        hint = "give the dataset a period, which says how its folders name hours or days"
        raise invalid("trigger.dataset", f"a dataset with a period, because of per: {per.each}", name, hint)
    if length(rule.each) > length(per.each) and leaf.needs_shorter:
        hint = "write of: period, or {periods: 1, ending: before}"
        expected = f"of: period or a number of periods for a dataset whose periods are longer than per: {per.each}"
        raise invalid("trigger.of", expected, f"{name}, each: {rule.each}", hint)
    _check_zone(name, rule.each, rule.zone, schedule)
    _check_values(name, dataset, schedule, leaf)


def _check_zone(name: str, each: str, zone: str, schedule: Schedule) -> None:
    """Raise ``invalid`` if it is not clear whose days are meant."""
    per = schedule.per
    if per is None or zone == (own := per.zone or schedule.zone):
        return
    if per.zone is None and own == "UTC":
        hint = f"write zone: {zone} in the schedule; or per: {{each: {per.each}, zone: UTC}}, for those of UTC"
        raise invalid("zone", f"a zone, because the periods of {name} are those of {zone}", own, hint)
    if length(each) >= DAY:
        hint = "give both the same zone; hours may have another one"
        expected = f"a dataset of days in {own}, of which the periods of the schedule consist"
        raise invalid("trigger.dataset", expected, f"{name}, each: {each} in {zone}", hint)


def _check_values(name: str, dataset: Dataset, schedule: Schedule, leaf: Leaf) -> None:
    """Raise ``invalid`` if the values of a key are not known, or there are too many parts."""
    per, rule = schedule.per, dataset.period
    if per is None or rule is None:
        return
    span = leaf.longest_span(longest(per.each), length(rule.each))
    count = -(-span // _SHORTEST.get(rule.each, length(rule.each)))
    listed = {key: values for key, values in dataset.listed.items() if key not in schedule.by}
    count *= prod(map(len, listed.values()))
    named = period_names.keys_of(rule.format)
    for key in schedule.by:
        if key in named:
            hint = f"remove it: per: {per.each} tells the periods apart"
            raise invalid("by", f"keys that do not name the period of {name}", key, hint)
    for key in dataset.keys:
        if key not in named and key not in schedule.by and key not in dataset.values:
            hint = f"list them in the dataset: values: {{{key}: [..]}}; or add by: [{key}], for a job for each {key}"
            raise invalid("trigger.dataset", f"a dataset whose values of {key} are known", name, hint)
    _check_seen(name, dataset, schedule, leaf)
    leaves = len(tree.leaves(schedule.trigger))
    if size_of(listed) * leaves > MAX_BYTES:
        hint = "write shorter values, or fewer leaves"
        got = f"{size_of(listed):,} bytes in {leaves} leaves"
        raise invalid("trigger", f"lists of at most {MAX_BYTES:,} bytes in the job of a period", got, hint)
    if count > MAX_PARTS:
        hint = "write a shorter period or window, or wait for a dataset of longer periods"
        raise invalid("trigger.of", f"at most {MAX_PARTS:,} partitions of {name} for a job", f"up to {count:,}", hint)
    jobs = max(1, span // _SHORTEST.get(per.each, length(per.each)))
    if jobs > MAX_JOBS:
        hint = "write a shorter window or a longer per, or wait for a dataset of shorter periods"
        raise invalid("trigger.of", f"at most {MAX_JOBS:,} jobs for each partition of {name}", f"up to {jobs:,}", hint)
    check_jobs(name, dataset, schedule, jobs)


def _check_seen(name: str, dataset: Dataset, schedule: Schedule, leaf: Leaf) -> None:
    """Raise ``invalid`` unless the job of a period can end that waits for what the period before had."""
    key = dataset.grows
    if key is None or key in schedule.by:
        return
    if not leaf.is_whole_period:
        hint = "write of: period, or list the values in the dataset"
        raise invalid(
            "trigger.of", f"of: period, because {name} has values: {{{key}: seen_last}}", leaf.describe(), hint
        )
    if schedule.incomplete is None or schedule.incomplete.after is None:
        hint = f"write incomplete: {{after: 6h}}: a {key} that comes no more would hold the job until its timeout"
        raise invalid("incomplete", f"after, because {name} has values: {{{key}: seen_last}}", None, hint)


def check_jobs(name: str, dataset: Dataset, schedule: Schedule, periods: int = 1) -> None:
    """Raise ``invalid`` if a partition belongs to too many jobs: to those of ``periods``, for each listed value of the
    keys that it lacks."""
    jobs = periods * prod(len(values) for key, values in schedule.values.items() if key not in dataset.keys)
    if jobs > MAX_JOBS:
        hint = "list fewer values; several schedules may share the work"
        raise invalid("values", f"at most {MAX_JOBS:,} jobs for each partition of {name}", f"up to {jobs:,}", hint)


def longest(each: str) -> Millis:
    """The longest period of this length, with a change of the clocks."""
    return length(each) + (HOUR if length(each) >= DAY else 0)
