"""A probabilistic context-free grammar, counted in trees, and CKY, its search."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from annotated_transformer.translation.trees import Tree


def binary_rules(
    tree: Tree, order: int = 1, above: tuple[str, ...] = ()
) -> tuple[str, list[tuple[str, str, str]]]:
    """A tree's symbol, and its rules with two symbols on the right.

    A chain of single children is one symbol. A constituent's symbol names `order`
    labels above it, and that of a rest as many siblings before it, too.
    """
    chain = [tree.label]
    while len(tree.children) == 1:
        tree = tree.children[0]
        chain.append(tree.label)
    context = "^" + "^".join(above)
    name = "+".join(chain) + ("" if tree.word and len(chain) == 1 else context)
    if tree.word:
        return name, []
    symbols, rules, here = [], [], (chain[-1], *above)[:order]
    for child in tree.children:
        symbol, inside = binary_rules(child, order, here)
        symbols.append(symbol)
        rules.extend(inside)
    left = name
    for index, symbol in enumerate(symbols[:-2], 1):
        before = tree.children[max(0, index - order) : index]
        part = f"@{chain[-1]}{context}:{'+'.join(each.label for each in before)}"
        rules.append((left, symbol, part))
        left = part
    return name, [*rules, (left, symbols[-2], symbols[-1])]


class PCFG:
    """A probabilistic context-free grammar, its rules counted in trees."""

    def __init__(self, trees: Iterable[Tree], order: int = 1):
        rules: Counter[tuple[str, str, str]] = Counter()
        roots: Counter[str] = Counter()
        leaves: set[str] = set()
        for tree in trees:
            root, counts = binary_rules(tree, order)
            roots[root] += 1
            rules.update(counts)
            leaves |= {name for rule in counts for name in rule[1:]} | {root}
        self.names = sorted(leaves | {rule[0] for rule in rules})
        number = {name: i for i, name in enumerate(self.names)}
        parents = {name for name, _, _ in rules}
        self.of_tag: dict[str, list[int]] = defaultdict(list)
        for name in leaves - parents:
            self.of_tag[name.partition("^")[0].rpartition("+")[2]].append(number[name])
        totals: Counter[str] = Counter()
        for rule, count in rules.items():
            totals[rule[0]] += count
        self.rules = np.array([[number[n] for n in rule] for rule in sorted(rules)])
        self.scores = np.array(
            [math.log(rules[rule] / totals[rule[0]]) for rule in sorted(rules)],
            np.float32,
        )
        self.firsts = np.flatnonzero(np.diff(self.rules[:, 0], prepend=-1))
        self.roots = np.full(len(self.names), -np.inf, np.float32)
        for name, count in roots.items():
            self.roots[number[name]] = math.log(count / roots.total())


def chart_of(grammar: PCFG, tags: Sequence[str]) -> dict[tuple[int, int], np.ndarray]:
    """CKY: for each stretch of words, the best log-probability of each symbol."""
    n, (parents, left, right) = len(tags), grammar.rules.T
    heads = parents[grammar.firsts]
    chart: dict[tuple[int, int], np.ndarray] = {}
    lefts = np.full((n, n + 1, len(left)), -np.inf, np.float32)
    rights = np.full((n + 1, n, len(left)), -np.inf, np.float32)  # by end, then start
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            j = i + width
            cell = np.full(len(grammar.names), -np.inf, np.float32)
            if width == 1:
                cell[grammar.of_tag.get(tags[i], [])] = 0.0
            else:
                best = (lefts[i, i + 1 : j] + rights[j, i + 1 : j]).max(0)
                best += grammar.scores
                cell[heads] = np.maximum.reduceat(best, grammar.firsts)
            chart[i, j] = cell
            lefts[i, j], rights[j, i] = cell[left], cell[right]
    return chart


def parse_with_grammar(grammar: PCFG, leaves: Sequence[Tree]) -> Tree | None:
    """The most probable tree over a sentence's tags; None if the grammar has none."""
    chart = chart_of(grammar, [leaf.label for leaf in leaves])
    totals = chart[0, len(leaves)] + grammar.roots
    if totals.max() == -np.inf:
        return None
    parents = grammar.rules[:, 0]

    def parts(symbol: int, i: int, j: int) -> list[Tree]:
        name = grammar.names[symbol]
        if j == i + 1:
            inside = [leaves[i]]
            labels = name.partition("^")[0].split("+")[:-1]
        else:
            low, high = np.searchsorted(parents, [symbol, symbol + 1])
            _, left, right = grammar.rules[low:high].T
            splits = range(i + 1, j)
            scores = [chart[i, k][left] + chart[k, j][right] for k in splits]
            best = (np.stack(scores) + grammar.scores[low:high]).argmax()
            split, rule = divmod(int(best), len(left))
            k = splits[split]
            inside = parts(int(left[rule]), i, k) + parts(int(right[rule]), k, j)
            if name.startswith("@"):
                return inside
            labels = name.partition("^")[0].split("+")
        for label in reversed(labels):
            inside = [Tree(label, tuple(inside))]
        return inside

    return parts(int(totals.argmax()), 0, len(leaves))[0]
