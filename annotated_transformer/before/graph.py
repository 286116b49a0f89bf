"""The graph of operations that PyTorch keeps behind a result."""

from typing import Any

from torch import Tensor


def longest_chain(result: Tensor) -> int:
    """How many operations behind a result must follow one another: sequential ones."""
    order: list[Any] = []
    seen: set[Any] = set()
    stack: list[tuple[Any, bool]] = [(result.grad_fn, False)]
    while stack:
        node, known = stack.pop()
        if known:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(before, False) for before, _ in node.next_functions if before]
    depth: dict[Any, int] = {}
    for node in order:
        before = [depth[each] for each, _ in node.next_functions if each]
        depth[node] = 1 + max(before, default=0)
    return depth[result.grad_fn]
