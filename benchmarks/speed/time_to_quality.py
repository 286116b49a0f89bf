"""BLEU over training time on Multi30k: Hugging Face's Trainer, beside ours.

    python -m benchmarks.speed.time_to_quality

Two processes each. The baseline is Hugging Face's Marian with the recipe's
architecture, tokenized pairs, batches, first weights, schedule and label smoothing;
model, loss, update and data loader are Hugging Face's, in float32, which is its faster
precision on a CPU. At each checkpoint the last five are averaged and test2016 is
translated greedily, each model by its own library; the score is BLEU 13a, lower-cased
as the data is. The corpus is downloaded unless ANNOTATED_TRANSFORMER_DATA names a
folder that holds it. Takes an hour or two on two cores; what is trained already isn't
again. Writes results/speed/time-to-quality.json, which nbs/results.md shows.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.utils.data import DataLoader, Dataset
from transformers import (
    MarianConfig,
    MarianMTModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from annotated_transformer.average import average_checkpoints
from annotated_transformer.data.batching import collate, token_batches
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.interop.marian_export import (
    marian_config,
    marian_generation,
)
from annotated_transformer.interop.marian_weights import marian_weights
from annotated_transformer.training.checkpoint import checkpoints
from annotated_transformer.training.config import TrainingConfig
from annotated_transformer.training.distributed import World
from annotated_transformer.training.recipes import recipe
from annotated_transformer.translation.task import prepare
from annotated_transformer.translation.translator import Translator
from benchmarks.measure import LOWER_13A, bleu, sides
from benchmarks.record import command_line, save

EVERY, AVERAGED = 57, 5


class PlannedBatches(Dataset):
    """This process's part of our own batches, epoch after epoch, as the arguments that
    `MarianMTModel` takes.
    """

    def __init__(
        self,
        pairs: TokenizedPairs,
        tokens: int,
        seed: int,
        count: int,
        world: World,
    ):
        self.pairs, self.world, self.plan = pairs, world, []
        for epoch in range(10_000):
            self.plan += token_batches(
                pairs.src_lengths, pairs.tgt_lengths, tokens, seed, epoch
            )
            if len(self.plan) >= count:
                break

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        batch = collate(self.pairs, self.plan[place]).shard(
            self.world.rank, self.world.size
        )
        labels = batch.tgt_out.masked_fill(batch.tgt_out == batch.pad_id, -100)
        return {
            "input_ids": batch.src,
            "attention_mask": (batch.src != batch.pad_id).long(),
            "decoder_input_ids": batch.tgt_in,
            "labels": labels,
        }


class PlannedTrainer(Trainer):
    """Hugging Face's Trainer, on batches that are already made."""

    def get_train_dataloader(self) -> DataLoader:
        return DataLoader(self.train_dataset, batch_size=None, shuffle=False)


class Keep(TrainerCallback):
    """Saves the model every few updates with the seconds of training so far, in which
    saving does not count.
    """

    def __init__(self, folder: Path):
        self.folder, self.seconds, self.clock = folder, 0.0, time.perf_counter()

    def on_train_begin(self, args, state, control, **_):
        self.clock = time.perf_counter()

    def on_step_end(self, args, state, control, model=None, **_):
        self.seconds += time.perf_counter() - self.clock
        if state.global_step % EVERY == 0 and state.is_world_process_zero:
            place = self.folder / f"step-{state.global_step:08d}"
            model.save_pretrained(place)
            (place / "time.json").write_text(
                json.dumps({"step": state.global_step, "seconds": self.seconds})
            )
            print(state.global_step, round(self.seconds), flush=True)
        self.clock = time.perf_counter()


def arguments(out: Path, settings: TrainingConfig, updates: int) -> TrainingArguments:
    """The recipe's schedule, optimizer and loss in the Trainer's words."""
    return TrainingArguments(
        output_dir=str(out / "trainer"),
        max_steps=updates,
        learning_rate=0.005,
        warmup_steps=settings.warmup,
        lr_scheduler_type="inverse_sqrt",
        adam_beta1=0.9,
        adam_beta2=0.98,
        adam_epsilon=1e-9,
        weight_decay=0.0,
        max_grad_norm=0.0,
        label_smoothing_factor=settings.label_smoothing,
        seed=settings.seed,
        use_cpu=True,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_steps=EVERY,
        per_device_train_batch_size=1,
        ddp_backend="gloo",
        ddp_find_unused_parameters=False,
    )


def train(out: Path, updates: int) -> None:
    """Train the baseline from the weights that the recipe's own seed draws.

    The learning rate does not depend on `updates`.
    """
    plan = recipe("multi30k-en-de-tiny")
    splits = [load_corpus("multi30k", split, "en", "de") for split in ("train", "val")]
    run = prepare(plan, out / "prepared", *splits, device="cpu")
    settings, off = plan.training, {"attention_dropout": 0.0, "activation_dropout": 0.0}
    model = MarianMTModel(MarianConfig(**marian_config(run.model.config) | off))
    model.load_state_dict(marian_weights(run.model), strict=False)
    for name, value in marian_generation(run.model.config).items():
        setattr(model.generation_config, name, value)
    batches = PlannedBatches(
        run.task.train, settings.batch_tokens, settings.seed, updates, run.world
    )
    PlannedTrainer(
        model=model,
        args=arguments(out, settings, updates),
        train_dataset=batches,
        callbacks=[Keep(out / "checkpoints")],
    ).train()


def curve_of_ours(run: Path, sources: list[str], targets: list[str]) -> list[dict]:
    """Step, seconds and BLEU at each checkpoint of a run of ours."""
    seconds = {}
    for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        seconds[record["step"]] = record["seconds"]
    points, folders = [], checkpoints(run)
    for end in range(1, len(folders) + 1):
        with tempfile.TemporaryDirectory() as scratch:
            average_checkpoints(
                folders[max(0, end - AVERAGED) : end], Path(scratch) / "model"
            )
            translator = Translator.from_pretrained(
                Path(scratch) / "model", engine="torch"
            )
            outputs = translator.translate(sources, SearchOptions(1, alpha=0.0))
        step = int(folders[end - 1].name.split("-")[1])
        found = bleu(outputs, targets, LOWER_13A)
        points.append({"step": step, "seconds": seconds[step]} | found)
        print("ours", points[-1], flush=True)
    return points


def curve_of_hugging_face(
    run: Path, sources: list[str], targets: list[str]
) -> list[dict]:
    """Step, seconds and BLEU at each checkpoint of the baseline."""
    tokenizer, points = PairTokenizer.load(run / "prepared" / "data"), []
    folders = sorted((run / "checkpoints").iterdir())
    model = MarianMTModel.from_pretrained(folders[0]).eval()
    for end in range(1, len(folders) + 1):
        last = [
            load_file(folder / "model.safetensors")
            for folder in folders[max(0, end - AVERAGED) : end]
        ]
        mean = {
            name: sum(each[name].double() for each in last).div(len(last)).float()
            for name in last[0]
        }
        model.load_state_dict(mean, strict=False)
        model.tie_weights()
        found = bleu(generate(model, tokenizer, sources), targets, LOWER_13A)
        points.append(json.loads((folders[end - 1] / "time.json").read_text()) | found)
        print("Hugging Face", points[-1], flush=True)
    return points


@torch.inference_mode()
def generate(
    model: MarianMTModel, tokenizer: PairTokenizer, sources: list[str]
) -> list[str]:
    """Greedy translations by Hugging Face, in batches of similar length."""
    rows = tokenizer.encode_source(sources)
    order, outputs = sorted(range(len(rows)), key=lambda place: len(rows[place])), {}
    for start in range(0, len(order), 64):
        places = order[start : start + 64]
        padded = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(rows[place]) for place in places], batch_first=True
        )
        found = model.generate(
            padded,
            attention_mask=padded != 0,
            num_beams=1,
            do_sample=False,
            max_new_tokens=padded.size(1) + 50,
        )
        for place, row in zip(places, found.tolist(), strict=True):
            ids = row[1:]
            outputs[place] = ids[: ids.index(2)] if 2 in ids else ids
    return tokenizer.decode([outputs[place] for place in range(len(rows))])


def score(ours: Path, theirs: Path) -> None:
    """Both curves into the record."""
    sources, targets = sides("multi30k", "test_2016_flickr")
    found = {
        "processes": "2 of 1 thread each",
        "convention": LOWER_13A,
        "averaged": AVERAGED,
        "ours": curve_of_ours(ours, sources, targets),
        "hugging_face": curve_of_hugging_face(theirs, sources, targets),
    }
    packages = ("transformers", "sacrebleu")
    save("speed/time-to-quality.json", found, *packages)


def in_two_processes(module: str, *words: object) -> None:
    """Run a module by torchrun, a thread each. Raises: CalledProcessError."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "-m", module, *map(str, words)]
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


def race(runs: Path, updates: int, baseline_updates: int) -> None:
    """Train ours, then the baseline on the same cores, and score both."""
    ours, theirs = runs / "ours", runs / "hugging-face"
    settings = [f"steps={updates}", "keep=1000", "patience=0"]
    words = [word for each in settings for word in ("--set", each)]
    plan = "train", "multi30k-en-de-tiny", "--out", ours
    in_two_processes("annotated_transformer", *plan, *words)
    last = f"step-{baseline_updates // EVERY * EVERY:08d}"
    if not (theirs / "checkpoints" / last).exists():
        own = "--train", theirs, "--baseline-updates", baseline_updates
        in_two_processes("benchmarks.speed.time_to_quality", *own)
    score(ours, theirs)


def main(argv: Sequence[str] | None = None) -> None:
    """The whole race, or in each of the baseline's processes its part."""
    parser = command_line(__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs/race"))
    parser.add_argument("--updates", type=int, default=1_653, help="of ours")
    parser.add_argument(
        "--baseline-updates", type=int, default=1_311, help="of Hugging Face's"
    )
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    if given.train:
        train(given.train, given.baseline_updates)
    else:
        race(given.runs, given.updates, given.baseline_updates)


if __name__ == "__main__":
    main()
