"""A DAG file of Airflow, read with ``ast`` and never executed.

The reader follows the statements of the file in order: assignments of literals, loops over literals, and calls of
functions that the file defines. An expression without a known value is an `Unknown`. Where tasks may be missing, the
reader also adds a finding.
"""

from __future__ import annotations

import ast
from datetime import datetime
from typing import Any, ClassVar

from sluice import zones
from sluice.convert.airflow_values import (
    Asset,
    Assets,
    Dag,
    Function,
    Group,
    Label,
    Span,
    Task,
    Timetable,
    Unknown,
    When,
    ZoneName,
    inside,
)
from sluice.convert.draft import Draft
from sluice.errors import WrongUsage

MAX_DEPTH = 20  # nested calls of functions of the file
MAX_TASKS = 5_000  # of a file; a loop that makes more is not unrolled any further
MAX_ITEMS = 1_000  # of a loop
ASSETS = ("Asset", "Dataset", "AssetAlias", "DatasetAlias")
TIMETABLES = ("Timetable", "Schedule")
UNITS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1, "milliseconds": 0.001}


class Reader:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.dags: list[Dag] = []
        self.names: dict[str, Any] = {}
        self.dag: Dag | None = None
        self.path: tuple[str, ...] = ()
        self.depth = 0
        self.result: Any = None
        self.loose = 0  # tasks without a DAG

    def read(self, text: str) -> list[Dag]:
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            hint = "the file must be Python that this version can parse"
            where = f"{self.draft.source}, line {error.lineno}"
            raise WrongUsage(f"expected a DAG file in Python, got {error.msg}", where, hint) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise WrongUsage(f"expected a DAG file in Python, got {error}", self.draft.source) from None
        try:
            self.run(tree.body)
        except RecursionError:
            raise WrongUsage("expected a DAG file, got expressions nested too deep", self.draft.source) from None
        return self.dags

    def missing(self, node: ast.stmt | ast.expr, what: str, why: str, todo: str) -> None:
        self.draft.find(f"line {node.lineno}", what, why, todo)

    # Statements

    def run(self, body: list[ast.stmt]) -> None:
        for statement in body:
            step = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if step is not None:
                step(statement)

    def _importfrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.asname:
                self.names[alias.asname] = Unknown(alias.name)

    def _expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def _assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.bind(target, value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.bind(node.target, self.value(node.value))

    def _augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.names[node.target.id] = Unknown(ast.unparse(node))

    def bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            known = list(value) if isinstance(value, list | tuple) and len(value) == len(target.elts) else None
            for number, each in enumerate(target.elts):
                self.bind(each, known[number] if known is not None else Unknown(ast.unparse(each)))
        elif isinstance(target, ast.Subscript):
            holder, key = self.value(target.value), self.value(target.slice)
            if isinstance(holder, dict) and isinstance(key, str | int):
                holder[key] = value

    def _with(self, node: ast.With) -> None:
        before = self.dag, self.path
        for item in node.items:
            value = self.value(item.context_expr)
            if isinstance(value, Dag):
                self.dag, self.path = value, ()
            elif isinstance(value, Group):
                self.path = value.path
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value)
        self.run(node.body)
        self.dag, self.path = before

    def _functiondef(self, node: ast.FunctionDef) -> None:
        kind, named, flavour = "plain", {}, ""
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            text = ast.unparse(call)
            first = text.split(".")[0]
            if first in ("dag", "task", "task_group", "setup", "teardown"):
                kind, flavour = ("task" if first in ("setup", "teardown") else first), f"@{text}"
                named = self.keywords(decorator) if isinstance(decorator, ast.Call) else {}
                if isinstance(decorator, ast.Call) and decorator.args and kind == "dag":
                    named = {"dag_id": self.value(decorator.args[0]), **named}
        self.names[node.name] = Function(kind, node, named, flavour=flavour)

    def _for(self, node: ast.For) -> None:
        items = self.value(node.iter)
        if isinstance(items, dict):
            items = list(items)
        if not isinstance(items, list | tuple | range) or len(items) > MAX_ITEMS:
            if any(isinstance(each, ast.Call) for each in ast.walk(node)):
                self.missing(
                    node,
                    f"the loop over {ast.unparse(node.iter)[:80]} was not read",
                    "the file is not executed, so its items are not known",
                    "add its tasks, or its DAGs, by hand",
                )
            return
        for item in items:
            if self._size() < MAX_TASKS:
                self.bind(node.target, item)
                self.run(node.body)

    def _size(self) -> int:
        return len(self.dags) + sum(len(dag.tasks) for dag in self.dags)

    def _if(self, node: ast.If) -> None:
        if "__name__" in ast.unparse(node.test):
            return
        test, before = self.value(node.test), self._size()
        for wanted, body in ((True, node.body), (False, node.orelse)):
            if isinstance(test, Unknown) or bool(test) is wanted:
                self.run(body)
        if isinstance(test, Unknown) and self._size() > before:
            self.missing(
                node,
                f"both sides of `if {test.text[:80]}` were converted",
                "the file is not executed, so the condition is not known",
                "remove the tasks that you do not need",
            )

    def _try(self, node: ast.Try) -> None:
        self.run(node.body)

    def _return(self, node: ast.Return) -> None:
        self.result = self.value(node.value) if node.value is not None else None

    # Expressions

    def value(self, node: ast.expr) -> Any:
        step = getattr(self, f"_{type(node).__name__.lower()}_", None)
        return step(node) if step is not None else Unknown(ast.unparse(node))

    def _constant_(self, node: ast.Constant) -> Any:
        return node.value

    def _name_(self, node: ast.Name) -> Any:
        return self.names.get(node.id, Unknown(node.id))

    def _list_(self, node: ast.List) -> Any:
        return [self.value(each) for each in node.elts]

    def _tuple_(self, node: ast.Tuple) -> Any:
        return tuple(self.value(each) for each in node.elts)

    def _set_(self, node: ast.Set) -> Any:
        return [self.value(each) for each in node.elts]

    def _dict_(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item)
            if key is None:
                found |= value if isinstance(value, dict) else {}
            elif isinstance(name := self.value(key), str | int):
                found[name] = value
        return found

    def _joinedstr_(self, node: ast.JoinedStr) -> Any:
        parts = []
        for part in node.values:
            value = self.value(part.value) if isinstance(part, ast.FormattedValue) else self.value(part)
            if not isinstance(value, str | int | float):
                return Unknown(ast.unparse(node))
            parts.append(str(value))
        return "".join(parts)

    def _unaryop_(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(value, int | float):
            return -value
        if isinstance(node.op, ast.Not) and not isinstance(value, Unknown):
            return not value
        return Unknown(ast.unparse(node))

    def _listcomp_(self, node: ast.ListComp) -> Any:
        items = self.value(node.generators[0].iter)
        plain = len(node.generators) == 1 and not node.generators[0].ifs
        if not plain or not isinstance(items, list | tuple | range) or len(items) > MAX_ITEMS:
            unread = ast.Expr(node.elt, lineno=node.lineno)
            self.missing(unread, f"the list {ast.unparse(node)[:80]} was not read", "its items are not known",
                         "add its tasks by hand")  # fmt: skip
            return Unknown(ast.unparse(node))
        found = []
        for item in items:
            self.bind(node.generators[0].target, item)
            found.append(self.value(node.elt))
        return found

    def _subscript_(self, node: ast.Subscript) -> Any:
        holder, key = self.value(node.value), self.value(node.slice)
        if isinstance(holder, Task):
            return holder
        try:
            return holder[key] if isinstance(holder, list | tuple | dict) else Unknown(ast.unparse(node))
        except (KeyError, IndexError, TypeError):
            return Unknown(ast.unparse(node))

    def _attribute_(self, node: ast.Attribute) -> Any:
        holder = self.value(node.value)
        return holder if isinstance(holder, Task) and node.attr == "output" else Unknown(ast.unparse(node))

    def _binop_(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.RShift | ast.LShift):
            return self.order(left, right, isinstance(node.op, ast.RShift))
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            if all(isinstance(each, Asset | Assets) for each in (left, right)):
                return Assets("all" if isinstance(node.op, ast.BitAnd) else "any", (left, right))
            if isinstance(left, dict) and isinstance(right, dict):
                return left | right
        if isinstance(node.op, ast.Add) and type(left) is type(right) and isinstance(left, str | int | float | list):
            return left + right
        if isinstance(node.op, ast.Mult) and isinstance(left, Span) and isinstance(right, int | float):
            return Span(left.seconds * right)
        if isinstance(node.op, ast.Mult) and isinstance(left, int) and isinstance(right, int):
            return left * right
        return Unknown(ast.unparse(node))

    def order(self, left: Any, right: Any, forward: bool) -> Any:
        """Add the edges of ``left >> right``, or of ``<<``. Returns the left operand of the next operator."""
        if isinstance(right, Label):
            return left
        if isinstance(left, Label):
            return right
        one, other = self._ordered(left), self._ordered(right)
        dag = self._dag_of(one + other)
        if dag is not None and one and other:
            dag.edges.append((one, other) if forward else (other, one))
        return right

    def _dag_of(self, members: list[Any]) -> Dag | None:
        for dag in self.dags:
            if any(isinstance(each, Task) and dag.tasks.get(each.id) is each for each in members):
                return dag
        return self.dag

    def _ordered(self, value: Any) -> list[Any]:
        return [each for each in inside(value) if isinstance(each, Task | Group)]

    # Calls

    def keywords(self, node: ast.Call) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is None:
                named |= {key: item for key, item in value.items() if isinstance(key, str)} if isinstance(
                    value, dict
                ) else {}  # fmt: skip
            else:
                named[keyword.arg] = value
        return named

    def _call_(self, node: ast.Call) -> Any:
        callee = node.func
        if isinstance(callee, ast.Attribute):
            holder = self.value(callee.value)
            if isinstance(holder, Task | Group) and callee.attr in ("set_upstream", "set_downstream"):
                self.order(holder, [self.value(each) for each in node.args], callee.attr == "set_downstream")
                return None
            if isinstance(holder, Function) and callee.attr in ("override", "partial", "expand", "expand_kwargs"):
                return self._adapted(holder, callee.attr, node)
            if callee.attr in ("expand", "expand_kwargs") and isinstance(holder, Task):
                self._mapped(node, holder.id)
                return holder
            if callee.attr == "partial" and isinstance(callee.value, ast.Name | ast.Attribute):
                return self._named_call(node, ast.unparse(callee.value).split(".")[-1])
        function = self.value(callee)
        if isinstance(function, Function):
            return self._apply(function, node)
        name = ast.unparse(callee).split(".")[-1]
        if isinstance(callee, ast.Name) and isinstance(function, Unknown):
            name = function.text.split(".")[-1]
        return self._named_call(node, name)

    def _adapted(self, function: Function, how: str, node: ast.Call) -> Any:
        if how in ("expand", "expand_kwargs"):
            self._mapped(node, function.node.name)
            return self._apply(function, node)
        named = {**function.named, **(self.keywords(node) if how == "override" else {})}
        return Function(function.kind, function.node, named, how == "partial", function.flavour)

    def _mapped(self, node: ast.Call, name: str) -> None:
        self.missing(
            node,
            f"the mapped task {name} became one node",
            "Sluice starts a fixed number of nodes",
            "let the workflow do all items, or start a run for each partition by `by`",
        )

    def _named_call(self, node: ast.Call, name: str) -> Any:
        given = [self.value(each) for each in node.args]
        named = self.keywords(node)
        if name == "DAG":
            return self._new_dag(node, {"dag_id": given[0], **named} if given else named)
        if name == "TaskGroup":
            label = given[0] if given else named.get("group_id")
            return Group((*self.path, label if isinstance(label, str) else f"group{node.lineno}"))
        if name in self._BUILT_IN:
            return self._built_in(name, given, named, node)
        if name in ASSETS:
            label = named.get("name") or named.get("uri") or (given[0] if given else None)
            return Asset(label) if isinstance(label, str) else Unknown(ast.unparse(node))
        if name in ("AssetAll", "DatasetAll", "AssetAny", "DatasetAny"):
            return Assets("all" if name.endswith("All") else "any", tuple(given))
        if name.endswith(TIMETABLES):
            return Timetable(name, tuple(given), named)
        if name == "Label":
            return Label()
        if name == "chain":
            for one, other in zip(given, given[1:], strict=False):  # noqa: RUF007 - typed as Any
                both = isinstance(one, list | tuple) and isinstance(other, list | tuple)
                for left, right in zip(one, other, strict=False) if both else [(one, other)]:
                    self.order(left, right, True)
            return None
        if name == "cross_downstream" and len(given) == 2:
            return self.order(given[0], given[1], True)
        if "task_id" in named or name.endswith(("Operator", "Sensor")):
            return self._new_task(node, name, named.get("task_id"), named, [*given, *named.values()])
        return Unknown(ast.unparse(node))

    _BUILT_IN: ClassVar = {"timedelta", "duration", "datetime", "timezone", "ZoneInfo", "str", "range", "dict", "list"}

    def _built_in(self, name: str, given: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        unknown = Unknown(ast.unparse(node))
        if name in ("timedelta", "duration"):
            order = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")
            parts = {**dict(zip(order, given, strict=False)), **named}
            known = all(key in UNITS and isinstance(value, int | float) for key, value in parts.items())
            return Span(sum(UNITS[key] * value for key, value in parts.items())) if known else unknown
        if name == "datetime":
            zone = named.get("tz", named.get("tzinfo"))
            numbers = {key: value for key, value in named.items() if key in ("year", "month", "day", "hour", "minute")}
            try:
                wall = datetime(*given, **numbers)  # noqa: DTZ001 - its zone is kept beside it
            except (TypeError, ValueError):
                return unknown
            # Without a zone, pendulum uses UTC, and Airflow reads a datetime of Python in its default zone, also UTC.
            label = zone.name if isinstance(zone, ZoneName) else zone if isinstance(zone, str) else None
            return When(wall, label)
        if name in ("timezone", "ZoneInfo"):
            return ZoneName(given[0]) if given and isinstance(given[0], str) and _is_zone(given[0]) else unknown
        if name == "str":
            return str(given[0]) if len(given) == 1 and isinstance(given[0], str | int | float) else unknown
        if name == "range":
            ok = 0 < len(given) < 4 and all(isinstance(each, int) for each in given) and 0 not in given[2:]
            return range(*given) if ok else unknown
        if name == "list":
            return list(given[0]) if given and isinstance(given[0], list | tuple | range) else unknown
        return named

    def _new_dag(self, node: ast.Call | ast.FunctionDef, named: dict[str, Any]) -> Dag:
        label = named.get("dag_id")
        if not isinstance(label, str):
            label = f"dag{node.lineno}"
            self.draft.find(
                f"line {node.lineno}",
                f"a DAG was named {label}",
                "its dag_id is computed when the file is executed",
                "rename it in the document",
            )
        dag = Dag(label, node.lineno, named)
        self.dags.append(dag)
        return dag

    def _new_task(self, node: ast.Call, kind: str, label: Any, named: dict[str, Any], values: list[Any]) -> Any:
        dag = named.get("dag") if isinstance(named.get("dag"), Dag) else self.dag
        if not isinstance(dag, Dag):
            self.missing(
                node,
                f"the task {label if isinstance(label, str) else kind} was not converted",
                "it belongs to no DAG that the reader knows",
                "add it to a DAG by hand",
            )
            return Unknown(ast.unparse(node))
        short = label if isinstance(label, str) else f"task{node.lineno}"
        full, number = ".".join([*self.path, short]), 1
        while full in dag.tasks:
            full, number = ".".join([*self.path, f"{short}__{number}"]), number + 1
        task = Task(full, kind, node.lineno, {key: value for key, value in named.items() if key != "dag"}, self.path)
        dag.tasks[full] = task
        upstream = [each for value in values for each in self._ordered(value) if each is not task]
        if upstream:
            dag.edges.append((upstream, [task]))
        return task

    def _apply(self, function: Function, node: ast.Call) -> Any:
        """Call a function of the file. A DAG and a group get their tasks from the function's body. A function with
        ``@task`` is one task, and its body is not read."""
        given, named = [self.value(each) for each in node.args], self.keywords(node)
        if function.kind == "task":
            label = function.named.get("task_id", function.node.name)
            return self._new_task(node, function.flavour, label, function.named, [*given, *named.values()])
        if self.depth >= MAX_DEPTH:
            return Unknown(ast.unparse(node))
        before = self.names, self.dag, self.path, self.result
        self.names, self.depth, self.result = self._bound(function.node, given, named), self.depth + 1, None
        made: Any = None
        if function.kind == "dag":
            options = {"dag_id": function.node.name, **function.named}
            made = self.dag = self._new_dag(function.node, options)
            made.about, self.path = ast.get_docstring(function.node) or "", ()
        elif function.kind == "task_group":
            label = function.named.get("group_id", function.node.name)
            made = Group((*self.path, label if isinstance(label, str) else function.node.name))
            self.path = made.path
        self.run(function.node.body)
        result, self.depth = self.result, self.depth - 1
        self.names, self.dag, self.path, self.result = before
        if function.kind == "task_group":
            upstream = [each for value in [*given, *named.values()] for each in self._ordered(value)]
            if upstream and self.dag is not None:
                self.dag.edges.append((upstream, [made]))
        return made if made is not None else result

    def _bound(self, node: ast.FunctionDef, given: list[Any], named: dict[str, Any]) -> dict[str, Any]:
        """The names inside a call: those of the file, the defaults, and the arguments. Tasks that are arguments of a
        group stay tasks, so that the tasks of the group depend on them."""
        arguments = [*node.args.posonlyargs, *node.args.args]
        defaults = [self.value(each) for each in node.args.defaults]
        bound = dict(zip([each.arg for each in arguments][len(arguments) - len(defaults) :], defaults, strict=True))
        for keyword, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            bound[keyword.arg] = self.value(default) if default is not None else Unknown(keyword.arg)
        bound |= dict(zip([each.arg for each in arguments], given, strict=False))
        unset = {each.arg: Unknown(each.arg) for each in arguments if each.arg not in bound}
        return {**self.names, **unset, **bound, **named}


def _is_zone(name: str) -> bool:
    return zones.zone(name) is not None
