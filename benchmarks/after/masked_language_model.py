"""Pretraining on reviews without labels, and what it is worth when labels are few.

    python -m benchmarks.after.masked_language_model
    python -m benchmarks.after.masked_language_model pretrain-1 points-pretrained-1

Encoders learn from the texts of IMDb's training reviews, for 500, 2,000 and 8,000
updates, with three seeds. Then classifiers are fine-tuned from each and, with the same
architecture and as many passes, trained from nothing, on 100 to 10,000 labelled
reviews; a seed draws the labelled reviews, too. Each of them, and scikit-learn's
logistic regression on TF-IDF of the same reviews, makes twelve trials at 1,000 labels,
with a draw of labels that isn't used again, judged on the same validation reviews. The
best pass of each run counts. A probe is a logistic regression on the mean vectors of an
encoder that stays as it is. No test review is read before the test.

A GPU is used where there is one, else one thread. The steps, all by default, are
pretrain-SEED, tune-SIDE, points-SIDE-SEED and probe-SEED; a SIDE is pretrained, nothing
or linear. Each step's runs are lines of a file in --runs, where the pretrained models
are, too. So several processes may make a step each, and wait for what they need; a run
that is there isn't made again. Once all are there,
results/after/masked-language-model.json is written, which
nbs/after/masked_language_model.ipynb shows. IMDb is downloaded unless
ANNOTATED_TRANSFORMER_DATA names a folder that holds it. Takes ten minutes of a GPU.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from jaxtyping import Float
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tokenizers import Tokenizer
from torch import Tensor

from annotated_transformer.after.labelled_rows import Rows, pieces, read_long
from annotated_transformer.after.mask_filling import (
    MaskedLanguageModelTask,
    MaskedTraining,
    MaskFiller,
)
from annotated_transformer.after.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
    classifier_from,
)
from annotated_transformer.after.masked_texts import mask_tokenizer, text_rows
from annotated_transformer.after.text_classification import (
    ClassifierTask,
    ClassifierTraining,
)
from annotated_transformer.data.batching import pad_rows
from annotated_transformer.data.labelled_texts import Examples, draw_examples, imdb
from annotated_transformer.data.text_tokenizer import TextTokenizer, encode_texts
from annotated_transformer.devices import find_device
from annotated_transformer.errors import UserError
from annotated_transformer.model.config import PAD
from annotated_transformer.training.run import fit, start_run
from benchmarks.after.shards import Run, add, matching, origins, plain, read
from benchmarks.record import ROOT, command_line, save
from benchmarks.train import train_task

PLACE, RUNS = "after/masked-language-model.json", ROOT / "runs/masked"
PACKAGES = "tokenizers", "scikit-learn"
CONFIG = MaskedLanguageModelConfig(d_model=128, d_ff=512)
UPDATES = (8_000, 2_000, 500)  # of pretraining
PRETRAINING = MaskedTraining(batch=128, peak=3e-3)
SEEDS, TRIAL_SEED, BATCH = (1, 2, 3), 0, 32
SIDES = ("pretrained", "nothing", "linear")
LABELS, TUNED_AT = (1_000, 100, 10_000), 1_000
PASSES = {100: 10, 1_000: 10, 10_000: 4}  # each of at least 1,000 texts
SMALLEST_PASS = 1_000
RATES, DROPOUTS = (3e-4, 1e-3, 3e-3, 1e-2), (0.0, 0.2, 0.5)
WORDS_TOGETHER, STRENGTHS = (1, 2, 3, 4), (8.0, 64.0, 512.0)
PROBE_STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
HELD_OUT, VALID, TEST = 400, 1_000, 5_000
TEXTS = [
    "This film was a complete [MASK] of time.",
    "This is one of the [MASK] films I have ever seen.",
    "The acting was [MASK] and I fell asleep.",
    "The acting was [MASK] and I loved it.",
    "He gives the best [MASK] of his career.",
    "I have never [MASK] such a bad film.",
]
WORDS = ["awful", "boring", "great", "actor"]


def right(answers: Tensor, examples: Examples) -> float:
    """The share of right answers."""
    return (answers == torch.tensor(examples.labels)).double().mean().item()


def count(model: torch.nn.Module) -> int:
    """How many numbers a model has learned."""
    return sum(each.numel() for each in model.parameters())


def seconds(begun: float) -> float:
    """The time since then."""
    return round(time.perf_counter() - begun, 1)


class Reviews:
    """The training reviews, those to choose by and to test on, and the tokenizer."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.train, held = imdb("train")[0].divide()
        self.valid = draw_examples(held, VALID, 0)

    @cached_property
    def test(self) -> Examples:
        """Some of the test reviews."""
        return draw_examples(imdb("test")[0], TEST, 0)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Byte pairs of the training reviews, kept in a file."""
        file = self.folder / "tokenizer.json"
        if not file.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            made = mask_tokenizer(self.train.texts, CONFIG.vocab_size)
            TextTokenizer(made).save(self.folder)
        tokenizer = Tokenizer.from_file(str(file))
        tokenizer.encode_special_tokens = True
        return tokenizer

    def rows(self, examples: Examples) -> Rows:
        """The reviews as ids."""
        return encode_texts(self.tokenizer, examples.texts)

    @cached_property
    def valid_rows(self) -> Rows:
        """The validation reviews as ids."""
        return self.rows(self.valid)

    @cached_property
    def test_rows(self) -> Rows:
        """The test reviews as ids."""
        return self.rows(self.test)

    @cached_property
    def unlabelled(self) -> tuple[Rows, Rows]:
        """Pieces of the training reviews, and of some held out, without labels."""
        texts = self.train.texts, self.valid.texts[:HELD_OUT]
        train, held = (text_rows(self.tokenizer, t, CONFIG.max_length) for t in texts)
        return train, held


# -- pretraining -----------------------------------------------------------------------


def start_of(reviews: Reviews, updates: int, seed: int) -> MaskedLanguageModel:
    """The pretrained model, or a new one for no updates."""
    device = find_device()
    if updates:
        folder = reviews.folder / f"{updates}-{seed}/model"
        return MaskFiller.from_pretrained(folder, device=str(device)).model
    torch.manual_seed(seed)
    return MaskedLanguageModel(CONFIG).to(device).eval()


def pretrain(reviews: Reviews, updates: int, seed: int) -> Run:
    """Train on the reviews without their labels, in a run's folder.

    The time is the run's, of all its parts. SystemExit if it is interrupted.
    """
    changes = {"seed": seed, "steps": updates, "save_every": updates // 10}
    settings = MaskedTraining(**asdict(PRETRAINING) | changes)
    (rows, held), model = reviews.unlabelled, start_of(reviews, 0, seed)
    task = MaskedLanguageModelTask(model, reviews.tokenizer, rows, held, settings)
    run = start_run(task, reviews.folder / f"{updates}-{seed}", find_device())
    if fit(run) == "interrupted":
        sys.exit(130)
    filler = MaskFiller.from_pretrained(run.folder / "model")
    return {
        "architecture": CONFIG.to_dict(),
        "training": asdict(settings),
        "parameters": count(model),
        "reviews": len(reviews.train),
        "held_out": len(held),
        "rows": len(rows),
        "tokens": sum(map(len, rows)),
        "curve": curve_of(run.folder),
        "device": find_device().type,
        "seconds": round(run.progress.seconds, 1),
        "fills": {text: filler.fill(text) for text in TEXTS},
        "neighbours": {word: neighbours(filler, word) for word in WORDS},
    }


def curve_of(folder: Path) -> list[Run]:
    """Each validation of a run, with the mean of the training losses before it."""
    curve, losses = [], []
    for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        if found["event"] == "update":
            losses.append(found["loss"])
        elif found["event"] == "validation":
            names = {"step": "step", "valid": "loss", "right": "accuracy"}
            point = {new: round(found[old], 4) for new, old in names.items()}
            curve.append(point | {"train": round(mean(losses), 4)})
            losses = []
    return curve


def neighbours(filler: MaskFiller, word: str, most: int = 8) -> list[str]:
    """The tokens whose vectors are most similar to that of a word, by the cosine."""
    weight = filler.model.embedding.weight.detach()
    own = filler.tokenizer.token_to_id(f"▁{word}")
    order = torch.cosine_similarity(weight, weight[own : own + 1]).argsort()
    near = order.flip(0)[1 : most + 1].tolist()
    return [filler.tokenizer.id_to_token(i).strip("▁") for i in near]


# -- with labels -----------------------------------------------------------------------


def fine_tune(
    reviews: Reviews, updates: int, labels: int, seed: int, peak: float, dropout: float
) -> Run:
    """Train a classifier from a pretrained or new model; test it unless in a trial."""
    begun, train = time.perf_counter(), draw_examples(reviews.train, labels, seed)
    passes, copies = PASSES[labels], max(1, SMALLEST_PASS // labels)
    settings = ClassifierTraining(
        epochs=passes, batch=BATCH, peak=peak, word_dropout=dropout, seed=seed
    )
    start = start_of(reviews, updates, seed or SEEDS[0])
    torch.manual_seed(seed)
    model = classifier_from(start, ("negative", "positive"), dropout)
    known = reviews.rows(train) * copies, train.labels * copies
    held = reviews.valid_rows, reviews.valid.labels
    task = ClassifierTask(model, None, known, held, settings)
    try:
        curve = [[each["train"], each["accuracy"]] for each in train_task(task)]
    except UserError as error:
        return {"passes": passes, "valid": 0.0, "diverged": str(error)}
    found: Run = {"passes": passes, "seconds": seconds(begun)}
    found["curve"] = [[round(loss, 4), share] for loss, share in curve]
    found["valid"] = max(share for _, share in curve)
    if seed != TRIAL_SEED:
        answers = read_long(model, reviews.test_rows).argmax(-1)
        found["test"] = right(answers, reviews.test)
    return found


def count_words(reviews: Reviews, labels: int, seed: int, n: int, C: float) -> Run:
    """Logistic regression on TF-IDF of up to `n` words together."""
    train = draw_examples(reviews.train, labels, seed)
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, n), sublinear_tf=True, min_df=min(2, labels)),
        LogisticRegression(C=C, solver="liblinear", random_state=1),
    )
    model.fit(train.texts, train.labels)
    asked = {"valid": reviews.valid}
    asked |= {"test": reviews.test} if seed != TRIAL_SEED else {}
    return {
        name: right(torch.tensor(model.predict(each.texts)), each)
        for name, each in asked.items()
    }


@torch.no_grad()
def mean_vectors(
    model: MaskedLanguageModel, rows: Rows, batch: int = 256
) -> Float[Tensor, "texts d_model"]:
    """The mean of an encoder's vectors at all positions of each text, in pieces."""
    most, device = model.config.max_length, model.bias.device
    cut = [(i, piece) for i, row in enumerate(rows) for piece in pieces(row, most)]
    cut.sort(key=lambda each: len(each[1]))
    found = torch.zeros(len(rows), model.config.d_model)
    for start in range(0, len(cut), batch):
        owners, parts = zip(*cut[start : start + batch], strict=True)
        ids = pad_rows(parts, device)
        summed = (model.vectors(ids) * (ids != PAD)[..., None]).sum(dim=1)
        found.index_add_(0, torch.tensor(owners), summed.cpu())
    return found / torch.tensor([len(row) for row in rows])[:, None]


def probe(reviews: Reviews, updates: int, seed: int) -> Run:
    """A linear model on the mean vectors of an encoder that stays as it is."""
    model = start_of(reviews, updates, seed)
    train = draw_examples(reviews.train, max(LABELS), seed)
    sets = reviews.rows(train), reviews.valid_rows, reviews.test_rows
    known, held, asked = (mean_vectors(model, rows).numpy() for rows in sets)
    found = {}
    for labels in LABELS:
        tried = []
        for C in PROBE_STRENGTHS:
            made = make_pipeline(StandardScaler(), LogisticRegression(C=C))
            made.fit(known[:labels], train.labels[:labels])
            valid, test = (
                right(torch.tensor(made.predict(vectors)), examples)
                for vectors, examples in ((held, reviews.valid), (asked, reviews.test))
            )
            tried.append({"C": C, "valid": valid, "test": test})
        found[str(labels)] = max(tried, key=lambda each: each["valid"])
    return {"labels": found}


# -- the steps -------------------------------------------------------------------------


class Study:
    """The steps, each of which makes the runs of its file that are missing."""

    def __init__(self, folder: Path):
        self.folder, self.reviews = folder, Reviews(folder)

    def make(self, step: str, work: Callable[..., Run], **settings: Any) -> Run:
        """A run of a step with these settings: the one that is there, or a new one."""
        if there := matching(read(self.folder), step=step, **settings):
            return there[0]
        about, packages = {"step": step} | settings, PACKAGES
        made = about | work(self.reviews, **settings)
        return add(self.folder, step, made, *packages)

    def wait(self, step: str, runs: int) -> list[Run]:
        """The runs of another step, once they are there."""
        for _ in range(120):
            if len(there := matching(read(self.folder), step=step)) >= runs:
                return there
            print(f"waiting for {step}", file=sys.stderr, flush=True)
            time.sleep(5)
        sys.exit(f"{step} has {len(there)} of {runs} runs: make it first")

    def pretrain(self, seed: int) -> None:
        """A model of each budget."""
        for updates in UPDATES:
            self.make(f"pretrain-{seed}", pretrain, updates=updates, seed=seed)

    def trials(self, side: str) -> list[Run]:
        """The settings of each trial of a side."""
        if side == "linear":
            pairs = product(WORDS_TOGETHER, STRENGTHS)
            return [{"n": n, "C": strength} for n, strength in pairs]
        pairs = product(RATES, DROPOUTS)
        return [{"peak": peak, "dropout": dropout} for peak, dropout in pairs]

    def worker(self, side: str, updates: int) -> Callable[..., Run]:
        """What makes a run of a side."""
        return count_words if side == "linear" else partial(fine_tune, updates=updates)

    def tune(self, side: str) -> None:
        """The trials of a side; the pretrained one's with the longest pretraining."""
        updates = max(UPDATES) * (side == "pretrained")
        if updates:
            self.wait(f"pretrain-{SEEDS[0]}", 1)
        task = {"labels": TUNED_AT, "seed": TRIAL_SEED}
        for settings in self.trials(side):
            self.make(f"tune-{side}", self.worker(side, updates), **task, **settings)

    def best(self, side: str) -> Run:
        """The settings that were best in validation."""
        trials = self.trials(side)
        runs = self.wait(f"tune-{side}", len(trials))
        found = max(runs, key=lambda each: float(each["valid"]))
        return {name: found[name] for name in trials[0]}

    def points(self, side: str, seed: int) -> None:
        """A side at each number of labels, with a seed."""
        best, step = self.best(side), f"points-{side}-{seed}"
        if side != "pretrained":
            work = self.worker(side, 0)
            for labels in LABELS:
                self.make(step, work, labels=labels, seed=seed, **best)
            return
        self.wait(f"pretrain-{seed}", len(UPDATES))
        for updates, labels in product(UPDATES, LABELS):
            about = {"updates": updates, "labels": labels, "seed": seed}
            self.make(step, fine_tune, **about, **best)

    def probe(self, seed: int) -> None:
        """A probe of each budget."""
        self.wait(f"pretrain-{seed}", len(UPDATES))
        for updates in (*UPDATES, 0):
            self.make(f"probe-{seed}", probe, updates=updates, seed=seed)

    def steps(self) -> dict[str, Callable[[], None]]:
        """All steps by name, in an order in which none has to wait."""
        found = {f"pretrain-{s}": partial(self.pretrain, s) for s in SEEDS}
        found |= {f"tune-{side}": partial(self.tune, side) for side in SIDES}
        for seed, side in product(SEEDS, SIDES):
            found[f"points-{side}-{seed}"] = partial(self.points, side, seed)
        return found | {f"probe-{s}": partial(self.probe, s) for s in SEEDS}

    def runs(self) -> int:
        """How many runs all steps have."""
        trials = sum(len(self.trials(side)) for side in SIDES)
        points = len(LABELS) * (len(UPDATES) + len(SIDES) - 1)
        return trials + len(SEEDS) * (2 * len(UPDATES) + 1 + points)


# -- the record ------------------------------------------------------------------------


def collect(study: Study) -> None:
    """Write the record."""
    runs = read(study.folder)
    found = [plain(run) for run in runs]
    learned = [run for run in found if run["step"].startswith("pretrain-")]
    (first,) = matching(learned, updates=max(UPDATES), seed=SEEDS[0])
    tuned = {}
    for side in SIDES:
        tried = [plain(run, "step") for run in matching(found, step=f"tune-{side}")]
        tuned[side] = {"tried": tried} | study.best(side)
    points = []
    for side, seed in product(SIDES, SEEDS):
        for run in matching(found, step=f"points-{side}-{seed}"):
            points.append({"side": side} | plain(run, "step"))
    about: Run = {"command": "python -m benchmarks.after.masked_language_model"}
    about |= {"origins": origins(runs)} | origins(runs)[0]
    about |= {"tested_on": TEST, "chosen_on": VALID}
    about |= {"pretraining": first, "tuned": tuned, "points": points}
    about["budgets"] = [
        {name: run[name] for name in ("updates", "seed", "seconds")} | run["curve"][-1]
        for run in learned
    ]
    about["probes"] = [plain(r, "step") for r in found if r["step"][:6] == "probe-"]
    save(PLACE, about | {name: first.pop(name) for name in ("fills", "neighbours")})


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the steps, and the record if no other's runs are missing."""
    parser = command_line(__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP", help="all by default")
    parser.add_argument("--runs", type=Path, default=RUNS, help="a folder of runs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    study = Study(options.runs)
    steps = study.steps()
    if unknown := [name for name in options.steps if name not in steps]:
        parser.error(f"unknown step {unknown[0]}: choose from {', '.join(steps)}")
    for name in options.steps or steps:
        steps[name]()
    if (there := len(read(study.folder))) < study.runs():
        print(f"{there} of {study.runs()} runs are there", file=sys.stderr)
    else:
        collect(study)


if __name__ == "__main__":
    main()
