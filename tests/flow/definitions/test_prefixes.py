"""Prefixes have owners: nesting across namespaces, Sluice's own folders, and what a namespace may take (O14)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from chalicelib.core.definitions.app import App
from chalicelib.core.definitions.dataset import Dataset
from chalicelib.core.errors import SluiceError
from chalicelib.core.rows.definition import Definition, PrefixRow
from chalicelib.core.why import Mention
from chalicelib.flow.definitions import prefixes, store
from chalicelib.flow.definitions.prefixes import Place
from chalicelib.flow.deploy import deploy
from tests.support.archives import MemoryArchive, exported, imported
from tests.support.crash import lost, wrap
from tests.support.crossings import at_each_call, cross
from tests.support.snapshot import Start
from tests.support.world import World

LAKE = "lake-bucket"
OUTER, INNER = "raw/orders/", "raw/orders/day=02/"
AWAY = "apart from those of other namespaces"


def shared(*namespaces: str, mode: str = "enforce", **tuned: Any) -> World:
    """An installation that teams share."""
    world = World(authorization=mode, **tuned)
    for name in namespaces or ("alpha", "beta"):
        store.put(world.ports, "namespace", name, {}, "tester")
    return world


def free(world: World, *names: str) -> None:
    """Let namespaces have any prefix of the lake."""
    for name in names or ("alpha", "beta"):
        world.allow(name, buckets=[f"s3://{LAKE}/"])


def body(prefix: str, bucket: str = "lake", **fields: Any) -> dict[str, Any]:
    keys = {} if fields.get("format") == "iceberg" else {"keys": ["hour"]}
    return Dataset.model_validate({"bucket": bucket, "prefix": prefix, **keys, **fields}).model_dump(mode="json")


def put(world: World, name: str, prefix: str, bucket: str = "lake", **fields: Any) -> None:
    store.put(world.ports, "dataset", name, body(prefix, bucket, **fields), "tester")


def deployed(world: World, name: str, prefix: str, bucket: str = "lake", **fields: Any) -> None:
    namespace, _, short = name.partition(".")
    app = App.model_validate({"datasets": {short: body(prefix, bucket, **fields)}})
    deploy.deploy(world.ports, namespace, "app", app, "tester")


def dry_run(world: World, name: str, prefix: str, bucket: str = "lake", **fields: Any) -> None:
    """The same request as a dry run, and then for good: both say the same."""
    namespace, _, short = name.partition(".")
    app = App.model_validate({"datasets": {short: body(prefix, bucket, **fields)}})
    deploy.dry_run(world.ports, namespace, "app", app)
    deploy.deploy(world.ports, namespace, "app", app, "tester")


WAYS = [put, deployed, dry_run]


def give(world: World, namespace: str, prefix: str, nested: bool = False, bucket: str = LAKE) -> bool:
    return prefixes.give(world.ports, namespace, Place(bucket, prefix), nested)[1]


def take(world: World, namespace: str, prefix: str) -> None:
    prefixes.take(world.ports, namespace, Place(LAKE, prefix))


def refused(act: Callable[[], Any], code: str, match: str) -> SluiceError:
    with pytest.raises(SluiceError, match=match) as raised:
        act()
    assert raised.value.code == code and raised.value.hint
    return raised.value


def owner_of(world: World, key: str) -> str | None:
    """The dataset that gets an object."""
    found = world.ports.catalog.dataset_of(LAKE, key)
    return found[0] if found is not None else None


# -- nesting across namespaces -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", [{}, {"format": "iceberg"}])
def test_o14_a_prefix_around_that_of_another_is_refused(way: Callable[..., None], form: dict[str, Any]) -> None:
    world = shared()
    free(world)
    put(world, "beta.day", INNER, **form)
    error = refused(lambda: way(world, "alpha.orders", OUTER, **form), "conflict", AWAY)
    assert error.said.names == (Mention(f"beta.day ({INNER})", "other", "beta.day"),)
    assert "which lies around dataset beta.day" in error.message
    hidden = error.concealing(lambda name: name.startswith("alpha"))
    assert "beta" not in str(hidden.to_dict()) and INNER not in str(hidden.to_dict())
    assert f"sluice prefixes give alpha s3://{LAKE}/{OUTER} --nested" in str(hidden.hint)
    assert world.ports.rows.get(Definition, "dataset", "alpha.orders") is None
    assert owner_of(world, f"{OUTER}day=03/hour=04/x") is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", [{}, {"format": "iceberg"}])
def test_o14_a_prefix_in_that_of_another_is_refused(way: Callable[..., None], form: dict[str, Any]) -> None:
    world = shared()
    free(world)
    put(world, "alpha.orders", OUTER, **form)
    error = refused(lambda: way(world, "beta.day", INNER, **form), "conflict", AWAY)
    assert f"which lies in dataset alpha.orders ({OUTER})" in error.message
    hint = str(error.concealing(lambda name: name.startswith("beta")).hint)
    assert "by a grant of its namespace" in hint and "sluice prefixes give beta" in hint
    assert owner_of(world, f"{INNER}hour=04/x") == "alpha.orders"


@pytest.mark.parametrize("way", WAYS)
def test_o14_neighbours_and_own_nesting_stay_allowed(way: Callable[..., None]) -> None:
    world = shared()
    free(world)
    way(world, "alpha.orders", OUTER)
    way(world, "alpha.day", INNER)
    way(world, "alpha.all", "raw/mine/")
    for number, prefix in enumerate(("raw/orders-2/", "raw/orders_/", "RAW/orders/", "raw/orders%2F/", "raw/order/")):
        way(world, f"beta.d{number}", prefix)
    assert owner_of(world, f"{INNER}hour=04/x") == "alpha.day"
    assert owner_of(world, "raw/orders-2/hour=04/x") == "beta.d0"
    assert owner_of(world, "RAW/orders/hour=04/x") == "beta.d2"
    assert owner_of(world, "raw/orders%2F/hour=04/x") == "beta.d3"


def test_o14_another_bucket_has_other_prefixes() -> None:
    world = shared(watched_buckets=("acme-lake",))
    free(world, "alpha")
    world.allow("beta", buckets=["s3://acme-lake/"])
    put(world, "alpha.orders", OUTER)
    put(world, "beta.day", INNER, bucket="acme-lake")


@pytest.mark.parametrize(("mode", "is_logged"), [("observe", True), ("off", False)])
def test_o14_nesting_is_logged_or_free_without_roles(
    monkeypatch: pytest.MonkeyPatch, mode: str, is_logged: bool
) -> None:
    logged: list[str] = []
    monkeypatch.setattr("chalicelib.log.logger.warning", lambda message, extra: logged.append(message))
    world = shared(mode=mode)
    put(world, "beta.day", INNER)
    put(world, "alpha.orders", OUTER)
    assert ("dataset would be refused" in logged) is is_logged
    refused(lambda: put(world, "alpha.day", INNER), "conflict", "expected a prefix of its own")


# -- what an administrator gives ---------------------------------------------------------------------------------------


def test_o14_an_administrator_may_nest_an_inner_prefix() -> None:
    world = shared()
    free(world, "alpha")
    put(world, "alpha.orders", OUTER)
    shown = refused(lambda: give(world, "beta", INNER), "conflict", r"lies in dataset alpha.orders \(raw/orders/\)")
    assert "--nested" in str(shown.hint)
    assert give(world, "beta", INNER, nested=True)
    assert not give(world, "beta", INNER, nested=True)
    assert owner_of(world, f"{INNER}hour=04/x") is None, "the objects of the owner alone, who has no dataset yet"
    assert owner_of(world, "raw/orders/day=03/hour=04/x") == "alpha.orders"
    refused(lambda: put(world, "alpha.day", INNER), "conflict", "which belongs to namespace beta")
    error = refused(lambda: put(world, "alpha.day", f"{INNER}x/"), "conflict", rf"in namespace beta \({INNER}\)")
    assert INNER in error.concealing(lambda name: name.partition(".")[0] in ("alpha", "beta")).message
    assert "namespace beta" not in error.concealing(lambda name: name.partition(".")[0] == "alpha").message
    put(world, "beta.day", INNER)
    put(world, "beta.x", f"{INNER}x/")
    assert owner_of(world, f"{INNER}hour=04/x") == "beta.day"


def test_o14_an_administrator_may_nest_an_outer_prefix() -> None:
    world = shared()
    free(world, "beta")
    put(world, "beta.day", INNER)
    refused(lambda: give(world, "alpha", OUTER), "conflict", rf"around dataset beta.day \({INNER}\)")
    assert give(world, "alpha", OUTER, nested=True)
    put(world, "alpha.orders", OUTER)
    assert owner_of(world, f"{INNER}hour=04/x") == "beta.day"
    assert owner_of(world, "raw/orders/day=03/hour=04/x") == "alpha.orders"


def test_o14_one_prefix_never_gets_two_owners() -> None:
    world = shared("alpha", "beta", "gamma")
    free(world, "alpha")
    put(world, "alpha.orders", OUTER)
    error = refused(lambda: give(world, "beta", OUTER, nested=True), "conflict", "belongs to dataset alpha.orders")
    assert "delete dataset alpha.orders first, or give it another prefix" in str(error.hint)
    assert give(world, "alpha", OUTER)
    store.delete(world.ports, "dataset", "alpha.orders")
    error = refused(lambda: give(world, "beta", OUTER, nested=True), "conflict", "belongs to namespace alpha")
    assert f"sluice prefixes take alpha s3://{LAKE}/{OUTER}" in str(error.hint)
    take(world, "alpha", OUTER)
    assert give(world, "beta", OUTER)
    refused(lambda: take(world, "alpha", OUTER), "not_found", "given to namespace alpha")


def test_o14_what_cannot_be_given_is_refused() -> None:
    world = shared()
    refused(lambda: give(world, "nobody", OUTER), "not_found", "no namespace named")
    refused(lambda: give(world, "alpha", OUTER, bucket="elsewhere"), "invalid", "a bucket that this installation")
    refused(lambda: give(world, "alpha", "history/x/", nested=True), "invalid", "folders of Sluice")
    refused(lambda: take(world, "alpha", OUTER), "not_found", "given to namespace alpha")
    assert not world.ports.catalog.prefixes_in(LAKE, "", 9, None).items


@pytest.mark.parametrize("mode", ["enforce", "observe", "off"])
@pytest.mark.parametrize("way", WAYS)
def test_o14_folders_that_cannot_be_compared_are_refused(way: Callable[..., None], mode: str) -> None:
    """Jobs resolve ``..``. The folders of an object are looked up to a depth of 50."""
    world = shared("alpha", mode=mode)
    put(world, "alpha.mine", "alpha/")
    give(world, "alpha", "raw/")
    for prefix in ("alpha/../beta/orders/", "raw/../history/", "raw/./orders/", "../", "raw/..%2F/../"):
        refused(lambda p=prefix: way(world, "alpha.x", p), "invalid", "without the folders . and ..")
        refused(lambda p=prefix: give(world, "alpha", p), "invalid", "without the folders . and ..")
    refused(lambda: way(world, "alpha.x", "r/" * 51), "invalid", "at most 50 folders, got 51")
    refused(lambda: give(world, "alpha", "r/" * 51), "invalid", "at most 50 folders, got 51")
    way(world, "alpha.deep", "r/" * 50)
    way(world, "alpha.dots", "raw/.../.x/..y/")
    assert owner_of(world, "r/" * 50 + "hour=04/x") == "alpha.deep"


def test_o14_a_stored_prefix_with_dots_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = shared("alpha")
    with monkeypatch.context() as patched:
        patched.setattr("chalicelib.core.definitions.prefixes.check_folders", lambda prefix: None)
        put(world, "alpha.x", "raw/../orders/")
        give(world, "alpha", "raw/./")
    put(world, "alpha.x", "raw/../orders/", priority=3)
    deployed(world, "alpha.x", "raw/../orders/", priority=4)
    assert owner_of(world, "raw/../orders/hour=04/x") == "alpha.x"
    take(world, "alpha", "raw/./")


@pytest.mark.parametrize("way", WAYS)
def test_o14_a_given_prefix_needs_no_entry_in_a_list(way: Callable[..., None]) -> None:
    world = shared()
    world.allow("alpha", buckets=[f"s3://{LAKE}/alpha/"])
    refused(lambda: way(world, "alpha.orders", OUTER), "invalid", "that namespace alpha may use")
    give(world, "alpha", OUTER)
    way(world, "alpha.orders", OUTER)
    way(world, "alpha.day", INNER)
    refused(lambda: way(world, "alpha.all", "raw/"), "invalid", "that namespace alpha may use")
    take(world, "alpha", OUTER)
    refused(lambda: way(world, "alpha.next", f"{OUTER}day=03/"), "invalid", "that namespace alpha may use")


def test_o14_a_prefix_without_data_is_free_unless_it_was_given() -> None:
    """Without data, it would block others for nothing."""
    world = shared()
    free(world)
    put(world, "alpha.orders", OUTER)
    store.delete(world.ports, "dataset", "alpha.orders")
    put(world, "beta.orders", OUTER)
    store.delete(world.ports, "dataset", "beta.orders")
    assert not world.ports.catalog.prefixes_in(LAKE, "", 9, None).items
    give(world, "alpha", OUTER)
    put(world, "alpha.orders", OUTER)
    store.delete(world.ports, "dataset", "alpha.orders")
    refused(lambda: put(world, "beta.orders", OUTER), "conflict", "belongs to namespace alpha")
    put(world, "alpha.again", OUTER, format="iceberg")
    put(world, "alpha.again", "raw/elsewhere/", format="iceberg")
    refused(lambda: put(world, "beta.orders", INNER), "conflict", AWAY)


def test_o14_a_dataset_stays_when_its_prefix_is_taken_back() -> None:
    world = shared()
    free(world, "beta")
    put(world, "beta.day", INNER)
    give(world, "alpha", OUTER, nested=True)
    put(world, "alpha.orders", OUTER)
    take(world, "alpha", OUTER)
    put(world, "alpha.orders", OUTER, priority=3)
    deployed(world, "alpha.orders", OUTER, priority=4)
    assert owner_of(world, "raw/orders/day=03/hour=04/x") == "alpha.orders"
    [outer] = [row for row in world.ports.catalog.prefixes_in(LAKE, "", 9, None).items if row.prefix == OUTER]
    assert (outer.dataset, outer.owner, outer.namespace) == ("alpha.orders", "", "alpha")


def test_o14_snapshots_before_a_put_do_not_count_where_given() -> None:
    world = shared()
    give(world, "alpha", OUTER)
    world.clock.pass_by("1h")
    put(world, "alpha.orders", OUTER, format="iceberg")
    row = world.ports.rows.get(PrefixRow, LAKE, OUTER)
    assert row is not None and row.since == world.clock.now()


def test_o14_a_deleted_namespace_leaves_no_prefix_to_the_next() -> None:
    world = shared()
    give(world, "alpha", OUTER)
    give(world, "beta", "raw/beta/")
    store.delete(world.ports, "namespace", "alpha")
    assert [row.owner for row in world.ports.catalog.prefixes_in(LAKE, "", 9, None).items] == ["beta"]


def owners(world: World) -> list[str]:
    return [row.owner for row in world.ports.catalog.prefixes_in(LAKE, "", 9, None).items]


def test_o14_a_namespace_that_stays_keeps_its_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its deletion fails, because another request has replaced it."""
    world = shared()
    give(world, "alpha", OUTER)

    def replaced(ports: Any, row: Any) -> None:
        store.put(ports, "namespace", "alpha", {"description": "new"}, "other")
        raise SluiceError("changed_meanwhile", "expected the version that was read", None, "repeat the request")

    monkeypatch.setattr(store, "remove", replaced)
    refused(lambda: store.delete(world.ports, "namespace", "alpha"), "changed_meanwhile", "version")
    assert owners(world) == ["alpha"]


def died_before_the_sweep(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deletion of a namespace that ends after the namespace is gone."""
    remove = store.remove

    def removed(ports: Any, row: Any) -> None:
        remove(ports, row)
        raise ZeroDivisionError

    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(store, "remove", removed)
        store.delete(world.ports, "namespace", "alpha")
    assert owners(world) == ["alpha"]


def test_o14_a_repeated_deletion_takes_the_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = shared()
    give(world, "alpha", OUTER)
    died_before_the_sweep(world, monkeypatch)
    refused(lambda: store.delete(world.ports, "namespace", "alpha"), "not_found", "no namespace named")
    assert owners(world) == []


def test_o14_a_new_namespace_has_no_prefix_of_a_former_one(monkeypatch: pytest.MonkeyPatch) -> None:
    source = shared("alpha")
    archive = exported(source, "alpha")
    world = shared()
    give(world, "alpha", OUTER)
    died_before_the_sweep(world, monkeypatch)
    store.put(world.ports, "namespace", "alpha", {}, "tester")
    assert owners(world) == []
    give(world, "alpha", OUTER)
    died_before_the_sweep(world, monkeypatch)
    imported(world, archive)
    assert owners(world) == []


def test_o14_what_a_new_namespace_gets_stays_with_it() -> None:
    """The deletion of the former one of its name is at work meanwhile."""

    def build() -> World:
        world = shared()
        give(world, "alpha", OUTER)
        return world

    start = Start(build)

    def renewed(world: World) -> None:
        store.put(world.ports, "namespace", "alpha", {}, "tester")
        give(world, "alpha", OUTER)

    def play(before: int | None) -> int:
        world = start.again()
        calls = cross(
            world,
            before,
            lambda: renewed(world),
            lambda: attempted(lambda: store.delete(world.ports, "namespace", "alpha")),
        )
        exists = world.ports.rows.get(Definition, "namespace", "alpha") is not None
        assert owners(world) == (["alpha"] if exists else [])
        return calls

    at_each_call(play, least=5)


# -- Sluice's own folders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["enforce", "observe", "off"])
def test_o14_the_folders_of_sluice_are_reserved(way: Callable[..., None], mode: str) -> None:
    world = shared("alpha", mode=mode, watched_buckets=("control", "records"), audit_bucket="records")
    for bucket, prefix in (
        ("lake", "history/"), ("lake", "history/day=2026-03-01/"), ("lake", "history_late/"), ("lake", "audit/x/"),
        ("control", "code/alpha/"), ("control", "context/"), ("control", "anything/"), ("records", "audit/"),
    ):  # fmt: skip
        error = refused(lambda b=bucket, p=prefix: way(world, "alpha.x", p, bucket=b), "invalid", "folders of Sluice")
        assert error.field is not None and error.field.endswith("prefix")
    way(world, "alpha.x", "raw/history/")
    way(world, "alpha.y", "audit-2/")
    way(world, "alpha.z", "orders/", bucket="records")


@pytest.mark.parametrize("others", [(), ("alpha", "beta")])
def test_o14_the_app_of_sluice_may_use_its_own_folders(others: tuple[str, ...]) -> None:
    world = shared("system", *others)
    put(world, "system.late", "history_late/")
    assert owner_of(world, "history_late/hour=1/x") == "system.late"


def test_o14_the_app_of_sluice_takes_any_prefix() -> None:
    world = shared("alpha", "beta", "system")
    put(world, "system.x", "raw/sys/")


def test_o14_foreign_objects_are_those_of_the_dataset_there() -> None:
    """An inner prefix that was given, and has no dataset: the dataset around it gets its objects."""
    world = shared()
    free(world)
    put(world, "beta.all", "raw/")
    give(world, "beta", "raw/x/")
    assert prefixes.is_foreign(world.ports, "alpha", Place(LAKE, "raw/x/"))
    world.grant("beta", {"grants": [{"to": "alpha", "datasets": ["all"]}]})
    assert owner_of(world, "raw/x/hour=04/x") == "beta.all"
    assert not prefixes.is_foreign(world.ports, "alpha", Place(LAKE, "raw/x/"))


# -- what a namespace may take -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_o14_the_only_namespace_may_take_any_prefix(way: Callable[..., None]) -> None:
    world = shared("alpha", "system")
    way(world, "alpha.orders", OUTER)
    way(world, "alpha.weather", "beta/weather/")


@pytest.mark.parametrize("way", WAYS)
def test_o14_with_a_second_namespace_a_prefix_must_be_owned(way: Callable[..., None]) -> None:
    world = shared()
    for prefix in ("raw/", "raw/alpha/", "alpha-2/", "ALPHA/", "beta/"):
        error = refused(lambda p=prefix: way(world, "alpha.x", p), "invalid", "a prefix in the folder alpha/")
        assert f"sluice prefixes give alpha s3://{LAKE}/{prefix}" in str(error.hint)
    way(world, "alpha.mine", "alpha/")
    way(world, "alpha.inside", "alpha/raw/orders/")
    way(world, "beta.mine", "beta/raw/orders/")
    give(world, "alpha", "raw/alpha/")
    way(world, "alpha.given", "raw/alpha/orders/")
    refused(lambda: way(world, "beta.x", "raw/beta/"), "invalid", "a prefix in the folder beta/")
    world.allow("beta", buckets=[f"s3://{LAKE}/raw/beta/"])
    way(world, "beta.x", "raw/beta/")
    refused(lambda: way(world, "beta.y", "raw/gamma/"), "invalid", "that namespace beta may use")


def test_o14_what_the_first_namespace_has_goes_on_to_work() -> None:
    world = shared("alpha")
    put(world, "alpha.orders", OUTER)
    put(world, "alpha.theirs", "beta/landed/")
    store.put(world.ports, "namespace", "beta", {}, "tester")
    for way in WAYS:
        way(world, "alpha.orders", OUTER, priority=WAYS.index(way))
    put(world, "alpha.day", INNER)
    put(world, "alpha.orders", f"{OUTER}v2/")
    put(world, "beta.own", "beta/own/")
    refused(lambda: put(world, "beta.all", "beta/"), "conflict", AWAY)
    refused(lambda: put(world, "beta.in", "beta/landed/x/"), "conflict", AWAY)
    assert owner_of(world, "beta/landed/hour=04/x") == "alpha.theirs"


@pytest.mark.parametrize("way", WAYS)
def test_o14_the_hint_at_another_format_leads_to_a_dataset(way: Callable[..., None]) -> None:
    world = shared("alpha")
    put(world, "alpha.orders", OUTER)
    put(world, "alpha.mine", "alpha/mine/")
    alone = refused(lambda: way(world, "alpha.orders", OUTER, format="iceberg"), "invalid", "the format that")
    assert str(alone.hint).startswith("delete the dataset and create it again")
    store.put(world.ports, "namespace", "beta", {}, "tester")
    beside = refused(lambda: way(world, "alpha.orders", OUTER, format="iceberg"), "invalid", "the format that")
    assert f"sluice prefixes give alpha s3://{LAKE}/{OUTER}, then delete the dataset" in str(beside.hint)
    own = refused(lambda: way(world, "alpha.mine", "alpha/mine/", format="iceberg"), "invalid", "the format that")
    assert own.hint == alone.hint
    free(world, "alpha")
    listed = refused(lambda: way(world, "alpha.orders", OUTER, format="iceberg"), "invalid", "the format that")
    assert listed.hint == alone.hint
    world.allow("alpha")
    give(world, "alpha", OUTER)
    given = refused(lambda: way(world, "alpha.orders", OUTER, format="iceberg"), "invalid", "the format that")
    assert given.hint == alone.hint
    store.delete(world.ports, "dataset", "alpha.orders")
    way(world, "alpha.orders", OUTER, format="iceberg")


def test_o14_a_document_cannot_take_a_prefix_that_it_releases() -> None:
    """Each dataset is put by itself: the second one finds a prefix that nobody owns any more."""
    world = shared("alpha")
    put(world, "alpha.orders", OUTER)
    put(world, "alpha.kept", "raw/kept/")
    store.put(world.ports, "namespace", "beta", {}, "tester")

    def moved(**datasets: str) -> None:
        app = App.model_validate({"datasets": {name: body(prefix) for name, prefix in datasets.items()}})
        deploy.deploy(world.ports, "alpha", "app", app, "tester")

    before = world.ports.rows.get(Definition, "dataset", "alpha.orders")
    error = refused(lambda: moved(orders="alpha/orders/", again=OUTER), "invalid", "a prefix in the folder alpha/")
    assert error.field == "datasets.again.prefix"
    assert world.ports.rows.get(Definition, "dataset", "alpha.orders") == before
    moved(inner=INNER, orders="alpha/orders/", again=f"{INNER}x/")
    give(world, "alpha", "raw/kept/")
    moved(kept="alpha/kept/", instead="raw/kept/")
    assert owner_of(world, "raw/kept/hour=04/x") == "alpha.instead"


def test_o14_two_datasets_of_one_document_never_share_a_prefix() -> None:
    world = shared("alpha")
    app = App.model_validate({"datasets": {name: body(OUTER) for name in ("one", "two")}})
    error = refused(lambda: deploy.deploy(world.ports, "alpha", "app", app, "t"), "conflict", "belongs to dataset")
    assert error.field == "datasets.two.prefix"


# -- rows of older code, moves -----------------------------------------------------------------------------------------


def test_o14_nested_datasets_from_before_go_on() -> None:
    """Without owners on record, each dataset owns its prefix."""
    world = shared(mode="off")
    put(world, "beta.day", INNER)
    put(world, "alpha.orders", OUTER)
    assert owner_of(world, f"{INNER}hour=04/x") == "beta.day"
    assert owner_of(world, "raw/orders/day=03/hour=04/x") == "alpha.orders"


def test_o14_a_prefix_that_was_given_moves_with_its_namespace() -> None:
    world = shared()
    free(world, "beta")
    give(world, "alpha", OUTER)
    put(world, "alpha.orders", OUTER)
    give(world, "alpha", "raw/later/")
    put(world, "beta.x", "raw/beta/")
    new = shared("gamma")
    free(new, "gamma")
    put(new, "gamma.x", "raw/gamma/")
    imported(new, exported(world, "alpha"), copy=True)
    found = {row.prefix: row.namespace for row in new.ports.catalog.prefixes_in(LAKE, "", 9, None).items}
    assert found == {OUTER: "alpha", "raw/later/": "alpha", "raw/gamma/": "gamma"}
    refused(lambda: put(new, "gamma.y", "raw/later/x/"), "conflict", AWAY)
    put(new, "alpha.later", "raw/later/x/")


@pytest.mark.parametrize(("here", "is_nested"), [(OUTER, False), (INNER, True), ("raw/", True)])
def test_o14_an_import_beside_the_prefixes_of_others_is_refused(here: str, is_nested: bool) -> None:
    world = shared("alpha")
    put(world, "alpha.orders", OUTER)
    new = shared("gamma")
    put(new, "gamma.x", here)
    before = dict(enumerate(new.tables.rows()))
    error = refused(
        lambda: imported(new, exported(world, "alpha"), copy=True), "conflict", f"{OUTER} of alpha.orders beside"
    )
    assert "gamma.x" in error.message
    assert dict(enumerate(new.tables.rows())) == before
    if is_nested:
        give(world, "alpha", OUTER)
        imported(new, exported(world, "alpha"), copy=True)
        assert owner_of(new, f"{OUTER}hour=04/x") == "alpha.orders"


def died_before_its_doors(world: World, archive: MemoryArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import that ends after all rows but the entry rows are there."""
    with monkeypatch.context() as patched:
        patched.setattr("chalicelib.flow.archive.sharing.count", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            imported(world, archive)


@pytest.mark.parametrize("here", [OUTER, INNER, "raw/"])
def test_o14_a_resumed_import_compares_prefixes_again(here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = shared("alpha")
    put(world, "alpha.orders", OUTER)
    archive = exported(world, "alpha")
    new = shared("gamma")
    died_before_its_doors(new, archive, monkeypatch)
    put(new, "gamma.x", here)
    refused(lambda: imported(new, archive), "conflict", f"{OUTER} of alpha.orders beside")
    assert owner_of(new, f"{here}hour=04/x") == "gamma.x"
    assert new.ports.rows.get(Definition, "namespace", "alpha") is None
    store.delete(new.ports, "dataset", "gamma.x")
    imported(new, archive)
    imported(new, archive)
    assert owner_of(new, f"{INNER}hour=04/x") == "alpha.orders"


@pytest.mark.parametrize("mode", ["enforce", "observe", "off"])
def test_o14_an_import_leaves_the_folders_of_sluice(mode: str) -> None:
    world = shared("alpha", watched_buckets=("acme",))
    put(world, "alpha.orders", "history/", bucket="acme")
    new = shared("gamma", mode=mode)
    archive = exported(world, "alpha")
    refused(lambda: imported(new, archive, buckets={"acme": LAKE}), "invalid", "folders of Sluice")
    assert not new.ports.catalog.prefixes_in(LAKE, "", 9, None).items
    imported(new, archive)


@pytest.mark.parametrize("mode", ["enforce", "observe", "off"])
def test_o14_an_import_never_merges_two_prefixes(mode: str) -> None:
    world = shared("alpha", watched_buckets=("acme", "acme-2"))
    put(world, "alpha.a", OUTER, bucket="acme")
    put(world, "alpha.b", OUTER, bucket="acme-2")
    new = shared("gamma", mode=mode)
    archive = exported(world, "alpha")
    both = {"acme": LAKE, "acme-2": LAKE}
    refused(lambda: imported(new, archive, buckets=both), "conflict", r"of alpha\.[ab] beside .* of alpha\.[ab]")
    imported(new, archive, buckets={"acme": LAKE})
    assert owner_of(new, f"{OUTER}hour=04/x") == "alpha.a"


@pytest.mark.parametrize(("mode", "is_logged"), [("observe", True), ("off", False)])
def test_o14_a_nested_import_is_logged_or_free_without_roles(
    monkeypatch: pytest.MonkeyPatch, mode: str, is_logged: bool
) -> None:
    logged: list[str] = []
    monkeypatch.setattr("chalicelib.log.logger.warning", lambda message, extra: logged.append(message))
    world = shared("alpha")
    put(world, "alpha.orders", OUTER)
    new = shared("gamma", mode=mode)
    put(new, "gamma.x", INNER)
    imported(new, exported(world, "alpha"))
    assert ("import would be refused" in logged) is is_logged
    assert owner_of(new, f"{INNER}hour=04/x") == "gamma.x"


def test_o14_namespaces_that_arrive_together_stay_nested() -> None:
    """Theirs are from before prefixes had owners."""
    world = shared(mode="off")
    put(world, "beta.day", INNER)
    put(world, "alpha.orders", OUTER)
    new = shared("gamma")
    archive = exported(world, "alpha", "beta")
    imported(new, archive)
    imported(new, archive)
    assert owner_of(new, f"{INNER}hour=04/x") == "beta.day"


# -- races -------------------------------------------------------------------------------------------------------------

ACTS: dict[str, Callable[[World], Any]] = {
    "outer": lambda world: put(world, "alpha.orders", OUTER),
    "inner": lambda world: put(world, "beta.day", INNER),
    "same": lambda world: put(world, "beta.orders", OUTER),
    "given": lambda world: give(world, "beta", INNER),
    "moved": lambda world: put(world, "alpha.moved", OUTER),
    "deployed": lambda world: deployed(world, "beta.day", INNER),
}


def ready() -> World:
    world = shared()
    free(world)
    put(world, "alpha.moved", "alpha/moved/")
    return world


def attempted(act: Callable[[], Any]) -> bool:
    """Whether an act was carried out, and not refused."""
    try:
        act()
    except SluiceError as error:
        assert error.code in ("conflict", "changed_meanwhile"), error
        return False
    return True


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("outer", "inner"), ("inner", "outer"), ("outer", "same"), ("same", "outer"), ("outer", "given"),
        ("given", "outer"), ("moved", "inner"), ("inner", "moved"), ("deployed", "outer"), ("outer", "deployed"),
    ],
)  # fmt: skip
def test_o14_of_two_puts_at_the_same_time_one_wins(first: str, second: str) -> None:
    start = Start(ready)

    def play(before: int | None) -> int:
        world = start.again()
        won: list[bool] = []
        calls = cross(
            world,
            before,
            lambda: won.append(attempted(lambda: ACTS[second](world))),
            lambda: won.append(attempted(lambda: ACTS[first](world))),
        )
        assert sorted(won) == [False, True], won
        owners = {row.namespace for row in world.ports.catalog.prefixes_in(LAKE, "raw/", 9, None).items}
        assert len(owners) == 1, owners
        return calls

    at_each_call(play, least=5)


@pytest.mark.parametrize("first", ["outer", "inner", "given", "moved", "deployed"])
@pytest.mark.parametrize("second", ["outer", "inner"])
def test_o14_a_death_after_a_write_of_a_put_leaves_one_owner(first: str, second: str) -> None:
    """The request that died is repeated after another one: either was carried out, or the other one has the prefix."""
    start = Start(ready)
    deaths, number = 0, 0
    while deaths == number:
        number += 1
        world = start.again()
        points = wrap(world)
        points.armed, points.die_after = True, number
        deaths += lost(partial(attempted, partial(ACTS[first], world)))
        points.die_after = None
        attempted(partial(ACTS[second], world))
        attempted(partial(ACTS[first], world))
        owners = {row.namespace for row in world.ports.catalog.prefixes_in(LAKE, "raw/", 9, None).items}
        assert len(owners) == 1, (number, owners)
    assert deaths >= 1


@pytest.mark.parametrize("here", [OUTER, INNER, "raw/"])
@pytest.mark.parametrize("is_import_late", [True, False])
def test_o14_of_an_import_and_a_put_one_wins(here: str, is_import_late: bool) -> None:
    source = shared("alpha")
    put(source, "alpha.orders", OUTER)
    archive = exported(source, "alpha")

    def build() -> World:
        world = shared("gamma")
        free(world, "gamma")
        return world

    start = Start(build)

    def play(before: int | None) -> int:
        world = start.again()
        won: list[bool] = []
        files = MemoryArchive(archive.files)
        acts = [
            lambda: won.append(attempted(lambda: imported(world, files))),
            lambda: won.append(attempted(lambda: put(world, "gamma.x", here))),
        ]
        calls = cross(world, before, *(reversed(acts) if is_import_late else acts))
        assert sorted(won) == [False, True], won
        owners = {row.namespace for row in world.ports.catalog.prefixes_in(LAKE, "raw/", 9, None).items}
        assert len(owners) == 1, owners
        return calls

    at_each_call(play, least=5)


def test_o14_a_prefix_given_while_its_dataset_goes_stays_given() -> None:
    def build() -> World:
        world = shared()
        free(world, "alpha")
        put(world, "alpha.orders", OUTER)
        return world

    start = Start(build)

    def play(before: int | None) -> int:
        world = start.again()
        calls = cross(
            world,
            before,
            lambda: give(world, "alpha", OUTER),
            lambda: store.delete(world.ports, "dataset", "alpha.orders"),
        )
        row = world.ports.rows.get(PrefixRow, LAKE, OUTER)
        assert row is not None and (row.owner, row.dataset) == ("alpha", ""), row
        return calls

    at_each_call(play, least=5)
