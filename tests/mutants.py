"""Small changes of a file, each of which is another program: what a slip would make."""

import ast
import random
from collections.abc import Iterator
from typing import Any

SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
SWAPPED |= {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
Fields = dict[str, Any]  # of a node, by name, as a change makes them


def mutants(
    tree: ast.Module, names: list[str]
) -> Iterator[tuple[str, ast.AST, Fields]]:
    """(part, node, fields) of each change of an operator, number, argument or name."""
    for part in tree.body:
        if getattr(part, "name", None) in names:
            for node in ast.walk(part):
                for way in (_operator, _number, _first_two, _other_name, _dropped):
                    if fields := way(node, part):
                        yield part.name, node, fields


def _operator(node: ast.AST, part: ast.stmt) -> Fields:
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        return {"op": SWAPPED[type(node.op)]()}
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        return {"ops": [SWAPPED[type(node.ops[0])]()]}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return {"op": ast.UAdd()}
    return {}


def _number(node: ast.AST, part: ast.stmt) -> Fields:
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
        return {}
    return {"value": node.value + 1}


def _first_two(node: ast.AST, part: ast.stmt) -> Fields:
    """The first two arguments change places."""
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return {}
    one, other, *rest = node.args
    if ast.dump(one) == ast.dump(other):
        return {}
    return {"args": [other, one, *rest]}


def _other_name(node: ast.AST, part: ast.stmt) -> Fields:
    """The next of the names that are read in the same part."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return {}
    functions = [f for f in ast.walk(part) if isinstance(f, ast.FunctionDef)]
    own = next((f for f in functions if node in ast.walk(f)), None)
    names = [a.arg for a in own.args.args if a.arg != "self"] if own else []
    if node.id not in names or len(names) < 2:
        return {}
    return {"id": names[(names.index(node.id) + 1) % len(names)]}


def _dropped(node: ast.AST, part: ast.stmt) -> Fields:
    """A statement is missing: the second of `__init__`, the first of others."""
    if not isinstance(node, ast.FunctionDef | ast.If) or len(node.body) < 2:
        return {}
    at = 1 if getattr(node, "name", "") == "__init__" else 0
    return {"body": node.body[:at] + node.body[at + 1 :]}


def drawn(
    source: str, names: list[str], count: int, seed: int = 0
) -> list[tuple[str, str]]:
    """(part, source) of so many changes, drawn from a seed."""
    tree, found = ast.parse(source), []
    every = list(mutants(tree, names))
    for name, node, fields in random.Random(seed).sample(every, count):
        before = {field: getattr(node, field) for field in fields}
        vars(node).update(fields)
        found.append((name, ast.unparse(tree)))
        vars(node).update(before)
    return found
