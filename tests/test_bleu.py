"""BLEU against sacreBLEU, its test vectors and published scores."""

import gzip
import json
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU, CHRF

from annotated_transformer.data.pair_tokenizer import moses_tokenize
from annotated_transformer.translation.bleu import (
    bleu,
    brevity_penalty,
    clipped_matches,
    moses_tokens,
    sentence_statistics,
    split_compounds,
    tokenize_13a,
)
from annotated_transformer.translation.scores import format_scores, scores
from benchmarks.paper.bleu_microscope import microscope
from benchmarks.significance import compare

HYPOTHESES = [
    "The dog bit the man.",
    "It wasn't surprising.",
    "The man had just bitten him.",
    "Nearly 1,000 well-known (and some unknown) people came; 3.5% left.",
]
REFERENCES = [
    [
        "The dog bit the man.",
        "It was not unexpected.",
        "The man bit him first.",
        "Almost 1,000 well known (and some unknown) people came; 3.5 % left.",
    ],
    [
        "The dog had bit the man.",
        "No one was surprised.",
        "The man had bitten the dog.",
        "About 1000 well-known and unknown people came, 3-4% left.",
    ],
]


def read_lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def tokenised(files: list[list[str]], tokenize: str) -> list[list[str]]:
    """Files as sacreBLEU's tokeniser of that name leaves them; 13a by our own."""
    tokens = tokenize_13a if tokenize == "13a" else BLEU(tokenize=tokenize).tokenizer
    return [[tokens(line.rstrip()) for line in file] for file in files]


# --- the parts


def test_a_repeated_word_is_clipped_to_the_most_generous_reference():
    references = ["the cat is on the mat".split(), "there is a cat".split()]
    assert clipped_matches(["the"] * 7, references, 1) == 2
    assert clipped_matches("a b a b".split(), ["a b c a b".split()], 2) == 2
    assert clipped_matches(["a"], [["a"]], 2) == 0


def test_closest_reference_length_prefers_the_shorter_of_equals():
    assert sentence_statistics("a b c", ["a b", "a b c d"]).reference_length == 2
    assert sentence_statistics("a b c", ["a", "a b c d"]).reference_length == 4
    with pytest.raises(ValueError, match="references 0"):
        sentence_statistics("a b", [])


def test_brevity_penalty():
    assert brevity_penalty(12, 10) == brevity_penalty(10, 10) == 1.0
    assert brevity_penalty(5, 10) == pytest.approx(0.36787944117)
    assert brevity_penalty(0, 10) == 0.0


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char"])
@pytest.mark.parametrize(
    "count, order, smooth",
    [(1, 4, "exp"), (2, 4, "exp"), (2, 2, "none"), (1, 5, "none")],
)
def test_equal_to_sacrebleu(tokenize, count, order, smooth):
    metric = BLEU(
        tokenize=tokenize, smooth_method=smooth, max_ngram_order=order, force=True
    )
    expected = metric.corpus_score(HYPOTHESES, REFERENCES[:count]).score
    hypotheses, *references = tokenised([HYPOTHESES, *REFERENCES[:count]], tokenize)
    found = bleu(hypotheses, references, order, smooth == "exp")
    assert found == pytest.approx(expected, abs=1e-9)


def test_each_sentence_equal_to_sacrebleu_where_matches_run_out():
    metric = BLEU(tokenize="none", force=True, effective_order=False)
    pairs = [
        ("a b c d e", "a x c y e"),
        ("a b", "a b"),
        ("a", "b"),
        ("a b c d", "a b c d e f g"),
        ("a b c d", "b a d c"),
    ]
    for hypothesis, reference in pairs:
        expected = metric.corpus_score([hypothesis], [[reference]]).score
        assert bleu([hypothesis], [reference]) == pytest.approx(expected, abs=1e-9)


def test_13a_equals_sacrebleu_on_awkward_text():
    tokenizer = BLEU().tokenizer
    lines = [
        "",
        " ",
        "a",
        ".",
        "3.5%, 1,000-2,000 (net) [x] {y} ~ `z` ^ _ | \\ / @ # $ & * + = < > ? ! ; :",
        "A&amp;B &lt;b&gt; &quot;q&quot; &amp;lt; &apos;",
        "<skipped>left",
        "don't – can’t “won”…",
        "3,a a,3 .5 5. -5 5-",
        "U.S.A. e.g. 10.30 Uhr",
        "x\u00a0y\u2009z\tw",
    ]
    assert [tokenize_13a(line) for line in lines] == [tokenizer(line) for line in lines]


def test_compounds_are_split_as_the_perl_expression_does():
    assert (
        split_compounds("a rich-text format - yes")
        == "a rich ##AT##-##AT## text format - yes"
    )
    assert split_compounds("-a b- --") == "-a b- --"
    assert split_compounds("x-y-z") == "x ##AT##-##AT## y-z"
    assert split_compounds("---") == "- ##AT##-##AT## -"


def test_a_beard_ends_a_sentence_only_when_lower_cased():
    """Moses takes "Bart" for an English title and leaves it its full stop."""
    line = ["Er rasiert seinen Bart."]
    assert moses_tokens(line, "de") == line
    assert moses_tokenize(line, "de", True) == ["er rasiert seinen bart ."]


# --- all conventions


def test_scores_are_those_of_sacrebleu():
    found = scores(HYPOTHESES, REFERENCES, "en")
    results = {score.name: score.value for score in found}
    for name, metric in {
        "BLEU 13a": BLEU(),
        "BLEU 13a, lower-cased": BLEU(lowercase=True),
        "BLEU intl": BLEU(tokenize="intl"),
        "chrF": CHRF(),
        "chrF++": CHRF(word_order=2),
    }.items():
        assert results[name] == metric.corpus_score(HYPOTHESES, REFERENCES).score
    files = [moses_tokens(file, "en") for file in (HYPOTHESES, *REFERENCES)]
    split = [[split_compounds(line) for line in file] for file in files]
    for name, (left, *right) in {
        "BLEU Moses": files,
        "BLEU Moses, compounds split": split,
    }.items():
        expected = bleu(left, right, smooth=False)
        assert results[name] == pytest.approx(expected, abs=1e-9)
    assert len({score.signature for score in found}) == len(results) == 8
    lines = format_scores(found).split("\n")
    for score, line in zip(found, lines, strict=True):
        assert line.startswith(score.name) and f"{score.value:.2f}" in line


@pytest.mark.parametrize(
    "hypotheses, references, counts",
    [
        ([], [], "0 hypotheses and 0 references"),
        (["a", "b"], ["a"], "2 hypotheses and 1 references"),
        (["a"], [["a"], ["a", "b"]], "1 hypotheses and 2 references"),
    ],
)
def test_sides_that_do_not_match_are_refused_with_both_counts(
    hypotheses, references, counts
):
    for call in (
        lambda: scores(hypotheses, references, "en"),
        lambda: bleu(hypotheses, references),
        lambda: compare(hypotheses, hypotheses, references),
    ):
        with pytest.raises(ValueError, match=counts):
            call()


def test_blank_lines_are_scored_as_nothing():
    expected = 100 * brevity_penalty(4, 8)
    assert bleu(["", "a b c d"], ["a b c d"] * 2) == pytest.approx(expected)
    assert scores([""], ["a"], "en")[0].value == 0.0


def test_a_comparison_takes_its_p_value_from_all_swaps():
    """Six sentences, two of them different: of the 64 swaps half reach the difference
    that was observed.
    """
    lines = [
        f"sentence number {i} of the test has these words in it" for i in range(40)
    ]
    worse = [line.replace("these", "those") for line in lines[:20]] + lines[20:]
    same, better = (compare(worse, it, lines, samples=100) for it in (worse, lines))
    assert same.baseline == same.system and same.p_value == 1.0
    assert better.system == pytest.approx(100) and better.p_value < 0.02
    assert better.system_interval < 1e-4 < better.baseline_interval
    assert better == compare(worse, lines, lines, samples=100)
    two = ["sentence one", "sentence two", *lines[2:6]]
    assert compare(two, lines[:6], lines[:6], samples=1_000).p_value == pytest.approx(
        0.5, abs=0.06
    )


def test_a_gap_that_every_swap_makes_is_no_proof():
    """One line differs, so each trial gives the same gap but for its sign."""
    lines = [f"the line number {i} is a line of words" for i in range(40)]
    one, other = ([*lines[1:], text] for text in ("1", "2"))
    assert compare(one, other, lines, samples=50).p_value == 1


def test_the_microscope_agrees_with_the_scores():
    found = microscope(HYPOTHESES, REFERENCES[0])
    named = {each.name: each.value for each in scores(HYPOTHESES, REFERENCES[0], "en")}
    both = {name: value for name, value in found.items() if f"BLEU {name}" in named}
    assert len(both) == 6
    for name, value in both.items():
        assert value == pytest.approx(named[f"BLEU {name}"], abs=1e-4)


# --- against published numbers (real data)


@pytest.mark.slow
def test_published_scores_of_systems(data_root):
    """Our own BLEU gives newstest2017 German-English outputs their published scores to
    the last digit.
    """
    path = data_root / "reference" / "wmt-system-outputs" / "published-scores.json"
    for entry in json.loads(path.read_text(encoding="utf-8"))[:3]:
        files = [read_lines(data_root / entry[it]) for it in ("file", "reference")]
        left, right = tokenised(files, "13a")
        assert left == [BLEU().tokenizer(line) for line in files[0]]
        assert len(left) == len(right) == 3004
        assert round(bleu(left, right), 2) == entry["published"]["bleu"]


@pytest.mark.slow
def test_multi30k_reference_has_the_published_length(data_root):
    lines = read_lines(data_root / "multi30k" / "test_2016_flickr.de.gz")
    assert sum(len(line.split()) for line in moses_tokenize(lines, "de", True)) == 12103
    results = {each.name: each for each in scores(lines, lines, "de")}
    assert results["BLEU Moses, lower-cased"].reference_length == 12103
    assert all(each.value == pytest.approx(100) for each in results.values())
