"""DAGs of Airflow in YAML: the format of dag-factory, which Amazon MWAA Serverless has, too.

https://docs.aws.amazon.com/mwaa/latest/mwaa-serverless-userguide/workflows.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import yaml

from sluice.convert.airflow_values import (
    Asset,
    Assets,
    Dag,
    Group,
    Mapped,
    Span,
    Task,
    Timetable,
    Unknown,
    When,
    inside,
)
from sluice.convert.draft import Draft
from sluice.errors import WrongUsage

MAX_VALUES = 100_000  # of a file, with each alias counted as often as it is used
# Fields with a number of seconds, and the argument of Airflow that each sets.
SECONDS = {
    "retry_delay": "retry_delay",
    "retry_delay_sec": "retry_delay",
    "retry_delay_secs": "retry_delay",
    "max_retry_delay": "max_retry_delay",
    "execution_timeout": "execution_timeout",
    "execution_timeout_sec": "execution_timeout",
    "execution_timeout_secs": "execution_timeout",
    "dagrun_timeout": "dagrun_timeout",
    "dagrun_timeout_sec": "dagrun_timeout",
    "sla": "sla",
    "sla_secs": "sla",
}
DATES = ("start_date", "end_date")
# Fields of a task that are no arguments of its operator.
OF_TASK = ("task_id", "operator", "decorator", "dependencies", "task_group_name", "expand", "partial", "task_group")
UNITS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1, "milliseconds": 0.001}


class _Object(dict[Any, Any]):
    """An object of the file, with its line."""

    line = 0


class _Loader(yaml.SafeLoader):
    """YAML 1.1, as dag-factory reads it, with the lines of objects and without repeated keys."""

    def construct_object_with_line(self, node: yaml.MappingNode) -> Iterator[_Object]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
            if name in seen and name != "<<":
                raise yaml.constructor.ConstructorError(None, None, f"the key {name} a second time", key.start_mark)
            seen.add(name)
        found = _Object()
        found.line = node.start_mark.line + 1
        yield found
        found.update(self.construct_mapping(node))

    def construct_tagged(self, tag: str, node: yaml.Node) -> Any:
        if tag in ("and", "or") and isinstance(node, yaml.SequenceNode):
            return Assets("all" if tag == "and" else "any", tuple(self.construct_sequence(node, deep=True)))
        if tag == "join" and isinstance(node, yaml.SequenceNode):
            return "".join(str(each) for each in self.construct_sequence(node, deep=True))
        return Unknown(f"!{tag}")


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_object_with_line)
_Loader.add_multi_constructor("!", _Loader.construct_tagged)
_Loader.add_multi_constructor("tag:yaml.org,2002:python/", _Loader.construct_tagged)


def read(text: str, draft: Draft) -> list[Dag]:
    """The DAGs of a file. Raises `WrongUsage` for a file that cannot be parsed, or that has no DAG, with the line."""
    content = _parse(text, draft.source)
    hint = "the file needs a DAG by its name, with tasks, each with its operator"
    if not isinstance(content, dict):
        raise WrongUsage(f"expected DAGs in YAML, got {type(content).__name__}", draft.source, hint)
    shared = content.get("default")
    dags = []
    for name, body in content.items():
        if name == "default" or not isinstance(body, dict) or "tasks" not in body:
            if name != "default" and not (isinstance(name, str) and name.startswith(("x-", "."))):
                line = f"line {getattr(body, 'line', 1)}"
                why, todo = "it has no tasks", "nothing, if it only holds values that others refer to"
                draft.find(line, f"{name} is no DAG, and was not converted", why, todo)
            continue
        whole = _merged(shared if isinstance(shared, dict) else {}, body)
        dags.append(_Reader(draft, str(name), whole, getattr(body, "line", 1)).dag)
    if not dags:
        raise WrongUsage("expected DAGs in YAML, got none", draft.source, hint)
    return dags


def _parse(text: str, source: str) -> Any:
    try:
        content = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}, line {mark.line + 1}" if mark is not None else source
        raise WrongUsage(
            f"expected DAGs in YAML, got {error.problem or error.context}", where, "correct the line"
        ) from None
    except yaml.YAMLError as error:
        raise WrongUsage(f"expected DAGs in YAML, got {error}", source) from None
    except (RecursionError, ValueError) as error:
        raise WrongUsage(f"expected DAGs in YAML, got {error or 'objects nested too deep'}", source) from None
    try:
        count = _size(content, {}, set())
    except RecursionError:
        count = MAX_VALUES + 1
    if count > MAX_VALUES:
        raise WrongUsage(f"expected at most {MAX_VALUES} values, got more", source, "use fewer aliases")
    return content


def _size(value: Any, known: dict[int, int], open_: set[int]) -> int:
    """The number of values, with each alias counted as often as it is used. An object inside itself counts as too
    many."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) in open_:
        return MAX_VALUES + 1
    if id(value) not in known:
        open_.add(id(value))
        known[id(value)] = 1 + sum(
            _size(each, known, open_) for each in (value.values() if isinstance(value, dict) else value)
        )
        open_.discard(id(value))
    return known[id(value)]


def _merged(under: dict[Any, Any], over: dict[Any, Any]) -> dict[Any, Any]:
    """The values of a DAG over those of ``default``, object by object."""
    found = dict(under)
    for key, value in over.items():
        other = found.get(key)
        found[key] = _merged(other, value) if isinstance(value, dict) and isinstance(other, dict) else value
    return found


class _Reader:
    """One DAG of the file."""

    def __init__(self, draft: Draft, name: str, body: dict[str, Any], line: int) -> None:
        self.draft, self.where = draft, f"DAG {name}"
        self.zone = body.get("timezone") if isinstance(body.get("timezone"), str) else None
        named = self._arguments({key: value for key, value in body.items() if key not in ("tasks", "task_groups")})
        if named.get("dag_id", name) != name:
            self.draft.find(
                f"line {line}",
                f"the dag_id {named['dag_id']} of {name} was ignored",
                "the key of a DAG is its name",
                "rename the DAG in the document if the other name is meant",
            )
        self.dag = Dag(name, line, named, intervals=False)
        self.groups = self._read_groups(body.get("task_groups"))
        self.tasks: dict[str, Task] = {}
        given = list(self._entries(body["tasks"], "task_id"))
        for short, fields in given:
            self._read_task(short, fields)
        for short, fields in given:
            self._read_order(self.tasks[short], fields)
        for group, fields in self.groups.values():
            self._wait(group, fields.get("dependencies"), getattr(fields, "line", line))

    def _entries(self, given: Any, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The tasks or groups of an object or a list, by name."""
        if isinstance(given, dict):
            pairs = [(name, fields if fields is not None else {}) for name, fields in given.items()]
        elif isinstance(given, list):
            pairs = [(fields.get(key) if isinstance(fields, dict) else None, fields) for fields in given]
        else:
            raise self._wrong(f"expected tasks by name, or a list of them, got {given!r:.60}", self.dag.line)
        seen: set[str] = set()
        for name, fields in pairs:
            line = getattr(fields, "line", self.dag.line)
            if not isinstance(name, str | int) or not isinstance(fields, dict):
                raise self._wrong(f"expected an object with {key}, got {fields!r:.60}", line)
            if str(name) in seen:
                raise self._wrong(f"expected one {key} {name}, got a second one", line)
            seen.add(str(name))
            yield str(name), fields

    def _wrong(self, what: str, line: int) -> WrongUsage:
        return WrongUsage(what, f"{self.draft.source}, line {line}", "correct the file, as dag-factory would refuse it")

    def _read_groups(self, given: Any) -> dict[str, tuple[Group, dict[str, Any]]]:
        bodies = dict(self._entries(given, "group_name")) if given else {}
        found: dict[str, tuple[Group, dict[str, Any]]] = {}

        def group(name: str, inner: tuple[str, ...]) -> Group:
            if name not in bodies or name in inner:
                raise self._wrong(
                    f"expected a task group, got {name!r}", getattr(bodies.get(name), "line", self.dag.line)
                )
            if name not in found:
                body = bodies[name]
                parent = body.get("parent_group_name")
                outer = group(str(parent), (*inner, name)) if parent else Group(())
                prefix = outer.prefix if body.get("prefix_group_id") is False else (*outer.prefix, name)
                defaults = body.get("default_args")
                own = self._arguments(defaults) if isinstance(defaults, dict) else {}
                found[name] = (Group((*outer.path, name), prefix, {**outer.defaults, **own}), body)
            return found[name][0]

        for name in bodies:
            group(name, ())
        return found

    def _read_task(self, short: str, fields: dict[str, Any]) -> None:
        line = getattr(fields, "line", self.dag.line)
        operator = fields.get("operator") or fields.get("decorator")
        if not isinstance(operator, str):
            raise self._wrong(f"expected an operator of the task {short}, got {operator!r:.60}", line)
        within = fields.get("task_group_name")
        if within is not None and within not in self.groups:
            raise self._wrong(f"expected a task group, got {within!r}", line)
        group = self.groups[within][0] if within is not None else Group(())
        label = fields.get("task_id")
        last = label if isinstance(label, str) else short
        kind = operator.rpartition(".")[2]
        if "decorator" in fields and "operator" not in fields:
            kind = f"@{kind}" if kind.startswith("task") else f"@task.{kind}"
        partial = fields.get("partial")
        named = {key: value for key, value in fields.items() if key not in OF_TASK}
        named |= partial if isinstance(partial, dict) else {}
        full = ".".join([*group.prefix, last])
        if full in self.dag.tasks:
            raise self._wrong(f"expected one task {full}, got a second one", line)
        task = Task(full, kind, line, {**group.defaults, **self._arguments(named)}, group.path)
        self.dag.tasks[full] = self.tasks[short] = task

    def _read_order(self, task: Task, fields: dict[str, Any]) -> None:
        self._wait(task, fields.get("dependencies"), task.line)
        expand = fields.get("expand")
        if isinstance(expand, dict):
            over = {str(key): self._listed(value) for key, value in expand.items()}
            task.mapped = Mapped(over, task.line)
            self._follow(task, [each for each in over.values() if isinstance(each, Task)])
        elif expand is not None:
            raise self._wrong(f"expected the arguments of expand, got {expand!r:.60}", task.line)
        taken = [self.tasks[each[1:]] for each in inside(task.named) if isinstance(each, str) and each[1:] in self.tasks
                 and each[0] == "+"]  # fmt: skip
        task.takes = [each.id for each in taken]
        self._follow(task, taken)

    def _listed(self, value: Any) -> Any:
        """A list of ``expand``; ``load.output``, ``+load`` and ``XcomArg(load)`` stand for the result of a task."""
        if isinstance(value, str):
            found = re.fullmatch(r"\+?(.+?)(\.output)?|XcomArg\((.+)\)", value)
            name = (found[3] or found[1]) if found else value
            return self.tasks.get(name, Unknown(value))
        return value

    def _wait(self, one: Task | Group, given: Any, line: int) -> None:
        if given in (None, ""):
            return
        ups: list[Task | Group] = []
        for name in given if isinstance(given, list) else [given]:
            if str(name) in self.tasks:
                ups.append(self.tasks[str(name)])
            elif str(name) in self.groups:
                ups.append(self.groups[str(name)][0])
            else:
                raise self._wrong(f"expected the name of a task or a group in dependencies, got {name!r}", line)
        self._follow(one, ups)

    def _follow(self, one: Task | Group, ups: list[Any]) -> None:
        if ups:
            self.dag.edges.append((ups, [one]))

    # Values

    def _arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in given.items():
            if key in SECONDS:
                found[SECONDS[key]] = _span(value)
            elif key in DATES:
                found[key] = self._date(value)
            elif key == "schedule":
                found[key] = self._schedule(value)
            elif key == "schedule_interval":
                found.setdefault("schedule", self._schedule(value))
            elif key in ("outlets", "inlets") and isinstance(value, list):
                found[key] = [_asset(each) for each in value]
            elif key == "default_args" and isinstance(value, dict):
                found[key] = self._arguments(value)
            else:
                found[str(key)] = _value(value)
        return found

    def _date(self, value: Any) -> Any:
        value = _value(value)
        if isinstance(value, datetime):
            wall = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return When(wall, "UTC" if value.tzinfo else self.zone)
        if isinstance(value, date):
            return When(datetime(value.year, value.month, value.day), self.zone)  # noqa: DTZ001 - its zone is beside it
        if isinstance(value, str):
            try:
                return self._date(datetime.fromisoformat(value.strip()))
            except ValueError:
                return Unknown(value)
        return value if isinstance(value, When | None) else Unknown(repr(value))

    def _schedule(self, value: Any) -> Any:
        if isinstance(value, dict) and "__type__" not in value:
            assets, table = value.get("datasets", value.get("assets")), value.get("timetable")
            found = _asset(assets) if assets is not None else None
            if found is not None and table is not None:
                return Timetable("AssetOrTimeSchedule", (), {"timetable": _value(table), "assets": found})
            return found if found is not None else Unknown(repr(dict(value))[:100])
        if isinstance(value, list):
            return [_asset(each) for each in value]
        if isinstance(value, str) and "?" in value:
            return Unknown(value)
        return _value(value)


def _asset(value: Any) -> Any:
    """Assets by their address; ``a & b`` and ``(a | b)`` in a text, and lists, stand for several."""
    if isinstance(value, Assets):
        return Assets(value.kind, tuple(_asset(each) for each in value.items))
    if isinstance(value, list):
        return [_asset(each) for each in value]
    if isinstance(value, str):
        return _asset_text(value)
    return _value(value)


def _asset_text(text: str) -> Any:
    """``a & (b | c)``, as Python would read it: ``&`` binds more."""
    words = re.findall(r"[()&|]|[^()&|\s]+", text)

    def either() -> Any:
        found = [both()]
        while words and words[0] == "|":
            words.pop(0)
            found.append(both())
        return found[0] if len(found) == 1 else Assets("any", tuple(found))

    def both() -> Any:
        found = [one()]
        while words and words[0] == "&":
            words.pop(0)
            found.append(one())
        return found[0] if len(found) == 1 else Assets("all", tuple(found))

    def one() -> Any:
        word = words.pop(0) if words else ""
        if word != "(":
            return Asset(word) if word not in ("", ")", "&", "|") else Unknown(text)
        found = either()
        return found if words and words.pop(0) == ")" else Unknown(text)

    found = either()
    return found if not words else Unknown(text)


def _value(value: Any) -> Any:
    """A value of the file; an object with ``__type__`` is a call of the class."""
    if isinstance(value, list):
        return [_value(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "__type__" not in value:
        return {str(key): _value(each) for key, each in value.items()}
    kind = str(value["__type__"]).rpartition(".")[2]
    given = [_value(each) for each in value.get("__args__") or []]
    named = {str(key): _value(each) for key, each in value.items() if key not in ("__type__", "__args__")}
    return _called(kind, given, named)


def _called(kind: str, given: list[Any], named: dict[str, Any]) -> Any:
    unknown = Unknown(f"{kind}({', '.join(map(str, [*given, *named.values()]))})")
    if kind == "timedelta":
        parts = {**dict(zip(("days", "seconds"), given, strict=False)), **named}
        known = all(key in UNITS and isinstance(each, int | float) for key, each in parts.items())
        return Span(sum(UNITS[key] * each for key, each in parts.items())) if known else unknown
    if kind == "datetime":
        numbers = {
            key: each for key, each in named.items() if key in ("year", "month", "day", "hour", "minute", "second")
        }
        try:
            return When(datetime(*given, **numbers), None)  # noqa: DTZ001 - its zone is kept beside it
        except (TypeError, ValueError):
            return unknown
    if kind in ("Asset", "Dataset", "AssetAlias", "DatasetAlias"):
        label = named.get("name") or named.get("uri") or (given[0] if given else None)
        return Asset(label) if isinstance(label, str) else unknown
    if kind in ("AssetAll", "DatasetAll", "AssetAny", "DatasetAny"):
        return Assets("all" if kind.endswith("All") else "any", tuple(given))
    return Timetable(kind, tuple(given), named) if kind.endswith(("Timetable", "Schedule")) else unknown


def _span(value: Any) -> Any:
    value = _value(value)
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value.strip()):
        return Span(float(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Span(value)
    return value if isinstance(value, Span | None) else Unknown(repr(value))
