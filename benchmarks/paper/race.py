"""Race the recurrent translator against the Transformer on Multi30k, same budget.

    python -m benchmarks.paper.race

Both have the same text, tokens, batches, loss, dropout, optimizer and schedule, nearly
the same number of parameters, and the peaks of the learning rate that the chapter's
short race has. They take turns, update by update, until one has spent its minutes; the
other's model of that moment is kept, and it goes on until it has spent as many. Every
so many updates the validation loss and the share of right next tokens are measured; at
the end the test set is translated. One thread; times are processor seconds. Multi30k is
downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Writes
results/paper/race.json, which nbs/translation/race.ipynb shows.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from sacrebleu.metrics import BLEU
from torch import nn

from annotated_transformer import load
from annotated_transformer.before.recurrent_model import RecurrentModel
from annotated_transformer.data.batching import collate, token_batches
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.loss import Objective
from annotated_transformer.training.schedule import adam, peak_factor
from annotated_transformer.training.sentence_pairs import train_translation
from annotated_transformer.training.update import Update
from annotated_transformer.translation.recurrent_translator import RecurrentConfig
from annotated_transformer.translation.significance import compare
from benchmarks.record import command_line, save

VOCABULARY, TOKENS, WARMUP, DROPOUT, EVERY = 2_000, 1_024, 60, 0.1, 60
PEAKS = {"recurrent": 0.01, "Transformer": 0.006}
TEST = "test_2016_flickr"
EDGES = (8, 10, 12, 14, 17)  # English words; a bin reaches up to its edge


def corpus(split: str) -> list[tuple[str, str]]:
    """A split of Multi30k, lower-cased."""
    pairs = load_corpus("multi30k", split, "en", "de")
    return [(src.lower(), tgt.lower()) for src, tgt in pairs]


def size(model: nn.Module) -> int:
    """Trained values, a shared matrix counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def transformer(vocab: int, seed: int = 0) -> Transformer:
    """A Transformer of two layers on each side, small enough to learn in minutes."""
    sizes = {"N": 2, "d_model": 64, "d_ff": 128, "h": 4, "d_k": 16, "d_v": 16}
    torch.manual_seed(seed)
    return Transformer(TransformerConfig(vocab, vocab, **sizes, dropout=DROPOUT))


def recurrent(vocab: int, wanted: int, seed: int = 0) -> RecurrentModel:
    """The recurrent translator of the width that has most nearly so many parameters."""
    with torch.device("meta"):
        found = {
            d: abs(
                size(RecurrentModel(RecurrentConfig(vocab, vocab, d_model=d))) - wanted
            )
            for d in range(16, 1024, 2)
        }
    d = min(found, key=found.__getitem__)
    torch.manual_seed(seed)
    return RecurrentModel(
        RecurrentConfig(vocab, vocab, d_model=d, dropout=DROPOUT, max_length=1024)
    )


@dataclass
class Racer:
    """One contender: its model, its updates so far, and what they took."""

    model: Any
    updates: Iterator[Update]
    seconds: float = 0.0
    tokens: int = 0
    step: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)

    def advance(self) -> None:
        """One update more."""
        begun = time.process_time()
        update = next(self.updates)
        self.seconds += time.process_time() - begun
        self.tokens, self.step = self.tokens + update.tokens, update.step


def enter(model: Any, pairs: TokenizedPairs, peak: float) -> Racer:
    """A contender at the start."""
    factor = peak_factor(peak, model.config.d_model, WARMUP)
    config = TrainingConfig(batch_tokens=TOKENS, warmup=WARMUP, lr_factor=factor)
    objective = Objective(model, config.label_smoothing)
    return Racer(model, train_translation(objective, adam(model), pairs, config))


@torch.inference_mode()
def quality(model: Any, pairs: TokenizedPairs) -> dict[str, float]:
    """The unsmoothed loss per token in nats, and the share of right next tokens."""
    model.eval()
    loss, right, tokens = 0.0, 0, 0
    for rows in token_batches(pairs.src_lengths, pairs.tgt_lengths, TOKENS, 0):
        batch = collate(pairs, rows)
        real = batch.tgt_out != batch.pad_id
        logits, target = model(batch.src, batch.tgt_in)[real], batch.tgt_out[real]
        loss += nn.functional.cross_entropy(logits, target, reduction="sum").item()
        right += int((logits.argmax(-1) == target).sum())
        tokens += batch.tokens
    return {"loss": loss / tokens, "accuracy": right / tokens}


def note(racer: Racer, name: str, valid: TokenizedPairs) -> None:
    """Measure a contender, at a point of its curve."""
    point = {"step": racer.step, "seconds": round(racer.seconds, 1)}
    racer.curve.append(point | quality(racer.model, valid))
    print(name, racer.curve[-1], flush=True)


def race(racers: dict[str, Racer], valid: TokenizedPairs, budget: float) -> dict:
    """Update by update until one has spent its seconds; the states then reached."""
    while max(racer.seconds for racer in racers.values()) < budget:
        for name, racer in racers.items():
            racer.advance()
            if racer.step % EVERY == 0:
                note(racer, name, valid)
    states = {}
    for name, racer in racers.items():
        note(racer, name, valid)
        found = racer.model.state_dict().items()
        states[name] = {key: value.clone() for key, value in found}
    return states


def finish(racers: dict[str, Racer], valid: TokenizedPairs, budget: float) -> None:
    """Who was faster goes on until its seconds are spent, too."""
    for name, racer in racers.items():
        begun = racer.step
        while racer.seconds < budget:
            racer.advance()
            if racer.step % (2 * EVERY) == 0:
                note(racer, name, valid)
        if racer.step > begun:
            note(racer, name, valid)


def reopened(model: Any, tokenizer: PairTokenizer, engine: str) -> Any:
    """The translator of a model that was saved and opened again."""
    with tempfile.TemporaryDirectory() as place:
        save_model(Path(place) / "model", model, tokenizer)
        return load(Path(place) / "model", device="cpu", engine=engine)


def bin_of(source: str) -> str:
    """The bin of a sentence by its English words."""
    words, low = len(source.split()), 1
    for edge in EDGES:
        if words <= edge:
            return f"{low}–{edge}"
        low = edge + 1
    return f"{low} and more"


def by_length(pairs: list[tuple[str, str]], outputs: list[str]) -> list[dict]:
    """BLEU of the sentences in each bin."""
    bins: dict[str, list[tuple[str, str]]] = {}
    for (source, reference), output in zip(pairs, outputs, strict=True):
        bins.setdefault(bin_of(source), []).append((output, reference))
    names = sorted(bins, key=lambda name: int(name.split("–")[0].split()[0]))
    return [
        {"words": name, "sentences": len(bins[name]), "bleu": lower_bleu(bins[name])}
        for name in names
    ]


def lower_bleu(rows: list[tuple[str, str]]) -> float:
    """BLEU (13a) of outputs and references, both lower-cased."""
    outputs, references = map(list, zip(*rows, strict=True))
    return BLEU().corpus_score(outputs, [references]).score


def translate(translator: Any, sources: list[str]) -> tuple[list[str], float]:
    """All outputs with the paper's beam, and target tokens a second."""
    begun = time.process_time()
    outputs = translator.translate(sources, SearchOptions())
    seconds = time.process_time() - begun
    return outputs, sum(map(len, translator.tokenizer.encode_target(outputs))) / seconds


def describe(racer: Racer) -> dict[str, Any]:
    """A contender in the record."""
    return {
        "architecture": racer.model.config.to_dict(),
        "parameters": size(racer.model),
        "updates": racer.step,
        "seconds": racer.seconds,
        "target_tokens_per_second": racer.tokens / racer.seconds,
        "curve": racer.curve,
    }


def scored(
    model: Any, tokenizer: PairTokenizer, test: list[tuple[str, str]], engine: str
) -> tuple[dict[str, Any], list[str]]:
    """BLEU of a model that was saved and opened again, by length, too; its outputs."""
    translator = reopened(model, tokenizer, engine)
    outputs, speed = translate(translator, [source for source, _ in test])
    found = {
        "bleu": lower_bleu(
            [(o, tgt) for o, (_, tgt) in zip(outputs, test, strict=True)]
        ),
        "by_length": by_length(test, outputs),
        "tokens_per_second": speed,
    }
    print(type(model).__name__, engine, found, flush=True)
    return found, outputs


def main(argv: Sequence[str] | None = None) -> None:
    """Race, translate, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="for each contender")
    budget = parser.parse_args(argv).minutes * 60
    torch.set_num_threads(1)
    texts, test = corpus("train"), corpus(TEST)
    tokenizer = train_tokenizer(texts, "en", "de", VOCABULARY, lowercase=True)
    pairs = TokenizedPairs.build(texts, tokenizer)
    valid = TokenizedPairs.build(corpus("val"), tokenizer)
    attentive = transformer(tokenizer.src_vocab_size)
    models = {
        "recurrent": recurrent(tokenizer.src_vocab_size, size(attentive)),
        "Transformer": attentive,
    }
    racers = {name: enter(models[name], pairs, PEAKS[name]) for name in models}
    states = race(racers, valid, budget)
    shared = min(racer.step for racer in racers.values())
    finish(racers, valid, budget)
    found: dict[str, Any] = {name: describe(racers[name]) for name in racers}
    outputs = {}
    for name, racer in racers.items():
        at_time, outputs[name] = scored(racer.model, tokenizer, test, "plain")
        found[name] |= {"equal_time": at_time, "equal_updates": at_time}
        if racer.step > shared:
            racer.model.load_state_dict(states[name])
            found[name]["equal_updates"], _ = scored(
                racer.model, tokenizer, test, "plain"
            )
    faster, _ = scored(attentive, tokenizer, test, "torch")
    found["Transformer"]["fast_tokens_per_second"] = faster["tokens_per_second"]
    references = [tgt for _, tgt in test]
    difference = compare(
        outputs["recurrent"], outputs["Transformer"], references, 2_000
    )
    about = {
        "vocabulary": VOCABULARY,
        "batch_tokens": TOKENS,
        "seconds": budget,
        "shared_updates": shared,
        "training_pairs": len(texts),
        "training_tokens": int(pairs.tgt_lengths.sum()),
        "test_sentences": len(test),
        "equal_time": asdict(difference),
    }
    save("paper/race.json", about | {"contenders": found}, "sacrebleu", "tokenizers")


if __name__ == "__main__":
    main()
