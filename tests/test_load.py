"""Long streams: memory stays as it is, and the order is kept."""

import itertools
import warnings
from collections.abc import Iterator

import psutil
import pytest

from annotated_transformer import cli
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.decoding.search import Hypothesis
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.translation.translator import Translator

TEXTS = [text for text, _ in phrasebook("en", "de", "train", 300)]


def megabytes() -> float:
    """What this process holds in memory."""
    return psutil.Process().memory_info().rss / 2**20


class Echo:
    """An engine that finds the source itself, and never its end."""

    def search(
        self, rows: list[list[int]], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        return [[Hypothesis(row[:-1], 0.0, 0.0, False)] for row in rows]


@pytest.fixture(scope="module")
def echo() -> Translator:
    tokenizer = train_tokenizer([(text, text) for text in TEXTS], "en", "de", 300)
    size = tokenizer.src_vocab_size
    config = TransformerConfig(size, size, N=1, d_model=16, d_ff=32, h=2)
    return Translator(Transformer(config), tokenizer, Echo())


def texts(count: int) -> Iterator[str]:
    """Sentences of the phrasebook, each with the number of its line."""
    sentences = itertools.cycle(TEXTS)
    for number in range(count):
        yield "" if number % 11 == 5 else f"{next(sentences)} {number}"


def go_through(translator: Translator, count: int, at_once: int) -> float:
    """Translate a stream; how much memory grew after its first tenth, in MB."""
    first, early = texts(count), 0.0
    found = translator.translate_stream(texts(count), lines_at_once=at_once)
    for number, (translation, source) in enumerate(zip(found, first, strict=True)):
        assert translation.split() == source.split(), number
        if number == count // 10:
            early = megabytes()
    return megabytes() - early


@pytest.mark.parametrize(
    "count",
    [pytest.param(10_000), pytest.param(1_000_000, marks=pytest.mark.slow)],
)
def test_a_stream_keeps_its_order_and_takes_no_more_memory(echo, count):
    """Each line also has its warning, since its translation doesn't end."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        cli.show_warnings()
        warnings.showwarning = lambda *_: None
        assert go_through(echo, count, 512) < 2 + count / 1e5
