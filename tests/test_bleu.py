"""BLEU against sacreBLEU, its test vectors and published scores."""

import gzip
import json
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU, CHRF

from annotated_transformer.data.tokenizer import moses_tokenize
from annotated_transformer.translation.bleu import (
    BleuStatistics,
    bleu,
    bleu_of,
    bleu_statistics,
    brevity_penalty,
    clipped_matches,
    compare,
    format_scores,
    moses_tokens,
    reference_files,
    scores,
    sentence_statistics,
    split_compounds,
    tokenize_13a,
)
from benchmarks.paper.bleu_microscope import FIELDS, microscope

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


@pytest.fixture(scope="module")
def vectors(data_root: Path) -> dict:
    with gzip.open(
        data_root / "reference" / "sacrebleu-test-vectors.json.gz",
        "rt",
        encoding="utf-8",
    ) as file:
        return json.load(file)


@pytest.fixture(scope="module")
def published(data_root: Path) -> list[dict]:
    path = data_root / "reference" / "wmt-system-outputs" / "published-scores.json"
    return json.loads(path.read_text(encoding="utf-8"))


def tokenised(files: list[list[str]], tokenize: str) -> list[list[str]]:
    """Files as sacreBLEU's tokeniser of that name leaves them; 13a by our own."""
    tokens = tokenize_13a if tokenize == "13a" else BLEU(tokenize=tokenize).tokenizer
    return [[tokens(line.rstrip()) for line in file] for file in files]


# --- the parts


def test_a_repeated_word_is_clipped_to_the_most_generous_reference():
    assert (
        clipped_matches(
            ["the"] * 7, ["the cat is on the mat".split(), "there is a cat".split()], 1
        )
        == 2
    )
    assert clipped_matches("a b a b".split(), ["a b c a b".split()], 2) == 2
    assert clipped_matches(["a"], [["a"]], 2) == 0


def test_closest_reference_length_prefers_the_shorter_of_equals():
    assert sentence_statistics("a b c", ["a b", "a b c d"]).reference_length == 2
    assert sentence_statistics("a b c", ["a", "a b c d"]).reference_length == 4


def test_statistics_need_an_order_and_a_reference():
    with pytest.raises(ValueError, match="order is 0"):
        bleu(["a b"], ["a b"], order=0)
    with pytest.raises(ValueError, match="references 0"):
        sentence_statistics("a b", [])


def test_brevity_penalty():
    assert brevity_penalty(12, 10) == brevity_penalty(10, 10) == 1.0
    assert brevity_penalty(5, 10) == pytest.approx(0.36787944117)
    assert brevity_penalty(0, 10) == 0.0


def test_statistics_add_up():
    whole = bleu_statistics(HYPOTHESES, REFERENCES)
    halves = [
        bleu_statistics(HYPOTHESES[s], [file[s] for file in REFERENCES])
        for s in (slice(2), slice(2, None))
    ]
    assert halves[0] + halves[1] == whole


@pytest.mark.parametrize("tokenize", ["none", "13a", "intl", "char"])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("order", [1, 2, 4, 5])
@pytest.mark.parametrize("smooth", ["exp", "none"])
def test_equal_to_sacrebleu(tokenize, count, order, smooth):
    metric = BLEU(
        tokenize=tokenize, smooth_method=smooth, max_ngram_order=order, force=True
    )
    expected = metric.corpus_score(HYPOTHESES, REFERENCES[:count]).score
    hypotheses, *references = tokenised([HYPOTHESES, *REFERENCES[:count]], tokenize)
    assert bleu(hypotheses, references, order, smooth == "exp") == pytest.approx(
        expected, abs=1e-9
    )


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


# --- all conventions


def test_scores_are_those_of_sacrebleu():
    results = {score.name: score for score in scores(HYPOTHESES, REFERENCES, "en")}
    assert (
        results["BLEU 13a"].value == BLEU().corpus_score(HYPOTHESES, REFERENCES).score
    )
    assert (
        results["BLEU 13a, lower-cased"].value
        == BLEU(lowercase=True).corpus_score(HYPOTHESES, REFERENCES).score
    )
    assert (
        results["BLEU intl"].value
        == BLEU(tokenize="intl").corpus_score(HYPOTHESES, REFERENCES).score
    )
    assert results["chrF"].value == CHRF().corpus_score(HYPOTHESES, REFERENCES).score
    assert (
        results["chrF++"].value
        == CHRF(word_order=2).corpus_score(HYPOTHESES, REFERENCES).score
    )
    moses, *references = [
        moses_tokens(file, "en") for file in (HYPOTHESES, *REFERENCES)
    ]
    assert results["BLEU Moses"].value == pytest.approx(
        bleu(moses, references, smooth=False), abs=1e-9
    )
    split, *references = [
        [split_compounds(line) for line in file] for file in (moses, *references)
    ]
    assert results["BLEU Moses, compounds split"].value == pytest.approx(
        bleu(split, references, smooth=False), abs=1e-9
    )
    assert len({score.signature for score in results.values()}) == len(results) == 8
    assert "tok:none" not in "".join(score.signature for score in results.values())


def test_a_plain_list_is_one_reference():
    assert scores(HYPOTHESES, REFERENCES[0], "en") == scores(
        HYPOTHESES, [REFERENCES[0]], "en"
    )


def test_table_has_a_line_per_score():
    results = scores(HYPOTHESES, REFERENCES[0], "en")
    lines = format_scores(results).split("\n")
    assert len(lines) == len(results)
    for score, line in zip(results, lines, strict=True):
        assert (
            line.startswith(score.name)
            and f"{score.value:.2f}" in line
            and line.endswith(score.signature)
        )


@pytest.mark.parametrize(
    "hypotheses, references, counts",
    [
        ([], [], "0 hypotheses and 0 references"),
        ([], ["a"], "0 hypotheses and 1 references"),
        (["a", "b"], [], "2 hypotheses and 0 references"),
        (["a", "b"], ["a"], "2 hypotheses and 1 references"),
        (["a"], [["a"], ["a", "b"]], "1 hypotheses and 2 references"),
        (["a"], [[]], "1 hypotheses and 0 references"),
    ],
)
def test_sides_that_do_not_match_are_refused_with_both_counts(
    hypotheses, references, counts
):
    for call in (
        lambda: scores(hypotheses, references, "en"),
        lambda: bleu(hypotheses, references),
        lambda: reference_files(hypotheses, references),
        lambda: compare(hypotheses, hypotheses, references),
    ):
        with pytest.raises(ValueError, match=counts):
            call()


def test_blank_lines_are_scored_as_nothing():
    assert bleu(["", "a b c d"], ["a b c d", "a b c d"]) == pytest.approx(
        100 * brevity_penalty(4, 8)
    )
    assert bleu([""], ["a"]) == 0.0
    assert scores([""], ["a"], "en")[0].value == 0.0


def test_comparison_of_a_system_with_itself_and_with_a_better_one():
    references = [
        f"sentence number {i} of the test has these words in it" for i in range(40)
    ]
    worse = [
        line.replace("these", "those") if i % 2 else line
        for i, line in enumerate(references)
    ]
    same = compare(worse, worse, references, samples=100)
    better = compare(worse, references, references, samples=100)
    assert same.baseline == same.system and same.p_value == 1.0
    assert (
        better.system == pytest.approx(100)
        and better.system_interval < 1e-4 < better.baseline_interval
    )
    assert better.p_value < 0.02
    assert better == compare(worse, references, references, samples=100)


def test_one_differing_line_proves_nothing():
    references = [
        f"sentence number {i} of the test has these words in it" for i in range(40)
    ]
    worse = [references[0].replace("these", "those"), *references[1:]]
    result = compare(worse, references, references, samples=500)
    assert result.baseline < result.system and result.p_value == 1.0


def test_the_p_value_is_the_share_of_all_swaps():
    """Six sentences, two of them different: of the 64 swaps half reach the difference
    that was observed.
    """
    references = [
        f"sentence number {i} of the test has these words in it" for i in range(6)
    ]
    worse = ["sentence one", "sentence two", *references[2:]]
    assert compare(
        worse, references, references, samples=4_000
    ).p_value == pytest.approx(0.5, abs=0.03)


# --- against published numbers (real data)


def test_vectors_corpus(vectors):
    cases, checked = vectors["test_bleu"]["test_corpus_bleu_cases"], 0
    for hypotheses, references, options, expected in cases:
        assert set(options) <= {"tokenize", "smooth_method"}
        smooth = options.get("smooth_method", "exp")
        if smooth in ("exp", "none"):  # floor and add-k are not offered
            left, *right = tokenised(
                [hypotheses, *references], options.get("tokenize", "13a")
            )
            assert bleu(left, right, smooth=smooth == "exp") == pytest.approx(
                expected, abs=1e-6
            )
            checked += 1
    assert checked >= 5
    for order, hypotheses, references, expected in vectors["test_bleu"][
        "test_bleu_max_order"
    ]:
        left, *right = tokenised([hypotheses, *references], "13a")
        assert f"{bleu(left, right, order):.2f}" == expected


def test_vectors_statistics(vectors):
    for hypotheses, references, (matches, totals) in vectors["test_bleu"][
        "test_case_statistics"
    ]:
        counts = bleu_statistics(hypotheses, references)
        assert (list(counts.matches), list(counts.totals)) == (matches, totals)
    for stats, expected in vectors["test_bleu"]["test_case_scoring"]:
        (matches, totals), system, reference = stats
        counts = BleuStatistics(tuple(matches), tuple(totals), system, reference)
        assert bleu_of(counts) == pytest.approx(100 * expected, abs=1e-6)
    for stats, _, expected in vectors["test_bleu"]["test_case_degenerate_stats"]:
        (matches, totals), system, reference = stats
        assert (
            bleu_of(
                BleuStatistics(tuple(matches), tuple(totals), system, reference),
                smooth=False,
            )
            == expected
        )


def test_vectors_effective_order(vectors):
    """Effective order stops at the longest n-gram that the hypothesis has."""
    for hypotheses, references, expected in vectors["test_bleu"][
        "test_case_effective_order"
    ]:
        order = min(4, len(hypotheses[0].split()))
        if (
            0 not in bleu_statistics(hypotheses, references, order).matches
        ):  # the others want floor smoothing
            assert bleu(hypotheses, references, order) == pytest.approx(
                100 * expected, abs=1e-6
            )


def test_vectors_sentence(vectors):
    cases = vectors["test_sentence_bleu"]
    checked = 0
    for smooth, smooth_value, lowercase, tokenize, expected in cases["test_cases"]:
        if smooth not in ("exp", "none"):  # floor and add-k are not offered
            continue
        pair = [
            [cases[key].lower() if lowercase else cases[key]] for key in ("SYS", "REF")
        ]
        assert smooth_value is None
        (hypothesis, reference) = tokenised(pair, tokenize)
        assert bleu(hypothesis, reference, smooth=smooth == "exp") == pytest.approx(
            expected, abs=1e-3
        )
        checked += 1
    assert checked >= 5
    for smooth, *_ in cases["test_cases_zero_bleu"]:
        if smooth in ("exp", "none"):
            assert (
                bleu([cases["SYS_0"]], [cases["REF_0"]], smooth=smooth == "exp") == 0.0
            )


def test_vectors_chrf(vectors):
    for hypotheses, references, expected in vectors["test_chrf"][
        "test_cases_effective_order"
    ]:
        (score,) = [s for s in scores(hypotheses, references, "en") if s.name == "chrF"]
        assert score.value == pytest.approx(expected, abs=1e-4)


def test_published_scores_of_eleven_systems(published, data_root):
    """Our own BLEU gives every newstest2017 German-English output its published score
    to the last digit.
    """
    assert len(published) == 11
    (path,) = {data_root / entry["reference"] for entry in published}
    right, tokenizer = (
        [tokenize_13a(line) for line in read_lines(path)],
        BLEU().tokenizer,
    )
    for entry in published:
        output = read_lines(data_root / entry["file"])
        left = [tokenize_13a(line) for line in output]
        assert left == [tokenizer(line) for line in output]
        assert len(left) == len(right) == 3004
        assert round(bleu(left, right), 2) == entry["published"]["bleu"], entry[
            "system"
        ]


def test_recorded_table_agrees_with_the_published_scores(root):
    record = json.loads(
        (root / "results" / "paper" / "newstest2017-systems.json").read_text(
            encoding="utf-8"
        )
    )
    assert len(record["systems"]) == 11 and record["command"].startswith(
        "python -m benchmarks."
    )
    for name, system in record["systems"].items():
        assert round(system["scores"]["BLEU 13a"]["value"], 2) == system["published"], (
            name
        )
        assert system["scores"]["BLEU 13a"]["signature"].startswith(
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"
        )


def test_one_recorded_system_is_reproduced_by_every_convention(
    published, data_root, root
):
    record = json.loads(
        (root / "results" / "paper" / "newstest2017-systems.json").read_text(
            encoding="utf-8"
        )
    )
    entry = next(e for e in published if ".online-F." in e["system"])
    output, references = (
        read_lines(data_root / entry["file"]),
        read_lines(data_root / entry["reference"]),
    )
    results = scores(output, references, "en")
    recorded = record["systems"]["online-F"]["scores"]
    assert {s.name: round(s.value, 2) for s in results} == {
        name: round(s["value"], 2) for name, s in recorded.items()
    }
    assert results[0].value == pytest.approx(entry["published"]["bleu"], abs=0.005)


def test_the_microscope_agrees_with_the_scores(root):
    found = microscope(HYPOTHESES, REFERENCES[0])
    assert list(found) == list(FIELDS)
    named = {each.name: each.value for each in scores(HYPOTHESES, REFERENCES[0], "en")}
    both = {name: value for name, value in found.items() if f"BLEU {name}" in named}
    assert len(both) == 6
    for name, value in both.items():
        assert value == pytest.approx(named[f"BLEU {name}"], abs=1e-4)

    folder = root / "results" / "paper"
    seen, known = (
        json.loads((folder / name).read_text(encoding="utf-8"))["systems"]
        for name in ("bleu-microscope.json", "newstest2017-systems.json")
    )
    for system, row in seen.items():
        for name in both:
            recorded = known[system]["scores"][f"BLEU {name}"]["value"]
            assert row[name] == pytest.approx(recorded, abs=1e-3)


def test_multi30k_reference_has_the_published_length(data_root):
    lines = read_lines(data_root / "multi30k" / "test_2016_flickr.de.gz")
    assert len(lines) == 1000
    assert sum(len(line.split()) for line in moses_tokenize(lines, "de", True)) == 12103
    assert sum(len(line.lower().split()) for line in moses_tokens(lines, "de")) == 12102
    results = scores(lines, lines, "de")
    assert (
        next(s for s in results if s.name == "BLEU Moses, lower-cased").reference_length
        == 12103
    )
    assert all(s.value == pytest.approx(100) for s in results)
