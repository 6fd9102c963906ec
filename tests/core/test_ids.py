"""Ids are computed: the same object always has the same id, and another object has another one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.core import ids
from chalicelib.core.ids import JobId
from tests.core.builders import NAME, brief

names = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,62}", fullmatch=True)
full_names = st.tuples(names, names, names).map(".".join)
# The separator of `digest` is the one character that a part should not hold (FOUND.md).
parts = st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x1f")), min_size=1, max_size=4)


@given(parts, parts)
@brief
def test_distinct_parts_have_distinct_digests_however_divided(one: list[str], other: list[str]) -> None:
    assert (ids.digest(*one) == ids.digest(*other)) == (one == other)


@pytest.mark.parametrize("length", [4, 20, 40])
def test_a_digest_is_hexadecimal_and_as_long_as_asked(length: int) -> None:
    digest = ids.digest("a", 1, None, length=length)
    assert len(digest) == length
    assert int(digest, 16) >= 0


@given(st.integers(0, 2**70))
@brief
def test_base36_is_read_back_by_python(number: int) -> None:
    assert int(ids.base36(number), 36) == number
    assert ids.base36(number) in ("0", ids.base36(number).lstrip("0"))


def test_base36_of_a_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match="got -1"):
        ids.base36(-1)


@given(full_names, st.integers(0, 2**60), st.text(st.characters(exclude_categories=["Cs"])))
@brief
def test_a_job_id_contains_where_its_job_is_stored(schedule: str, generation: int, first: str) -> None:
    text = ids.job_id(schedule, generation, first)
    assert ids.parse_job_id(text) == JobId(schedule, generation, text.rpartition(".")[2])


@pytest.mark.parametrize(
    "text", ["", "x", "demo.flights.clean", f"{NAME}.7", f"{NAME}..x", f"{NAME}.7.", f"{NAME}.A!.x", "a.b.7.x"]
)
def test_an_invalid_job_id_is_none(text: str) -> None:
    assert ids.parse_job_id(text) is None


def test_a_job_id_differs_by_schedule_generation_and_first_event() -> None:
    made = {
        ids.job_id(NAME, 7, "e1"),
        ids.job_id(NAME, 8, "e1"),
        ids.job_id(NAME, 7, "e2"),
        ids.job_id(NAME + "x", 7, "e1"),
    }
    assert len(made) == 4
    assert ids.job_id(NAME, 7, "e1") in made


def test_t7_an_event_id_has_its_kind_and_follows_from_its_source() -> None:
    assert ids.event_id("partition", "demo.flights", "1").startswith("partition-")
    assert ids.event_id("partition", "demo.flights", "1") == ids.event_id("partition", "demo.flights", "1")
    assert ids.event_id("partition", "demo.flights", "1") != ids.event_id("time", "demo.flights", "1")


def test_w10_emr_gets_one_token_per_attempt_within_64_characters() -> None:
    tokens = {ids.client_token(run, attempt) for run in ("a", "b") for attempt in (1, 2, 11)}
    assert len(tokens) == 6
    assert all(len(token) <= 64 for token in tokens)
    assert ids.client_token("a", 1) in tokens


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 64))
@brief
def test_a_key_has_one_shard_of_those_there_are(key: str, shards: int) -> None:
    assert ids.shard(key, shards) == ids.shard(key, shards)
    assert 0 <= int(ids.shard(key, shards)) < shards


def test_o1_keys_spread_over_the_shards() -> None:
    used = [ids.shard(f"SCHEDULE#demo.flights.s{number}", 4) for number in range(400)]
    assert all(60 < used.count(str(shard)) < 140 for shard in range(4))
