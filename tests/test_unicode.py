"""Lines of all of Unicode through translate, score, attend and evaluate."""

import random
import sys
import unicodedata
import warnings

import pytest
import torch

from annotated_transformer import SearchOptions, UserError, load
from annotated_transformer.translation.scores import scores

SPECIAL = [
    "", " ", "\t", "\u200b", "\u202e", "\ufeff", "\u0301", "[eos]", "[pad][bos]",
    "</s>", "a\u0301\u0301\u0301", "\U0001f469\u200d\U0001f680", "\U0010ffff", "ﷺ", "ß",
    "İ", "\x00", "\x1b[31m", "\x85", "\u2028", "…", "ﬁ", "Ω", "ǆ", "한", "ᄒ", "\ufffd",
]  # fmt: skip


def lines(count: int) -> list[str]:
    """Seeded lines of any assigned characters, real words between them."""
    rng, made = random.Random(0), list(SPECIAL)
    letters = [
        chr(i)
        for i in range(sys.maxunicode + 1)
        if unicodedata.category(chr(i)) not in ("Cn", "Cs", "Co")
        and chr(i) not in "\r\n"
    ]
    while len(made) < count:
        words = ["March", "three", *(rng.choice(letters) for _ in range(6))]
        made.append(" ".join(rng.sample(words, rng.randint(1, 6))))
    return made


@pytest.fixture(scope="module")
def translator():
    return load("phrasebook-en-de", device="cpu")


@pytest.mark.filterwarnings("ignore")
def test_lines_are_translated_line_for_line(translator):
    texts, quick = lines(200), SearchOptions(beam_size=1, max_length=6)
    found = translator.translate(texts, quick)
    assert len(found) == 200 and not any("\n" in text for text in found)
    blank = [not " ".join(text.split()) for text in texts]
    assert all(not text for text, empty in zip(found, blank, strict=True) if empty)
    again = translator.translate_stream(iter(texts), quick, lines_at_once=64)
    assert list(again) == found, "whatever the batches"


@pytest.mark.filterwarnings("ignore")
def test_lines_are_scored(translator):
    texts = [text for text in lines(200) if text.split()]
    found = translator.score(texts, texts)
    totals = torch.tensor([each.total for each in found])
    assert totals.isfinite().all() and (totals < 0).all()
    for each in found[::50]:
        assert len(each.tokens) == len(each.token_log_probabilities)


@pytest.mark.filterwarnings("ignore")
def test_lines_of_all_kinds_are_looked_into(translator):
    for text in [text for text in lines(200) if text.split()][::8]:
        seen = translator.attention(text, text)
        sums = seen.cross.sum(-1)
        assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
        page = seen._repr_html_()
        assert "\x1b" not in page and "</script><" not in page.replace(" ", "")[:-200]


@pytest.mark.filterwarnings("ignore")
def test_lines_are_evaluated():
    texts = [text for text in lines(200) if text.split() and text.isprintable()]
    found = {score.name: score.value for score in scores(texts, texts, "de")}
    assert found == {name: pytest.approx(100) for name in found}


def test_with_strict_each_line_is_translated_or_named(translator):
    quick = SearchOptions(beam_size=1, max_length=4)
    refused = 0
    for text in lines(200)[::2]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                translator.translate(text, quick, strict=True)
            except UserError as error:
                refused += 1
                assert str(error).startswith("line 1") and str(error).isprintable()
    assert refused > 50
