"""Small changes of a file, each of which is another program: what a slip would make."""

import ast
import copy
import random
from collections.abc import Iterator

SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
SWAPPED |= {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}


def mutants(source: str, names: list[str]) -> list[tuple[str, str]]:
    """(part, source) of every change of one operator, number, argument or name."""
    found = []
    tree = ast.parse(source)
    for i, part in enumerate(tree.body):
        if getattr(part, "name", None) in names:
            for number in range(sum(1 for _ in ast.walk(part))):
                for changed in _changes(part, number):
                    body = [*tree.body[:i], changed, *tree.body[i + 1 :]]
                    found.append((part.name, ast.unparse(ast.Module(body, []))))
    return found


def _changes(part: ast.stmt, number: int) -> Iterator[ast.stmt]:
    """The part with another node of that number, in each way that there is."""
    for way in (_operator, _number, _first_two, _other_name, _dropped_statement):
        changed = copy.deepcopy(part)
        node = list(ast.walk(changed))[number]
        if way(node, changed):
            yield ast.fix_missing_locations(changed)


def _operator(node: ast.AST, part: ast.stmt) -> bool:
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        node.op = SWAPPED[type(node.op)]()
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        node.ops = [SWAPPED[type(node.ops[0])]()]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        node.op = ast.UAdd()
    else:
        return False
    return True


def _number(node: ast.AST, part: ast.stmt) -> bool:
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
        return False
    node.value += 1
    return True


def _first_two(node: ast.AST, part: ast.stmt) -> bool:
    """The first two arguments change places."""
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return False
    one, other, *rest = node.args
    if ast.dump(one) == ast.dump(other):
        return False
    node.args = [other, one, *rest]
    return True


def _other_name(node: ast.AST, part: ast.stmt) -> bool:
    """The next of the names that are read in the same part."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return False
    functions = [f for f in ast.walk(part) if isinstance(f, ast.FunctionDef)]
    own = next((f for f in functions if node in ast.walk(f)), None)
    names = [a.arg for a in own.args.args if a.arg != "self"] if own else []
    if node.id not in names or len(names) < 2:
        return False
    node.id = names[(names.index(node.id) + 1) % len(names)]
    return True


def _dropped_statement(node: ast.AST, part: ast.stmt) -> bool:
    body = getattr(node, "body", None)
    if not isinstance(node, ast.FunctionDef | ast.If) or len(body) < 2:
        return False
    at = 1 if node.name == "__init__" else 0
    del body[at]
    return bool(body)


def drawn(source: str, names: list[str], count: int, seed: int = 0):
    """So many of them, drawn from a seed."""
    return random.Random(seed).sample(mutants(source, names), count)
