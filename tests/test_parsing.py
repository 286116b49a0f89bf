"""Trees, their sequences, the repair of broken ones, labelled F1, and the grammar."""

import gzip
import os
from pathlib import Path

import pytest
import torch

from annotated_transformer import UserError
from annotated_transformer.decoding.model_search import ModelSearch
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.translation.parsing import (
    TreeVocabulary,
    delinearise,
    linearise,
    parse,
    score_brackets,
)
from annotated_transformer.translation.repair import tree_of
from annotated_transformer.translation.trees import Tree, read_trees
from benchmarks.paper import parsing as benchmark
from benchmarks.paper.constrained import WellFormed
from benchmarks.paper.grammar import PCFG, binary_rules, parse_with_grammar
from benchmarks.paper.parsing import clean, is_well_formed

RAW = """( (S (NP-SBJ-1 (DT the) (NN cat) )
   (VP (VBD was) (VP (VBN seen) (NP (-NONE- *-1) ))) (. .) ))"""
CLEAN = "(TOP (S (NP (DT the) (NN cat)) (VP (VBD was) (VP (VBN seen))) (. .)))"


def tree(text: str) -> Tree:
    (found,) = read_trees(text)
    return found


def test_reading_and_cleaning():
    assert str(clean(tree(RAW))) == CLEAN
    assert [str(each) for each in read_trees(CLEAN + "\n" + CLEAN)] == [CLEAN] * 2
    assert list(read_trees("")) == []
    assert clean(tree("(S (NP (-NONE- *)) (VP (-NONE- *)))")) is None
    assert str(clean(tree("(S=2 (PRT|ADVP (-LRB- -LRB-)))"))) == (
        "(S (PRT (-LRB- -LRB-)))"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(S (NN a)", "tree 1: 1 brackets are never closed"),
        ("(S (NN a)))", "tree 2: '[)]' has no open bracket"),
        ("(S (NN a b))", "tree 1: 'a' needs a bracket of its own"),
        ("(S a (NN b))", "tree 1: 'a' needs"),
    ],
)
def test_brackets_that_do_not_fit_are_named(text, words):
    with pytest.raises(UserError, match=words):
        list(read_trees(text))


def test_tokens_and_back():
    one = tree(CLEAN)
    tokens = "(S (NP DT NN )NP (VP VBD (VP VBN )VP )VP . )S".split()
    assert linearise(one) == tokens
    assert delinearise(tokens, one.leaves()) == one
    assert tree_of(tokens, one.leaves()) == one
    assert is_well_formed(tokens, one.leaves())


@pytest.mark.parametrize(
    ("written", "repaired"),
    [
        ("", "(TOP (A a) (B b) (C c))"),
        ("(S (X A B C", "(TOP (S (X (A a) (B b) (C c))))"),
        ("(S (X A )X B C D E )S", "(TOP (S (X (A a)) (B b) (C c)))"),
        ("(S (X A )X", "(TOP (S (X (A a)) (B b) (C c)))"),
        ("(S (X B )X C )S", "(TOP (S (X (A a) (B b)) (C c)))"),
        ("(S (X D D )X C )S", "(TOP (S (X (A a) (B b)) (C c)))"),
        ("(S (X A A )X B C )S", "(TOP (S (X (A a)) (B b) (C c)))"),
        ("(S (X A )X )S", "(TOP (S (X (A a))) (B b) (C c))"),
        ("(S (X (Y A B )X C )S", "(TOP (S (X (Y (A a) (B b))) (C c)))"),
        (")X (S A )Y B (X )X C )S )S", "(TOP (S (A a) (B b) (C c)))"),
        ("(S C C C )S", "(TOP (S (A a) (B b) (C c)))"),
        (")TOP (S A B C )S", "(TOP (S (A a) (B b) (C c)))"),
    ],
)
def test_repair_keeps_each_word_once_and_in_order(written, repaired):
    leaves = tree("(S (A a) (B b) (C c))").leaves()
    assert str(tree_of(written.split(), leaves)) == repaired
    assert not is_well_formed(written.split(), leaves)


def test_any_sequence_becomes_a_tree_over_the_sentence():
    torch.manual_seed(0)
    leaves = tree("(S (A a) (B b) (C c))").leaves()
    known = ["(S", "(X", ")S", ")X", "A", "B"]
    for _ in range(500):
        places = torch.randint(len(known), (int(torch.randint(12, ())),))
        found = tree_of([known[i] for i in places], leaves)
        assert found.leaves() == leaves
        assert list(read_trees(str(found))) == [found]


def test_score_by_hand():
    """Six constituents in gold: S, NP, VP, NP, PP, NP; the parsed tree has one more, an
    NP over "the man with eyes".
    """
    gold = tree(
        "(TOP (S (NP (PRP I)) (VP (VBP see) (NP (DT the) (NN man)) "
        "(PP (IN with) (NP (NNS eyes)))) (. .)))"
    )
    parsed = tree(
        "(TOP (S (NP (PRP I)) (VP (VBP see) (NP (NP (DT the) (NN man)) "
        "(PP (IN with) (NP (NNS eyes))))) (. .)))"
    )
    found = score_brackets([gold], [parsed])
    assert found.recall == 100 and found.precision == pytest.approx(600 / 7)
    assert found.f1 == pytest.approx(1200 / 13) and found.exact == 0
    flat = tree_of(["(S"], gold.leaves())
    both = score_brackets([gold, gold], [gold, flat])
    assert both.precision == 100 and both.recall == pytest.approx(700 / 12)
    assert both.exact == 50
    wrong = tree(str(gold).replace("(VP", "(NP"))
    assert score_brackets([gold], [wrong]).f1 == pytest.approx(500 / 6)
    with pytest.raises(UserError, match="no constituents"):
        score_brackets([], [])


def test_a_grammar_parses_what_it_has_seen():
    seen = [tree(CLEAN), tree("(TOP (S (NP (NN tea)) (VP (VBZ helps)) (. .)))")]
    grammar = PCFG(seen)
    for one in seen:
        assert parse_with_grammar(grammar, one.leaves()) == one
    assert parse_with_grammar(grammar, tree("(S (XX a) (NN b))").leaves()) is None
    single = tree("(TOP (INTJ (UH yes)))")
    assert parse_with_grammar(PCFG([*seen, single]), single.leaves()) == single


def test_the_grammar_takes_the_more_frequent_attachment():
    begin, pp = "(TOP (S (NP (PRP I)) (VP (VBP see) ", "(PP (IN in) (NP (NN y)))"
    low = begin + f"(NP (NP (NN x)) {pp}))))"
    high = begin + f"(NP (NN x)) {pp})))"
    for often, seldom in [(low, high), (high, low)]:
        grammar = PCFG([tree(often), tree(often), tree(seldom)])
        assert str(parse_with_grammar(grammar, tree(low).leaves())) == often


@pytest.mark.parametrize(
    ("order", "subject", "verb", "rests"),
    [
        (0, "NP+NN^", "VP^", {"@S^:"}),
        (1, "NP+NN^S", "VP^S", {"@S^SBAR:NP", "@S^SBAR:ADVP"}),
        (2, "NP+NN^S^SBAR", "VP^S^SBAR", {"@S^SBAR:NP", "@S^SBAR:NP+ADVP"}),
    ],
)
def test_a_symbol_names_as_much_as_the_order_says(order, subject, verb, rests):
    inner = "(S (NP (NN tea)) (ADVP (RB now)) (VP (VBZ helps) (NP (PRP us))) (. .))"
    _, rules = binary_rules(tree(f"(TOP (SBAR (IN that) {inner}))"), order)
    symbols = {name for rule in rules for name in rule}
    assert {subject, verb} < symbols
    assert {name for name in symbols if name[0] == "@"} == rests


def test_copies_have_constituents_of_the_same_kind(monkeypatch):
    monkeypatch.setattr(benchmark, "SHARE", 0.3)
    trees = [tree(CLEAN), tree("(TOP (S (NP (NN tea)) (VP (VBZ helps)) (. .)))")]

    def kinds(one):
        below = [(child.label, one.label) for child in one.children]
        return {*below}.union(*map(kinds, one.children))

    copies = benchmark.with_copies(trees, seed=1)
    assert copies[:2] == trees and len(copies) == 2 * (1 + benchmark.COPIES)
    assert any(copy not in trees for copy in copies)
    known = kinds(trees[0]) | kinds(trees[1])
    assert all(kinds(copy) <= known for copy in copies)
    monkeypatch.setattr(benchmark, "LONGEST", 3)
    assert benchmark.with_copies(trees[:1], seed=1) == trees[:1]


def test_vocabulary_pairs_and_a_search_without_training():
    trees = [tree(CLEAN), tree("(TOP (S (NP (NN tea)) (VP (VBZ helps)) (. .)))")]
    vocabulary = TreeVocabulary(trees)
    pairs = vocabulary.pairs(trees)
    assert len(pairs) == 2 and pairs.src_lengths.tolist() == [6, 4]
    names = [vocabulary.tokens[i] for i in pairs[0][1]]
    assert names == [*linearise(trees[0]), "</s>"]
    assert vocabulary.encode(["XX"]) == [3, 2]
    size, sizes = (
        len(vocabulary.tokens),
        dict(N=1, d_model=8, d_ff=8, h=2, d_k=4, d_v=4),
    )
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(size, size, **sizes)).eval()
    sentences = [each.leaves() for each in trees]
    written = parse(ModelSearch(model), vocabulary, sentences, beam_size=2)
    for tokens, leaves in zip(written, sentences, strict=True):
        assert len(tokens) <= 306
        assert tree_of(tokens, leaves).leaves() == leaves


class Guesses:
    """A `StepModel` that knows nothing, and likes to open a bracket."""

    config = TransformerConfig(20, 20, N=1, d_model=8, d_ff=8, h=2, d_k=4, d_v=4)
    training = False

    def __init__(self, vocabulary):
        self.generator = torch.Generator().manual_seed(1)
        opens = [token[0] == "(" for token in vocabulary.tokens]
        self.liking = 1.0 * torch.tensor(opens)

    def start(self, src, beam_size=1):
        return self

    def reorder(self, rows):
        pass

    def step(self, tokens, cache):
        sizes = len(tokens), len(self.liking)
        return 2 * torch.randn(sizes, generator=self.generator) + self.liking


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_constrained_parser_writes_nothing_but_trees(beam_size):
    one = tree(CLEAN)
    vocabulary, sentences = TreeVocabulary([one]), [one.leaves()[:n] for n in (3, 4, 5)]
    for _ in range(10):
        free, bound = (
            parse(ModelSearch(model), vocabulary, sentences, beam_size)
            for model in (
                Guesses(vocabulary),
                WellFormed(Guesses(vocabulary), vocabulary),
            )
        )
        assert all(map(is_well_formed, bound, sentences))
        trees = map(tree_of, bound, sentences)
        assert all(len(each.children) == 1 for each in trees)  # one root
        assert not any(map(is_well_formed, free, sentences))


@pytest.mark.slow
def test_the_sample_goes_inlinearise_and_back():
    path = Path(os.environ.get("ANNOTATED_TRANSFORMER_DATA", "-"))
    path = path / "treebank" / "ptb-wsj-sample.mrg.gz"
    if not path.exists():
        pytest.skip("ANNOTATED_TRANSFORMER_DATA names no folder with treebank/")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        trees = [clean(each) for each in read_trees(file.read())]
    assert len(trees) == 3914 and None not in trees
    for one in trees[::5]:
        assert one.label == "TOP"
        assert tree_of(linearise(one), one.leaves()) == one
    assert score_brackets(trees, trees).f1 == 100
