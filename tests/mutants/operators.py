"""Small changes to a module, one at a time: each is a mutant that some test should notice."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
_LONGEST_TEXT = 120

_Place = tuple[ast.AST, str]
_Change = tuple[str, str, object]


@dataclass(frozen=True)
class Mutant:
    module: str
    name: str
    """Where it is and what it changes. It contains no line number, so it stays the same when code moves."""
    scope: str
    """Its outermost function, with its class; empty if the code runs on import."""
    place: int
    change: int


def mutants(module: str, source: str) -> Iterator[Mutant]:
    counted: Counter[str] = Counter()
    for place, (node, scope) in enumerate(_places(ast.parse(source))):
        for number, (text, _, _) in enumerate(_changes(node)):
            name = f"{module}.{scope}: {text}" if scope else f"{module}: {text}"
            counted[name] += 1
            unique = f"{name} (#{counted[name]})" if counted[name] > 1 else name
            yield Mutant(module, unique, scope, place, number)


def mutated(source: str, mutant: Mutant) -> ast.Module:
    tree = ast.parse(source)
    node = _places(tree)[mutant.place][0]
    _, field, value = list(_changes(node))[mutant.change]
    setattr(node, field, value)
    return ast.fix_missing_locations(tree)


def _places(tree: ast.Module) -> list[_Place]:
    """Every node that can be changed, with the name of its function ("" on import).

    A nested function is part of the outer one: it exists only while that runs, so its code cannot be replaced alone.
    """
    found: list[_Place] = []

    def visit(node: ast.AST, scope: str, prefix: str) -> None:
        found.append((node, scope))
        named = f"{prefix}{node.name}" if isinstance(node, ast.FunctionDef | ast.ClassDef) else prefix.rstrip(".")
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or _is_inert(node, field, child):
                    continue
                is_body = isinstance(node, ast.FunctionDef) and field == "body"
                inside = scope or (named if is_body else "")
                visit(child, inside, f"{named}." if named else "")

    for statement in tree.body:
        if not _is_inert(tree, "body", statement):
            visit(statement, "", "")
    return found


def _is_inert(node: ast.AST, field: str, child: ast.AST) -> bool:
    """Types, docstrings, class options, decorators, imports and texts for people."""
    if field in ("annotation", "returns", "decorator_list", "targets", "target"):
        return True
    if isinstance(node, ast.ClassDef) and field in ("bases", "keywords"):
        return True
    if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
        return True
    return isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)


def _changes(node: ast.AST) -> Iterator[_Change]:  # noqa: C901, PLR0912  one case for each kind of node
    """What is changed in words, the node's field, and its new value."""
    match node:
        case ast.Compare(ops=ops):
            for at, op in enumerate(ops):
                for new in _OPERATORS.get(type(op), ()):
                    yield f"{_text(node)} => {new.__name__}", "ops", [*ops[:at], new(), *ops[at + 1 :]]
        case ast.BoolOp(op=op, values=values):
            yield f"{_text(node)} => {_OPERATORS[type(op)][0].__name__}", "op", _OPERATORS[type(op)][0]()
            without = ast.Constant(isinstance(op, ast.And))  # as if the operand were not there
            for at, value in enumerate(values):
                yield f"{_text(node)} without {_text(value)}", "values", [*values[:at], without, *values[at + 1 :]]
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            yield from ((f"{_text(node)} => {new.__name__}", "op", new()) for new in _OPERATORS.get(type(op), ()))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"{_text(node)} => {_text(operand)}", "operand", ast.UnaryOp(ast.Not(), operand)
        case ast.If(test=test) | ast.IfExp(test=test):
            yield from ((f"if {_text(test)} => {value}", "test", ast.Constant(value)) for value in (True, False))
        case ast.comprehension(ifs=ifs):
            for at, test in enumerate(ifs):
                for answer in (True, False):
                    yield f"if {_text(test)} => {answer}", "ifs", [*ifs[:at], ast.Constant(answer), *ifs[at + 1 :]]
        case ast.Call(func=func, keywords=keywords):
            for at, keyword in enumerate(keywords):
                yield f"{_text(func)}() without {_text(keyword)}", "keywords", keywords[:at] + keywords[at + 1 :]
            yield from _other_call(node, func)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            for at, element in enumerate(elements):
                yield f"{_text(node)} without {_text(element)}", "elts", elements[:at] + elements[at + 1 :]
        case ast.Constant(value=bool() as value):
            yield f"{value} => {not value}", "value", not value
        case ast.Constant(value=int() | float() as value):
            yield f"{value} => {value + 1}", "value", value + 1
        case ast.Constant(value=str() as value) if value and " " not in value:  # a name; not a text for people
            yield f"{value!r} => {value + 'X'!r}", "value", f"{value}X"
        case ast.Expr(value=ast.Call() as call):
            yield f"{_text(call)} => None", "value", ast.Constant(None)


def _other_call(node: ast.Call, func: ast.expr) -> Iterator[_Change]:
    match func:
        case ast.Name(id=name) if name in _CALLS:
            yield f"{_text(node)} => {_CALLS[name]}", "func", ast.Name(_CALLS[name], ast.Load())
        case ast.Attribute(value=owner, attr=name) if name in _CALLS:
            yield f"{_text(node)} => {_CALLS[name]}", "func", ast.Attribute(owner, _CALLS[name], ast.Load())


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
