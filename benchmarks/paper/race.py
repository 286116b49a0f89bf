"""Race the recurrent translator against the Transformer on Multi30k, same budget.

    python -m benchmarks.paper.race

Both have the same text, tokens, batches, loss, dropout, optimizer and warm-up, and
nearly the same number of parameters. They take turns, update by update, until one has
spent its minutes; the other's model of that moment is kept, and it goes on until it has
spent as many. First each tries five peaks of the learning rate, over the whole budget,
with a seed kept for that; the peak of the lowest validation loss then runs with three
other seeds, whose models translate the test set. One thread; times are processor
seconds. Multi30k is downloaded unless ANNOTATED_TRANSFORMER_DATA names a folder that
holds it. Writes results/paper/race.json, which nbs/translation/race.ipynb shows.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
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
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.loss import Objective
from annotated_transformer.training.schedule import adam, peak_factor
from annotated_transformer.training.update import Update
from annotated_transformer.translation.recurrent_translator import RecurrentConfig
from benchmarks.record import command_line, save
from benchmarks.train import train_translation

VOCABULARY, TOKENS, WARMUP, DROPOUT, EVERY = 2_000, 1_024, 60, 0.1, 120
PEAKS = (0.002, 0.004, 0.008, 0.016, 0.032)
TRIAL_SEED, SEEDS = 0, (1, 2, 3)
TEST = "test_2016_flickr"
LONG = 15  # English words


def corpus(split: str) -> list[tuple[str, str]]:
    """A split of Multi30k, lower-cased."""
    pairs = load_corpus("multi30k", split, "en", "de")
    return [(src.lower(), tgt.lower()) for src, tgt in pairs]


def size(model: nn.Module) -> int:
    """Trained values, a shared matrix counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def transformer(vocab: int, seed: int) -> Transformer:
    """A Transformer of two layers on each side, small enough to learn in minutes."""
    sizes = {"N": 2, "d_model": 64, "d_ff": 128, "h": 4, "d_k": 16, "d_v": 16}
    torch.manual_seed(seed)
    return Transformer(TransformerConfig(vocab, vocab, **sizes, dropout=DROPOUT))


def recurrent(vocab: int, wanted: int, seed: int) -> RecurrentModel:
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


def enter(
    tokenizer: PairTokenizer, pairs: TokenizedPairs, peaks: dict[str, float], seed: int
) -> dict[str, Racer]:
    """The contenders at the start."""
    vocab, racers = tokenizer.src_vocab_size, {}
    attentive = transformer(vocab, seed)
    models = {
        "recurrent": recurrent(vocab, size(attentive), seed),
        "Transformer": attentive,
    }
    for name, model in models.items():
        factor = peak_factor(peaks[name], model.config.d_model, WARMUP)
        config = TrainingConfig(
            batch_tokens=TOKENS, warmup=WARMUP, lr_factor=factor, seed=seed
        )
        objective = Objective(model, config.label_smoothing)
        updates = train_translation(objective, adam(model), pairs, config)
        racers[name] = Racer(model, updates)
    return racers


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
            if racer.step % EVERY == 0 or racer.step == EVERY // 2:
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
            if racer.step % EVERY == 0:
                note(racer, name, valid)
        if racer.step > begun:
            note(racer, name, valid)


def reopened(model: Any, tokenizer: PairTokenizer, engine: str) -> Any:
    """The translator of a model that was saved and opened again."""
    with tempfile.TemporaryDirectory() as place:
        save_model(Path(place) / "model", model, tokenizer)
        return load(Path(place) / "model", device="cpu", engine=engine)


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


def scored(
    model: Any, tokenizer: PairTokenizer, test: list[tuple[str, str]], engine: str
) -> dict[str, float]:
    """BLEU of a model that was saved and opened again, of long sentences, too."""
    translator = reopened(model, tokenizer, engine)
    outputs, speed = translate(translator, [source for source, _ in test])
    rows = [(output, tgt) for output, (_, tgt) in zip(outputs, test, strict=True)]
    long = [row for row, pair in zip(rows, test, strict=True) if is_long(pair[0])]
    found = {"bleu": lower_bleu(rows), "bleu_long": lower_bleu(long)}
    print(type(model).__name__, engine, found, flush=True)
    return found | {"tokens_per_second": speed}


def is_long(source: str) -> bool:
    """Whether a sentence has many words."""
    return len(source.split()) >= LONG


def tried(tokenizer, pairs, valid, budget: float) -> list[dict[str, Any]]:
    """What each contender comes to with each peak of its learning rate."""
    found = []
    for peak in PEAKS:
        peaks = dict.fromkeys(("recurrent", "Transformer"), peak)
        racers = enter(tokenizer, pairs, peaks, TRIAL_SEED)
        race(racers, valid, budget)
        finish(racers, valid, budget)
        for name, racer in racers.items():
            row = {"side": name, "rate": peak, "seed": TRIAL_SEED, "budget": budget}
            found.append(row | {"validation_loss": racer.curve[-1]["loss"]})
    return found


def run(tokenizer, pairs, valid, test, peaks, seed: int, budget: float) -> list[dict]:
    """One race to the end, a row for each contender."""
    racers = enter(tokenizer, pairs, peaks, seed)
    states = race(racers, valid, budget)
    shared = min(racer.step for racer in racers.values())
    finish(racers, valid, budget)
    rows = []
    for name, racer in racers.items():
        row = {
            "side": name,
            "rate": peaks[name],
            "seed": seed,
            "budget": budget,
            "parameters": size(racer.model),
            "updates": racer.step,
            "shared_updates": shared,
            "target_tokens": racer.tokens,
            "seconds": racer.seconds,
            "curve": racer.curve,
            "equal_time": scored(racer.model, tokenizer, test, "plain"),
        }
        if name == "Transformer":
            row["faster_form"] = scored(racer.model, tokenizer, test, "torch")
        racer.model.load_state_dict(states[name])
        row["equal_updates"] = scored(racer.model, tokenizer, test, "plain")
        rows.append(row)
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    """Try the rates, race, translate, and write the record."""
    parser = command_line(__doc__)
    parser.add_argument("--minutes", type=float, default=1.5, help="of each contender")
    budget = parser.parse_args(argv).minutes * 60
    torch.set_num_threads(1)
    texts, test = corpus("train"), corpus(TEST)
    tokenizer = train_tokenizer(texts, "en", "de", VOCABULARY, lowercase=True)
    pairs = TokenizedPairs.build(texts, tokenizer)
    valid = TokenizedPairs.build(corpus("val"), tokenizer)
    trials = tried(tokenizer, pairs, valid, budget)
    best: dict[str, dict[str, Any]] = {}
    for row in sorted(trials, key=itemgetter("validation_loss"), reverse=True):
        best[row["side"]] = row
    peaks = {name: row["rate"] for name, row in best.items()}
    runs = []
    for seed in SEEDS:
        runs += run(tokenizer, pairs, valid, test, peaks, seed, budget)
    about = {
        "vocabulary": VOCABULARY,
        "batch_tokens": TOKENS,
        "budget": budget,
        "training_pairs": len(texts),
        "training_tokens": int(pairs.tgt_lengths.sum()),
        "test_sentences": len(test),
        "long": {"words": LONG, "sentences": sum(is_long(src) for src, _ in test)},
    }
    record = about | {"tried": trials, "runs": runs}
    save("paper/race.json", record, "sacrebleu", "tokenizers")


if __name__ == "__main__":
    main()
