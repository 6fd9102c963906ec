"""References of sentences: which names and ids they contain, as whole words."""

from chalicelib.core.mentions import found_in, sentences
from chalicelib.core.why import Mention

CLEAN, FLIGHTS = Mention("demo.flights.clean", "workflow", "demo.flights.clean"), Mention("demo.f", "dataset", "demo.f")
RUN = "demo.flights.clean.mf3k0p2q.0a1b2c3d4e5f60718293"


def test_a_name_is_found_as_a_whole_word_only() -> None:
    assert found_in(["waits for demo.flights.clean to reach COMPLETED"], [CLEAN, FLIGHTS]) == [CLEAN]
    assert found_in(["waits for demo.flights.clean."], [CLEAN]) == [CLEAN]
    for other in ("demo.flights.cleaner", "demo.flights.clean-up", "demo.flights.clean.x", "x.demo.flights.clean"):
        assert found_in([f"waits for {other}"], [CLEAN]) == []


def test_the_id_of_a_run_is_found_without_being_known() -> None:
    found = found_in([f"joined job {RUN}, which was still waiting"], [CLEAN])
    assert found == [Mention(RUN, "run", RUN)]
    assert found_in(["see http://a.b.c.d.e/f, or a.b.c.d.e"], []) == []


def test_the_longest_text_comes_first() -> None:
    pool, small = Mention("pool demo.small", "pool", "demo.small"), Mention("demo.small", "dataset", "demo.small")
    assert found_in(["2 of 3 of pool demo.small"], [small, pool]) == [pool, small]


def test_of_two_names_with_one_text_the_first_counts() -> None:
    schedule = Mention(CLEAN.text, "schedule", CLEAN.name)
    assert found_in([CLEAN.text], [CLEAN, schedule]) == [CLEAN]


def test_sentences_are_read_from_all_parts_of_a_view() -> None:
    view = {"why": "a", "name": "no", "jobs": [{"wakes": "b", "arrived": ["c"]}], "tree": {"text": "d", "children": []}}
    assert list(sentences(view)) == ["a", "b", "c", "d"]
