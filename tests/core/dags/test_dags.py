"""W4: the document of a DAG, and the schedules that it becomes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chalicelib.core import ids
from chalicelib.core.dags import compile, rounds
from chalicelib.core.dags.rounds import Round
from chalicelib.core.definitions import dag as definition_dag
from chalicelib.core.errors import SluiceError, from_validation
from tests.core.builders import run
from tests.support.dags import DIAMOND, dag, edge

NAME = "demo.flights.daily"
FIVE = {name: {"workflow": f"w_{name}"} for name in "abcde"}


def made(*edges: Any, **fields: Any) -> definition_dag.Dag:
    return definition_dag.NewDag.model_validate(dag(*edges, **fields)).definition()


def refused(*edges: Any, **fields: Any) -> SluiceError:
    with pytest.raises((ValidationError, SluiceError)) as found:
        made(*edges, **fields)
    return from_validation(found.value) if isinstance(found.value, ValidationError) else found.value


@pytest.mark.parametrize(
    ("edges", "circle"),
    [
        (["a -> a"], "a -> a"),
        (["a -> b", "b -> a"], "a -> b -> a"),
        (["a -> b", "b -> c", "c -> b", "c -> d"], "b -> c -> b"),
        (["x -> a", "a -> b", "b -> c", "c -> a"], "a -> b -> c -> a"),
    ],
)
def test_w4_a_cycle_is_refused_and_named(edges: list[str], circle: str) -> None:
    error = refused(*edges)
    assert (error.code, error.field) == ("cycle", "edges")
    assert error.message == f"expected edges without a cycle, got {circle}"


def test_w4_bad_edges_are_refused_with_what_was_expected() -> None:
    unknown = refused(nodes={"clean": {"workflow": "w"}}, edges=[edge("clean -> z")])
    assert (unknown.field, unknown.hint) == ("edges.0.to", "add the node, or correct the name")
    near = refused(nodes={"clean": {"workflow": "w"}}, edges=[edge("claen -> clean")])
    assert (near.field, near.hint) == ("edges.0.from", "did you mean 'clean'?")
    assert "one edge between two nodes" in refused("a -> b", "a -> b").message
    assert refused(edge("a -> b", on=["FAILED"], within="1h")).field == "edges.0.within"
    assert refused(edge("a -> b", on=[])).field == "edges.0.on"
    assert refused(edge("a -> b", on=["STARTED"])).field == "edges.0.on.0"
    assert refused(nodes={}, edges=[]).field == "nodes"
    assert "at most 45 leaves" in str(compiled_error(*(f"n{number} -> z" for number in range(46))))


def compiled_error(*edges: str) -> str:
    with pytest.raises(SluiceError) as found:
        compile.compiled(NAME, made(*edges))
    assert str(found.value.field).startswith("nodes.z")
    return found.value.message


def test_w4_a_dag_becomes_a_start_and_a_schedule_for_each_node() -> None:
    found = compile.compiled(NAME, made(*DIAMOND[:3], edge("c -> d", within="2h", on=["COMPLETED"])))
    graph = found.graph
    assert set(found.schedules) == {f"{NAME}~", *(f"{graph}~{node}" for node in "abcd")}
    assert list(found.schedules)[-1] == f"{NAME}~", "the start comes last: what it reaches is there by then"
    assert found.start.workflow == graph

    answer = found.nodes["d"].model_dump(mode="json")
    assert answer["by"] == ["~dag"]
    assert answer["trigger"]["type"] == "all"
    assert [(leaf["workflow"], leaf["schedule"]) for leaf in answer["trigger"]["triggers"]] == [
        ("demo.flights.w_b", f"{graph}~b"),
        ("demo.flights.w_c", f"{graph}~c"),
    ]
    [fresh] = answer["constraints"]
    assert (fresh["workflows"], fresh["within"], fresh["on_unmet"]) == (["demo.flights.w_c"], "2h", "abort")
    assert found.nodes["a"].model_dump(mode="json")["trigger"]["schedule"] == f"{NAME}~"


def test_w4_equal_graphs_make_equal_schedules_and_others_differ() -> None:
    one = compile.compiled(NAME, made(*DIAMOND))
    again = compile.compiled(
        NAME, made(*DIAMOND, description="reported", trigger={"type": "time", "expression": "@daily"}, by=[])
    )
    other = compile.compiled(NAME, made(*DIAMOND[:3], edge("c -> d", on=["FAILED"])))
    assert one.nodes == again.nodes
    assert one.graph == again.graph
    assert not set(one.schedules) & set(other.schedules) - {f"{NAME}~"}


def test_w4_generated_dag_names_are_recognized() -> None:
    start, graph, node = "demo.flights.daily~", "demo.flights.daily~0a1b2c3d", "demo.flights.daily~0a1b2c3d~clean"
    for own in (start, graph, node):
        assert ids.is_of_dag(own)
        assert ids.dag_of(own) == NAME
        assert not ids.is_of_message(own)
    assert [ids.is_dag_graph(own) for own in (start, graph, node)] == [False, True, False]
    for other in (NAME, "demo.flights.~m", "demo.flights.~"):
        assert not ids.is_of_dag(other)
        assert not ids.is_dag_graph(other)


@pytest.mark.parametrize("round_", [Round("a.b.c~.1.x"), Round("a.b.c~.1.x", 12), Round("a.b.c~.1.x", 3, alone=True)])
def test_w4_a_round_is_parsed_as_it_was_written(round_: Round) -> None:
    assert rounds.parse(str(round_)) == round_


def test_w4_the_status_of_a_node_rerun_alone_has_no_dag_key() -> None:
    day = {"day": "1"}
    assert rounds.announced(run(partition={**day, "~dag": "r/2!"})) == day
    assert rounds.announced(run(partition={**day, "~dag": "r/2"})) == {**day, "~dag": "r/2"}
    assert rounds.announced(run(partition={"~dag": "r/2!"})) is None
    assert rounds.announced(run(partition=day)) == day


def test_w15_a_rerun_node_has_no_dag_key_but_a_rerun_start_has() -> None:
    inside = {"day": "1", "~dag": "r/1"}
    assert rounds.announced(run(partition=inside, rerun_of="r0")) == {"day": "1"}
    start = {"schedule": "demo.flights.daily~", "workflow": "demo.flights.daily~0a1b2c3d"}
    assert rounds.announced(run(partition=inside, rerun_of="r0", **start)) == inside


def test_w4_runs_outside_a_dag_have_no_dag_key() -> None:
    assert rounds.of_run(run()) is None


@st.composite
def graphs(draw: st.DrawFn) -> list[str]:
    """Edges from earlier to later names: a graph without a cycle."""
    names = "abcdefg"[: draw(st.integers(2, 7))]
    pairs = [f"{one} -> {other}" for number, one in enumerate(names) for other in names[number + 1 :]]
    return draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))


def test_w18_a_list_of_nodes_stands_for_an_edge_of_each() -> None:
    lists = {"from": ["a", "b"], "to": ["c", "d"], "on": ["FAILED"]}
    short = made(nodes=FIVE, edges=[lists, edge("c -> e")])
    long = made(*(edge(f"{one} -> {two}", on=["FAILED"]) for one in "ab" for two in "cd"), "c -> e", nodes=FIVE)
    assert short.model_dump() == long.model_dump()
    assert compile.graph_of(NAME, short) == compile.graph_of(NAME, long)


@pytest.mark.parametrize(
    ("edges", "field", "message"),
    [
        ([{"from": ["a", "b"], "to": "c"}, edge("c -> z")], "edges.1.to", "expected the name of a node of this DAG"),
        ([{"from": ["a", "z"], "to": "c"}], "edges.0.from", "expected the name of a node of this DAG, got 'z'"),
        ([{"from": ["a", "a"], "to": "c"}], "edges.0", "got 'a second one from a to c'"),
        ([{"from": [], "to": "c"}], "edges.0.from", "expected the name of a node, or a list of names, got []"),
        ([{"from": ["a", 3], "to": "c"}], "edges.0.from", "expected text, got 3"),
        ([{"from": ["a", "b"], "to": "c"}, edge("c -> e", iff={})], "edges.1.iff", "unknown field 'iff'"),
        ([{"from": ["a", "b"], "to": "c"}, edge("c -> e", within="1h")], "edges.1.within", "expected no within"),
        ([{"from": ["a", ["b"]], "to": "c"}], "edges.0.from", "expected the name of a node, or a list of names"),
    ],
)
def test_w18_an_error_names_the_edge_as_it_was_written(edges: list[Any], field: str, message: str) -> None:
    late = {"e": {"workflow": "w", "when": "all_done"}}
    with pytest.raises((ValidationError, SluiceError)) as found:
        definition_dag.NewDag.model_validate(dag(nodes=FIVE | late, edges=edges))
    error = from_validation(found.value) if isinstance(found.value, ValidationError) else found.value
    assert (error.field, message in error.message) == (field, True), error.message


def test_w18_lists_count_as_the_edges_for_which_they_stand() -> None:
    many = {f"n{number}": {"workflow": "w"} for number in range(100)}
    names = sorted(many)
    error = refused(nodes=many, edges=[{"from": names[:40], "to": names[40:]}])
    assert (error.field, error.message) == ("edges", "expected at most 1000 edges, got 2400")


def test_w18_all_patterns_of_a_dag_together_are_bounded() -> None:
    pattern = {"if": {"x": [{"prefix": str(number)} for number in range(60)]}}
    error = refused(edge("a -> b", **pattern), edge("a -> c", **pattern))
    assert error.field == "edges"
    assert error.message == "expected at most 100 operators in the patterns of all edges, got 120"


@given(graphs(), st.randoms(use_true_random=False))
def test_w4_a_graph_has_an_order_and_an_edge_against_it_is_cycle(edges: list[str], chance: Any) -> None:
    graph = made(*edges)
    order = definition_dag.in_order(graph)
    assert sorted(order) == sorted(graph.nodes)
    assert all(order.index(each.from_) < order.index(each.to) for each in graph.edges)

    first = chance.choice(order)
    below = definition_dag.downstream(graph, first)
    assert first in below
    assert all(each.to in below for each in graph.edges if each.from_ in below)
    last = chance.choice(sorted(below))
    error = refused(*edges, f"{last} -> {first}")
    assert error.code == "cycle"
    assert error.message.count(" -> ") >= 1
