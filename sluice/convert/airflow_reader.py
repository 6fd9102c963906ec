"""A DAG file of Airflow, read with ``ast`` and never executed.

The reader follows the statements of the file in order: assignments of literals, loops over literals, and calls of
functions that the file defines. An expression without a known value is an `Unknown`. Where tasks may be missing, the
reader also adds a finding.
"""

from __future__ import annotations

import ast
import re
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
    Mapped,
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
OPERATIONS = {ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in"}
VARIABLE = re.compile(r"\bvar\.(?:value|json)\.(\w+)")
UNITS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1, "milliseconds": 0.001}


class Reader:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.dags: list[Dag] = []
        self.names: dict[str, Any] = {}
        self.dag: Dag | None = None
        self.group = Group(())
        self.depth = 0
        self.result: Any = None
        self.intervals = True

    def read(self, text: str) -> list[Dag]:
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            hint = "the file must be Python that this version can parse"
            where = f"{self.draft.source}, line {error.lineno}"
            raise WrongUsage(f"expected a DAG file in Python, got {error.msg}", where, hint) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise WrongUsage(f"expected a DAG file in Python, got {error}", self.draft.source) from None
        self.intervals = not any(_is_of_airflow_3(node) for node in tree.body)
        try:
            self.run(tree.body)
            self._report_calls(tree)
        except RecursionError:
            raise WrongUsage("expected a DAG file, got expressions nested too deep", self.draft.source) from None
        return self.dags

    def _report_calls(self, tree: ast.Module) -> None:
        """Report what the file reads from the database of Airflow, wherever it does so."""
        found: list[tuple[int, str, str, str]] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name, holder = node.func.attr, ast.unparse(node.func.value).split(".")[-1]
                shown = ast.unparse(node)[:80]
                if name in ("xcom_push", "xcom_pull"):
                    todo = "let the first job call sluice_job.result, and the next one read it in its run context"
                    found.append((node.lineno, f"{shown} is not carried over", "Sluice has no XComs", todo))
                elif holder == "Variable" and name in ("get", "set"):
                    todo = "write the value into the document, as a property or a ${placeholder}"
                    found.append((node.lineno, f"{shown} is not carried over", "Sluice has no Variables", todo))
                elif name == "get_connection" or (holder == "Connection" and name == "get"):
                    todo = "give the role of the target access, or let the job read a secret"
                    found.append((node.lineno, f"{shown} is not carried over", "Sluice has no Connections", todo))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name in dict.fromkeys(VARIABLE.findall(node.value)):
                    todo = "write the value into the document, as a property or a ${placeholder}"
                    what = f"the Variable {name} is not carried over"
                    found.append((node.lineno, what, "Sluice has no Variables", todo))
        for line, what, why, todo in sorted(found):
            self.draft.find(f"line {line}", what, why, todo)

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
            both = ast.BinOp(node.target, node.op, node.value)
            self.names[node.target.id] = self._binop_(ast.copy_location(both, node))

    def _while(self, node: ast.While) -> None:
        self._report_unread(node, f"the loop while {ast.unparse(node.test)[:80]}")

    def _match(self, node: ast.Match) -> None:
        self._report_unread(node, f"match {ast.unparse(node.subject)[:80]}")

    def _report_unread(self, node: ast.stmt, what: str) -> None:
        if any(isinstance(each, ast.Call) for each in ast.walk(node)):
            why, todo = "the file is not executed", "add its tasks, or its DAGs, by hand"
            self.missing(node, f"{what} was not read", why, todo)

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
        before = self.dag, self.group
        for item in node.items:
            value = self.value(item.context_expr)
            if isinstance(value, Dag):
                self.dag, self.group = value, Group(())
            elif isinstance(value, Group):
                self.group = value
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value)
        self.run(node.body)
        self.dag, self.group = before

    def _functiondef(self, node: ast.FunctionDef) -> None:
        kind, named, flavour = "plain", {}, ""
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            text = ast.unparse(call)
            first = text.split(".")[0]
            if first == "asset":
                self._new_asset(node, self.keywords(decorator) if isinstance(decorator, ast.Call) else {})
                return
            if first in ("dag", "task", "task_group", "setup", "teardown"):
                kind, flavour = ("task" if first in ("setup", "teardown") else first), f"@{text}"
                named = self.keywords(decorator) if isinstance(decorator, ast.Call) else {}
                if isinstance(decorator, ast.Call) and decorator.args and kind == "dag":
                    named = {"dag_id": self.value(decorator.args[0]), **named}
        self.names[node.name] = Function(kind, node, named, flavour=flavour)

    def _new_asset(self, node: ast.FunctionDef, named: dict[str, Any]) -> None:
        """A function with ``@asset``: an asset, a DAG of its name with its schedule, and the task that updates it."""
        label = named.get("name")
        name = label if isinstance(label, str) else node.name
        asset, dag = Asset(name), self._new_dag(node, {"dag_id": name, "schedule": named.get("schedule")})
        task = Task(name, "@asset", node.lineno, {"outlets": [asset]}, ())
        dag.tasks[name] = task
        self.names[node.name] = asset

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

    def _compare_(self, node: ast.Compare) -> Any:
        left, right = self.value(node.left), self.value(node.comparators[0])
        sign = OPERATIONS.get(type(node.ops[0])) if len(node.ops) == 1 else None
        if sign is None or not all(_is_literal(each) for each in (left, right)):
            return Unknown(ast.unparse(node))
        if sign in ("==", "!="):
            return (left == right) is (sign == "==")
        if not isinstance(right, str | list | tuple | dict) or (isinstance(right, str) and not isinstance(left, str)):
            return Unknown(ast.unparse(node))
        return (left in right) is (sign == "in")

    def _boolop_(self, node: ast.BoolOp) -> Any:
        found: Any = None
        for each in node.values:
            found = self.value(each)
            if isinstance(found, Unknown):
                return Unknown(ast.unparse(node))
            if bool(found) is isinstance(node.op, ast.Or):
                return found
        return found

    def _ifexp_(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        return (
            Unknown(ast.unparse(node)) if isinstance(test, Unknown) else self.value(node.body if test else node.orelse)
        )

    def _listcomp_(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Any:
        rounds = self._rounds(node.generators)
        if rounds is None:
            return self._not_read(node, node.elt)
        found = []
        for bound in rounds:
            self.names |= bound
            found.append(self.value(node.elt))
        return found

    _setcomp_ = _listcomp_
    _generatorexp_ = _listcomp_

    def _dictcomp_(self, node: ast.DictComp) -> Any:
        rounds = self._rounds(node.generators)
        if rounds is None:
            return self._not_read(node, node.value)
        found: dict[Any, Any] = {}
        for bound in rounds:
            self.names |= bound
            key = self.value(node.key)
            found[key if isinstance(key, str | int) else len(found)] = self.value(node.value)
        return found

    def _rounds(self, generators: list[ast.comprehension]) -> list[dict[str, Any]] | None:
        """The names that each round of a comprehension binds; None if its items or conditions are not known."""
        rounds: list[dict[str, Any]] = [{}]
        for generator in generators:
            following = []
            for bound in rounds:
                self.names |= bound
                items = self.value(generator.iter)
                items = list(items) if isinstance(items, dict) else items
                if not isinstance(items, list | tuple | range) or len(items) > MAX_ITEMS:
                    return None
                for item in items:
                    self.bind(generator.target, item)
                    tests = [self.value(each) for each in generator.ifs]
                    if any(isinstance(each, Unknown) for each in tests):
                        return None
                    names = [each.id for each in ast.walk(generator.target) if isinstance(each, ast.Name)]
                    if all(tests):
                        following.append({**bound, **{name: self.names[name] for name in names}})
            rounds = following
            if len(rounds) > MAX_ITEMS:
                return None
        return rounds

    def _not_read(self, node: ast.expr, item: ast.expr) -> Unknown:
        if any(isinstance(each, ast.Call) for each in ast.walk(item)):
            what = f"the list {ast.unparse(node)[:80]} was not read"
            self.missing(node, what, "its items are not known", "add its tasks by hand")
        return Unknown(ast.unparse(node))

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
            return self.order(left, right, isinstance(node.op, ast.RShift), node)
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            if all(isinstance(each, Asset | Assets) for each in (left, right)):
                return Assets("all" if isinstance(node.op, ast.BitAnd) else "any", (left, right))
            if isinstance(left, dict) and isinstance(right, dict):
                return left | right
        if isinstance(node.op, ast.Add) and type(left) is type(right) and isinstance(left, str | int | float | list):
            return left + right
        if isinstance(node.op, ast.Mult) and isinstance(left, Span) and isinstance(right, int | float):
            return Span(left.seconds * right)
        short = isinstance(left, str) and isinstance(right, int) and 0 <= right <= 1_000
        if isinstance(node.op, ast.Mult) and isinstance(right, int) and (isinstance(left, int) or short):
            return left * right
        return Unknown(ast.unparse(node))

    def order(self, left: Any, right: Any, forward: bool, node: ast.expr) -> Any:
        """Add the edges of ``left >> right``, or of ``<<``. Returns the left operand of the next operator."""
        if isinstance(right, Label):
            return left
        if isinstance(left, Label):
            return right
        one, other = self._ordered(left), self._ordered(right)
        dag = self._dag_of(one + other)
        if dag is not None and one and other:
            dag.edges.append((one, other) if forward else (other, one))
        for value, tasks, others in ((left, one, other), (right, other, one)):
            if others and (not tasks or any(isinstance(each, Unknown) for each in inside(value))):
                unread = next((each.text for each in inside(value) if isinstance(each, Unknown)), "")
                if unread:
                    what = f"the order of {unread[:80]} was not read"
                    self.missing(node, what, "it is no task that the reader knows", "add its edges by hand")
        return right

    def _dag_of(self, members: list[Any]) -> Dag | None:
        for dag in self.dags:
            if any(isinstance(each, Task) and dag.tasks.get(each.id) is each for each in members):
                return dag
        return self.dag

    def _ordered(self, value: Any) -> list[Any]:
        return [each for each in inside(value) if isinstance(each, Task | Group)]

    # Calls

    def _given(self, node: ast.Call) -> list[Any]:
        found: list[Any] = []
        for each in node.args:
            value = self.value(each.value if isinstance(each, ast.Starred) else each)
            found += value if isinstance(each, ast.Starred) and isinstance(value, list | tuple) else [value]
        return found

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
                others = [self.value(each) for each in node.args]
                self.order(holder, others, callee.attr == "set_downstream", node)
                return None
            if isinstance(holder, Task) and callee.attr in ("as_setup", "as_teardown"):
                return self._teardown(holder, node) if callee.attr == "as_teardown" else holder
            if isinstance(holder, str | list | dict):
                return self._method(holder, callee.attr, [self.value(each) for each in node.args], node)
            if isinstance(holder, Function) and callee.attr in ("override", "partial", "expand", "expand_kwargs"):
                return self._adapted(holder, callee.attr, node)
            if isinstance(holder, Group) and callee.attr in ("expand", "expand_kwargs"):
                return holder
            if callee.attr in ("expand", "expand_kwargs") and isinstance(holder, Task):
                return self._map(holder, node, callee.attr == "expand_kwargs")
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
        if how not in ("expand", "expand_kwargs"):
            named = {**function.named, **(self.keywords(node) if how == "override" else {})}
            fixed = {**function.fixed, **(self.keywords(node) if how == "partial" else {})}
            return Function(function.kind, function.node, named, fixed, function.flavour)
        if function.kind != "task":
            self.missing(
                node,
                f"the mapped group {function.node.name} became one group",
                "the number of its items is known only at run time",
                "let its workflows do all items, or start a run for each partition by `by`",
            )
            return self._apply(function, node)
        label = function.named.get("task_id", function.node.name)
        options = _with_literals(function.named, function.fixed)
        made = self._new_task(node, function.flavour, label, options, list(function.fixed.values()))
        return self._map(made, node, how == "expand_kwargs") if isinstance(made, Task) else made

    def _map(self, task: Task, node: ast.Call, objects: bool) -> Task:
        """Note the lists of ``expand``. The task waits for those whose results they are."""
        given = [self.value(each) for each in node.args] if objects else []
        over = {"": given[0]} if given else self.keywords(node)
        task.mapped = Mapped(over, node.lineno, objects)
        upstream = [each for value in over.values() for each in self._ordered(value)]
        if upstream and (dag := self._dag_of([task])) is not None:
            dag.edges.append((upstream, [task]))
        return task

    def _teardown(self, task: Task, node: ast.Call) -> Task:
        """``task.as_teardown(setups=...)``: it runs after its setups, also after a failure."""
        task.named.setdefault("trigger_rule", "all_done_setup_success")
        setups = [each for value in self.keywords(node).values() for each in self._ordered(value)]
        if setups and (dag := self._dag_of([task])) is not None:
            dag.edges.append((setups, [task]))
        return task

    def _method(self, holder: Any, name: str, given: list[Any], node: ast.Call) -> Any:
        """The result of a method of a text, a list or an object; Unknown for any other."""
        unknown = Unknown(ast.unparse(node))
        if isinstance(holder, dict):
            if name in ("items", "keys", "values") and not given:
                return [tuple(each) if name == "items" else each for each in getattr(holder, name)()]
            if name == "get" and given and isinstance(given[0], str | int):
                return holder.get(given[0], given[1] if len(given) > 1 else None)
            if name == "update" and len(given) == 1 and isinstance(given[0], dict):
                holder.update(given[0])
                return None
        elif isinstance(holder, list):
            if name in ("append", "extend") and len(given) == 1 and (name == "append" or isinstance(given[0], list)):
                getattr(holder, name)(given[0])
                return None
        elif name in ("lower", "upper", "strip", "replace", "title", "split") and all(
            isinstance(one, str) for one in given
        ):
            try:
                return getattr(holder, name)(*given)
            except (TypeError, ValueError):
                return unknown
        elif name == "join" and len(given) == 1 and isinstance(given[0], list | tuple):
            return holder.join(given[0]) if all(isinstance(one, str) for one in given[0]) else unknown
        elif name == "format" and all(isinstance(one, str | int) for one in (*given, *self.keywords(node).values())):
            try:
                return holder.format(*given, **self.keywords(node))
            except (KeyError, IndexError, ValueError, AttributeError):
                return unknown
        return unknown

    def _named_call(self, node: ast.Call, name: str) -> Any:
        given, named = self._given(node), self.keywords(node)
        if name == "DAG":
            return self._new_dag(node, {"dag_id": given[0], **named} if given else named)
        if name == "TaskGroup":
            label = given[0] if given else named.get("group_id")
            return self._new_group(label if isinstance(label, str) else f"group{node.lineno}", named)
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
                    self.order(left, right, True, node)
            return None
        if name == "cross_downstream" and len(given) == 2:
            return self.order(given[0], given[1], True, node)
        if "task_id" in named or name.endswith(("Operator", "Sensor")):
            return self._new_task(node, name, named.get("task_id"), named, [*given, *named.values()])
        return Unknown(ast.unparse(node))

    _BUILT_IN: ClassVar = {
        *("timedelta", "duration", "datetime", "timezone", "ZoneInfo"),
        *("str", "range", "dict", "list", "sorted", "enumerate", "zip", "len", "tuple", "set"),
    }

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
        if name == "dict":
            return {**given[0], **named} if given and isinstance(given[0], dict) else unknown if given else named
        return self._of_list(name, given, unknown)

    def _of_list(self, name: str, given: list[Any], unknown: Unknown) -> Any:
        lists = [list(each) for each in given if isinstance(each, list | tuple | range | dict)]
        if not lists or len(lists) < len(given):
            return [] if name in ("list", "tuple", "set") and not given else unknown
        if name == "zip":
            return [tuple(each) for each in zip(*lists, strict=False)]
        if len(lists) > 1:
            return unknown
        if name == "enumerate":
            return [tuple(each) for each in enumerate(lists[0])]
        if name == "len":
            return len(lists[0])
        if name == "sorted":
            plain = all(isinstance(each, str) for each in lists[0]) or all(isinstance(each, int) for each in lists[0])
            return sorted(lists[0]) if plain else unknown
        return lists[0]

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
        if any(each.id == label for each in self.dags):
            self.draft.find(
                f"line {node.lineno}",
                f"a second DAG is named {label}",
                "Airflow keeps only one of them",
                "rename one in the document, or remove it",
            )
            number = 2
            while any(each.id == f"{label}-{number}" for each in self.dags):
                number += 1
            label = f"{label}-{number}"
        dag = Dag(label, node.lineno, named, intervals=self.intervals)
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
        if not isinstance(label, str):
            self.missing(
                node,
                f"a task of {dag.id} was named task{node.lineno}",
                "its task_id is computed when the file is executed",
                "rename it in the document",
            )
        short = label if isinstance(label, str) else f"task{node.lineno}"
        full, number = ".".join([*self.group.prefix, short]), 1
        if full in dag.tasks and not kind.startswith("@"):
            self.missing(
                node,
                f"the second task {full} of {dag.id} became {full}__1",
                "Airflow refuses a task_id that is there twice",
                "rename one of them",
            )
        while full in dag.tasks:
            full, number = ".".join([*self.group.prefix, f"{short}__{number}"]), number + 1
        own = {key: value for key, value in named.items() if key not in ("dag", "task_group")}
        task = Task(full, kind, node.lineno, {**self.group.defaults, **own}, self.group.path)
        dag.tasks[full] = task
        upstream = [each for value in values for each in self._ordered(value) if each is not task]
        task.takes = [each.id for each in upstream if isinstance(each, Task)]
        if upstream:
            dag.edges.append((upstream, [task]))
        return task

    def _new_group(self, label: str, named: dict[str, Any]) -> Group:
        """A group inside the present one. The ids of its tasks begin with its name, unless ``prefix_group_id`` says
        otherwise."""
        prefix = self.group.prefix if named.get("prefix_group_id") is False else (*self.group.prefix, label)
        given = named.get("default_args")
        defaults = {**self.group.defaults, **(given if isinstance(given, dict) else {})}
        return Group((*self.group.path, label), prefix, defaults)

    def _apply(self, function: Function, node: ast.Call) -> Any:
        """Call a function of the file. A DAG and a group get their tasks from the function's body. A function with
        ``@task`` is one task, and its body is not read."""
        given, named = self._given(node), self.keywords(node)
        if function.kind == "task":
            label = function.named.get("task_id", function.node.name)
            values = [*given, *named.values(), *function.fixed.values()]
            parameters = [each.arg for each in function.node.args.args]
            passed = {**function.fixed, **dict(zip(parameters, given, strict=False)), **named}
            return self._new_task(node, function.flavour, label, _with_literals(function.named, passed), values)
        if self.depth >= MAX_DEPTH:
            return Unknown(ast.unparse(node))
        before = self.names, self.dag, self.group, self.result
        self.names, self.depth, self.result = self._bound(function.node, given, named), self.depth + 1, None
        made: Any = None
        if function.kind == "dag":
            options = {"dag_id": function.node.name, **function.named}
            made = self.dag = self._new_dag(function.node, options)
            made.about, self.group = ast.get_docstring(function.node) or "", Group(())
        elif function.kind == "task_group":
            label = function.named.get("group_id", function.node.name)
            made = self.group = self._new_group(label if isinstance(label, str) else function.node.name, function.named)
        self.run(function.node.body)
        result, self.depth = self.result, self.depth - 1
        self.names, self.dag, self.group, self.result = before
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
        if node.args.vararg is not None:
            bound[node.args.vararg.arg] = tuple(given[len(arguments) :])
        if node.args.kwarg is not None:
            known = {each.arg for each in (*arguments, *node.args.kwonlyargs)}
            bound[node.args.kwarg.arg] = {key: value for key, value in named.items() if key not in known}
        return {**self.names, **unset, **bound, **named}


def _is_zone(name: str) -> bool:
    return zones.zone(name) is not None


def _is_of_airflow_3(node: ast.stmt) -> bool:
    """Whether a statement imports the SDK, which came with Airflow 3."""
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").startswith("airflow.sdk")
    return isinstance(node, ast.Import) and any(each.name.startswith("airflow.sdk") for each in node.names)


def _is_literal(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool | list | tuple | dict)


def _with_literals(options: dict[str, Any], passed: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a task, and those with which its function is called that are literals."""
    known = {key: value for key, value in passed.items() if all(_is_literal(each) for each in inside(value))}
    return {**options, **({"op_kwargs": known} if known else {})}
