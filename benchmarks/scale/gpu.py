"""Everything that needs a GPU: correctness, training speed and its share of peak,
decoding speed, the long runs.

    python -m benchmarks.scale.gpu                                 the short sections, under
    ten minutes python -m benchmarks.scale.gpu --only training-big,decoding    some of them
    python -m benchmarks.scale.gpu --only multi30k --seed 2        one long run a call; called
    again, it goes on python -m benchmarks.scale.gpu --only tatoeba                  a bigger
    model on more pairs; called again, it goes on python -m benchmarks.scale.gpu --only
    table-3                  rows of Table 3 at small scale; called again, it goes on
    python -m benchmarks.scale.gpu --device cpu --tiny             the same code at toy sizes,
    where there is no GPU

Adds each section to results/scale/gpu.json as soon as it is there (`--out` names another
file; with --tiny the record is printed instead). Nothing new is begun after
`--minutes`. The long runs need ANNOTATED_TRANSFORMER_DATA.

Peers are benchmarks/speed/peers.py's; where it or a library of its is lacking, the record
says so. Times are by the clock around a synchronised device, contenders in turn, after
a warm-up; medians.
"""

import argparse
import json
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from annotated_transformer.data.batching import batches
from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.engine.ctranslate2 import ctranslate2_spec
from annotated_transformer.engine.decoding import FastTransformer
from annotated_transformer.engine.runs import prepare
from annotated_transformer.files import write_whole
from annotated_transformer.model.config import TransformerConfig, preset
from annotated_transformer.model.costs import flops, parameter_count
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.loss import Objective
from annotated_transformer.training.recipes import recipe
from annotated_transformer.training.schedule import adam
from annotated_transformer.training.trainer import update
from annotated_transformer.translation.bleu import scores
from annotated_transformer.translation.search import SearchOptions, beam, greedy
from annotated_transformer.translation.translator import Translator
from benchmarks.record import RESULTS, ROOT

PEERS = ["ours", "torch.nn.Transformer", "Marian", "x-transformers"]
TOY = TransformerConfig(100, 100, N=1, d_model=32, d_ff=64, h=2, d_k=16, d_v=16)
# Dense bfloat16 products, as the makers' data sheets state them, in operations a
# second.
DATA_SHEET = {
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "A10": 125e12,
}
# The twenty rows of Table 3, each at the same share of its base, asked of the small
# Multi30k model.
ROWS = {
    "base": [], "A: 1 head": ["h=1", "d_k=128", "d_v=128"], "A: 2 heads": ["h=2", "d_k=64", "d_v=64"],
    "A: 8 heads": ["h=8", "d_k=16", "d_v=16"], "A: 16 heads": ["h=16", "d_k=8", "d_v=8"],
    "B: keys of a quarter": ["d_k=8"], "B: keys of a half": ["d_k=16"],
    "C: 1 layer": ["N=1"], "C: 3 layers": ["N=3"], "C: 5 layers": ["N=5"],
    "C: half d_model": ["d_model=64", "d_k=16", "d_v=16"], "C: twice d_model": ["d_model=256", "d_k=64", "d_v=64"],
    "C: half d_ff": ["d_ff=128"], "C: twice d_ff": ["d_ff=512"],
    "D: no dropout": ["dropout=0.0"], "D: dropout 0.5": ["dropout=0.5"],
    "D: no smoothing": ["label_smoothing=0.0"], "D: smoothing "
                                                "0.2": ["label_smoothing=0.2"],
    "E: learned "
    "positions": ["positions=learned"], "big": ["d_model=256", "d_ff=512", "h=8", "dropout=0.4"],
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """Where and how large to measure, and until when."""

    device: torch.device
    tiny: bool
    seed: int
    deadline: float

    @property
    def late(self) -> bool:
        """Whether nothing new should be begun."""
        return time.perf_counter() > self.deadline

    def sync(self) -> None:
        """Wait until the device has done all its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def autocast(self) -> torch.autocast:
        """bfloat16 for matrix products."""
        return torch.autocast(self.device.type, torch.bfloat16)

    def compiled(self, module: nn.Module) -> Callable:
        """The module through torch.compile; at toy sizes only its tracing, without
        generated kernels.
        """
        return torch.compile(module, backend="aot_eager" if self.tiny else "inductor")


def in_turn(
    setting: Setting, actions: dict[str, Callable[[], object]], repeats: int
) -> dict[str, float | str]:
    """Median seconds of each action, or the first line of its error; whoever fails
    leaves the round.

    The first three rounds are the warm-up, in which compiling takes its time; what
    comes too late for it is left out.
    """
    taken: dict[str, list[float]] = {name: [] for name in actions}
    failed: dict[str, float | str] = {}
    for number in range(repeats + 3):
        for name in [name for name in actions if name not in failed]:
            if number == 0 and setting.late:
                failed[name] = "not measured: no time left"
                continue
            try:
                setting.sync()
                start = time.perf_counter()
                actions[name]()
                setting.sync()
                taken[name].append(time.perf_counter() - start)
            except (
                Exception
            ) as error:  # out of memory, or not to be compiled: that is a result too
                failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return {name: failed.get(name) or median(taken[name][3:]) for name in actions}


def build(
    name: str, architecture: TransformerConfig, device: torch.device
) -> nn.Module | str:
    """A contender, whose forward(src, tgt_in, tgt_out) is the summed smoothed loss; or
    why there is none.
    """
    if name == "ours":
        torch.manual_seed(1)
        return Objective(Transformer(architecture), 0.1).to(device).train()
    try:
        from benchmarks.speed import peers

        return peers.build(name, architecture).to(device).train()
    except (
        Exception
    ) as error:  # one library that fails mustn't cost the others their turn
        return f"not measured: {type(error).__name__}: {error}".splitlines()[0]


def random_batch(
    architecture: TransformerConfig, rows: int, length: int, device: torch.device
) -> list[Tensor]:
    """Source, decoder input and target of `rows` pairs without padding."""
    ids = torch.randint(
        4,
        architecture.tgt_vocab_size,
        (rows, 2 * length + 1),
        generator=torch.manual_seed(0),
    )
    return [
        part.to(device)
        for part in (ids[:, :length], ids[:, length:-1], ids[:, length + 1 :])
    ]


def gradient(loss: Tensor, model: nn.Module) -> Tensor:
    """All gradients as one float64 vector on the CPU."""
    parts = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([part.flatten().double().cpu() for part in parts])


def correctness(setting: Setting) -> dict:
    """Loss and gradients on the device against float64 on the CPU: relative error, and
    relative norm of the error.
    """
    architecture = (
        TOY
        if setting.tiny
        else replace(preset("base"), N=2, src_vocab_size=2_000, tgt_vocab_size=2_000)
    )
    torch.manual_seed(setting.seed)
    exact = Objective(
        Transformer(replace(architecture, dropout=0.0)).double(), 0.1
    ).train()
    batch = random_batch(architecture, 8, 24, torch.device("cpu"))
    batch[0][0, 20:] = batch[1][0, 16:] = batch[2][0, 16:] = architecture.pad_id
    expected = exact(*batch)
    wanted = gradient(expected, exact)
    objective = (
        Objective(Transformer(replace(architecture, dropout=0.0)), 0.1)
        .to(setting.device)
        .train()
    )
    objective.load_state_dict(exact.state_dict())
    there, found = [part.to(setting.device) for part in batch], {}
    for name, action, half in (
        ("float32", objective, False), ("bfloat16", objective, True), ("compiled", setting.compiled(objective), True),
    ):  # fmt: skip
        try:
            with torch.autocast(setting.device.type, torch.bfloat16, enabled=half):
                loss = action(*there)
            error = (gradient(loss, objective) - wanted).norm() / wanted.norm()
            found[name] = {
                "loss": abs(loss.item() / expected.item() - 1),
                "gradient": error.item(),
            }
        except (
            Exception
        ) as error:  # what can't be compiled mustn't cost all the rest its turn
            found[name] = {"failed": f"{type(error).__name__}: {error}".splitlines()[0]}
    return found | {"update_waits_for": waits_for(setting)}


def waits_for(setting: Setting) -> str | None:
    """What in an update of the trainer makes the host wait for its GPU, in CUDA's
    words; None if nothing, or no GPU.
    """
    pairs, cuda = phrasebook("en", "de", "train", 300), setting.device.type == "cuda"
    with TemporaryDirectory() as folder:
        run = prepare(
            recipe("phrasebook"),
            folder,
            pairs,
            pairs[:8],
            device=None if cuda else "cpu",
        )
        source = batches(run.train, 512)
        update(run, next(source)[1])  # makes Adam's averages and the pinned memory
        if cuda:
            torch.cuda.set_sync_debug_mode("error")
        try:
            update(run, next(source)[1])
        except RuntimeError as error:
            return str(error).splitlines()[0]
        finally:
            if cuda:
                torch.cuda.set_sync_debug_mode("default")
    return None


def matmul_peak(setting: Setting) -> float | None:
    """Operations a second of one large square product in bfloat16: what this device
    reaches at best in practice.
    """
    n = 256 if setting.tiny else 8_192
    a, b = torch.randn(2, n, n, device=setting.device, dtype=torch.bfloat16)
    taken = in_turn(setting, {"product": lambda: a @ b}, 10)["product"]
    return 2 * n**3 / taken if isinstance(taken, float) else None


def data_sheet(setting: Setting) -> float | None:
    """The maker's figure for this device, if it is known here."""
    name = (
        torch.cuda.get_device_name(setting.device)
        if setting.device.type == "cuda"
        else "CPU"
    )
    words = set(name.replace("-", " ").split())
    return next(
        (peak for known, peak in DATA_SHEET.items() if set(known.split()) <= words),
        None,
    )


def training_step(
    setting: Setting, model: nn.Module, forward: Callable, batch: list[Tensor]
) -> Callable[[], None]:
    """One update in bfloat16: forward, backward, Adam."""
    optimizer, tokens = adam(model), batch[2].numel()

    def step() -> None:
        with setting.autocast():
            loss = forward(*batch)
        (loss / tokens).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def contenders(
    setting: Setting, architecture: TransformerConfig, batch: list[Tensor]
) -> tuple[dict, dict]:
    """The training steps of all peers, as they are and compiled; and why others are
    lacking.
    """
    steps: dict[str, Callable[[], None]] = {}
    lacking: dict[str, str] = {}
    for name in PEERS:
        for form in ("eager", "compiled"):
            model = build(name, architecture, setting.device)
            if isinstance(model, str):
                lacking[f"{name}, {form}"] = model
            else:
                forward = model if form == "eager" else setting.compiled(model)
                places = torch.arange(
                    batch[2].numel(), device=setting.device
                )  # all: there is no padding
                inputs = (
                    [*batch, places] if name == "ours" else batch
                )  # as the trainer hands them over
                steps[f"{name}, {form}"] = training_step(
                    setting, model, forward, inputs
                )
    return steps, lacking


def peak_bytes(setting: Setting, action: Callable[[], object]) -> int | None:
    """The most memory that one call adds on the GPU."""
    if setting.device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats(setting.device)
    before = torch.cuda.memory_allocated(setting.device)
    action()
    return torch.cuda.max_memory_allocated(setting.device) - before


def training(setting: Setting, name: str) -> dict:
    """Target tokens a second of each contender, and its model's operations as a share
    of two peaks.
    """
    architecture = TOY if setting.tiny else preset(name)
    rows, length = (4, 8) if setting.tiny else (512, 48)
    batch = random_batch(architecture, rows, length, setting.device)
    operations = rows * sum(flops(architecture, length, length))
    measured, stated = matmul_peak(setting), data_sheet(setting)
    steps, lacking = contenders(setting, architecture, batch)
    found: dict[str, dict] = {each: {"error": why} for each, why in lacking.items()}
    for each, taken in in_turn(setting, steps, 3 if setting.tiny else 10).items():
        if isinstance(taken, str):
            found[each] = {"error": taken}
            continue
        speed = operations / taken
        found[each] = {
            "seconds": taken, "tokens_per_second": rows * length / taken,
            "of_measured_peak": speed / measured if measured else None,
            "of_data_sheet": speed / stated if stated else None, "peak_bytes": peak_bytes(setting, steps[each]),
        }  # fmt: skip
    return {
        "rows": rows, "length": length, "parameters": parameter_count(architecture), "flops_per_update": operations,
        "measured_peak": measured, "data_sheet_peak": stated, "precision": "bfloat16", "contenders": found}  # fmt: skip


def our_search(
    model: Transformer | FastTransformer, src: Tensor, beam_size: int, length: int
) -> Callable[[], object]:
    """Our greedy or beam search for exactly `length` tokens: the end token never comes,
    since its score is zero.
    """
    if beam_size == 1:
        return lambda: greedy(model, src, max_length=length)
    options = SearchOptions(beam_size=beam_size, max_length=length)
    return lambda: beam(model, src, options)


class Numbers:
    """A vocabulary of so many words without meaning, for an engine that wants to be
    given words.
    """

    def __init__(self, size: int):
        self.size = size

    def get_vocab_size(self) -> int:
        """How many words there are."""
        return self.size

    def id_to_token(self, i: int) -> str:
        """The word of an id."""
        return ["[pad]", "[bos]", "[eos]", "[unk]"][i] if i < 4 else f"w{i}"


def ctranslate2_engine(
    model: Transformer, device: torch.device
) -> tuple[Any, Numbers] | str:
    """CTranslate2 over the same weights, in bfloat16 on a GPU, and its words; or why
    there is none.
    """
    words = Numbers(model.config.src_vocab_size)
    try:
        import ctranslate2

        spec = ctranslate2_spec(
            model, SimpleNamespace(source=words, target=words, joint=True)
        )
        spec.validate()
        spec.optimize("float32")
        with TemporaryDirectory() as folder:
            spec.save(folder)
            kind = "bfloat16" if device.type == "cuda" else "float32"
            return ctranslate2.Translator(
                folder, device=device.type, compute_type=kind
            ), words
    except Exception as error:
        return f"not measured: {type(error).__name__}: {error}".splitlines()[0]


def its_search(
    engine: Any, words: Numbers, src: Tensor, beam_size: int, length: int
) -> Callable[[], object]:
    """The same by CTranslate2."""
    rows = [[words.id_to_token(i) for i in row] for row in src.tolist()]
    limits = {
        "min_decoding_length": length,
        "max_decoding_length": length,
        "max_batch_size": len(rows),
    }
    return lambda: engine.translate_batch(
        rows, beam_size=beam_size, length_penalty=0.0, **limits
    )


def their_search(
    peer: nn.Module, src: Tensor, beam_size: int, length: int
) -> Callable[[], object]:
    """The same by transformers' `generate`, held to the same number of tokens."""
    options = {
        "max_new_tokens": length,
        "min_new_tokens": length,
        "num_beams": beam_size,
        "do_sample": False,
    }

    def search() -> object:
        with torch.inference_mode():
            return peer.model.generate(
                input_ids=src, attention_mask=torch.ones_like(src), **options
            )

    return search


def decoding(setting: Setting) -> dict:
    """Output tokens a second, greedy and with a beam of 4, at three batch sizes, beside
    the two engines of others.
    """
    architecture, length = (TOY, 6) if setting.tiny else (preset("base"), 64)
    ours, peer = (
        build(name, architecture, setting.device) for name in ("ours", "Marian")
    )
    assert isinstance(ours, nn.Module)
    with torch.no_grad():
        ours.model.tgt_embedding.weight[architecture.eos_id] = 0
    engine = ctranslate2_engine(ours.model.float().cpu(), setting.device)
    model = ours.model.to(setting.device).eval()
    prepared, half = FastTransformer(model, "bfloat16"), deepcopy(model).bfloat16()
    rows: list[dict] = (
        [] if isinstance(engine, tuple) else [{"by": "CTranslate2", "error": engine}]
    )
    for size in (1, 2) if setting.tiny else (1, 64, 512):
        src = random_batch(architecture, size, 32, setting.device)[0]
        for beam_size in (1, 4):
            if setting.late:
                return {"length": length, "rows": rows, "unfinished": True}
            actions = {
                "ours": our_search(half, src, beam_size, length),
                "ours, prepared": our_search(prepared, src, beam_size, length),
            }
            if isinstance(engine, tuple):
                actions["CTranslate2"] = its_search(*engine, src, beam_size, length)
            if isinstance(peer, nn.Module):
                actions["transformers"] = their_search(
                    peer.bfloat16().eval(), src, beam_size, length
                )
            for name, taken in in_turn(setting, actions, 3).items():
                result = (
                    {"error": taken}
                    if isinstance(taken, str)
                    else {"tokens_per_second": size * length / taken}
                )
                rows.append(
                    {"batch": size, "beam_size": beam_size, "by": name} | result
                )
    return {"length": length, "source": 32, "precision": "bfloat16", "rows": rows}


def train(setting: Setting, folder: Path, plan: str, settings: list[str]) -> bool:
    """Train by the command line, on from the last checkpoint; whether the run came to
    its end before the deadline.
    """
    plan = "phrasebook" if setting.tiny else plan
    command = [
        sys.executable,
        "-m",
        "annotated_transformer.cli",
        "train",
        plan,
        "--out",
        str(folder),
    ]
    command += [word for each in settings for word in ("--set", each)]
    command += ["--device", "cpu"] if setting.device.type == "cpu" else []
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        status = process.wait(timeout=max(30.0, setting.deadline - time.perf_counter()))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        status = process.wait()
    if status not in (0, -signal.SIGTERM):
        sys.exit(f"gpu.py: the training in {folder} ended with status {status}")
    return (folder / "model").exists()


def bleu(
    setting: Setting,
    translator: Translator,
    corpus: str,
    langs: tuple[str, str],
    split: str,
    alpha: float,
) -> dict[str, float]:
    """All scores of a split with a beam of 5."""
    pairs = list(
        islice(load_corpus(corpus, split, *langs), 4 if setting.tiny else 2_000)
    )
    outputs = translator.translate(
        [src for src, _ in pairs], SearchOptions(beam_size=5, alpha=alpha)
    )
    return {
        result.name: result.value
        for result in scores(outputs, [tgt for _, tgt in pairs], langs[1])
    }


def long_run(
    setting: Setting,
    name: str,
    plan: str,
    settings: list[str],
    langs: tuple[str, str],
    tests: list[str],
    rule: str,
) -> dict:
    """The run of one seed: trained, α chosen on the validation split by a rule of
    scoring, the tests scored.
    """
    folder = ROOT / "runs" / f"gpu-{'toy-' * setting.tiny}{name}-{setting.seed}"
    corpus, settings = ("phrasebook", ["steps=2"]) if setting.tiny else (name, settings)
    langs, tests = (("en", "de"), ["test"]) if setting.tiny else (langs, tests)
    if not train(setting, folder, plan, [f"seed={setting.seed}", *settings]):
        return {f"seed {setting.seed}": {"unfinished": "call again to go on"}}
    translator = Translator.from_pretrained(folder / "model", device=setting.device)
    grid = {
        alpha: bleu(setting, translator, corpus, langs, "val", alpha)[rule]
        for alpha in (0.6, 1.0, 1.4, 1.8)
    }
    best = max(grid, key=lambda alpha: grid[alpha])
    log = [
        json.loads(line)
        for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    found = {
        "validation_grid": grid, "alpha": best, "updates": log[-1]["step"], "seconds": log[-1]["seconds"],
        "validation_loss": [row["loss"] for row in log if row["event"] == "validation"],
        "tests": {split: bleu(setting, translator, corpus, langs, split, best) for split in tests}}  # fmt: skip
    return {f"seed {setting.seed}": found}


def multi30k(setting: Setting) -> dict:
    """The small model on Multi30k."""
    tests = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
    rule = "BLEU Moses, lower-cased"
    return long_run(
        setting, "multi30k", "multi30k-en-de-tiny", [], ("en", "de"), tests, rule
    )


def tatoeba(setting: Setting) -> dict:
    """A bigger model, that of IWSLT14, on the pairs of Tatoeba; at most 2,000 sentences
    of a split are scored.
    """
    settings = [
        "corpus=tatoeba",
        "train_split=train",
        "valid_split=val",
        "lowercase=false",
    ]
    return long_run(
        setting,
        "tatoeba",
        "iwslt14-de-en",
        settings,
        ("de", "en"),
        ["test"],
        "BLEU 13a",
    )


def table_3(setting: Setting) -> dict:
    """The best validation loss of each row after 2,000 updates; rows that there was no
    time for are left out.
    """
    steps, found = (2 if setting.tiny else 2_000), {}
    for name, changes in islice(ROWS.items(), 1 if setting.tiny else None):
        row = name.replace(": ", "-").replace(" ", "-")
        folder = ROOT / "runs" / f"gpu-{'toy-' * setting.tiny}row-{row}-{setting.seed}"
        settings = [f"steps={steps}", f"seed={setting.seed}", "patience=0", *changes]
        if setting.late or not train(setting, folder, "multi30k-en-de-tiny", settings):
            break
        log = [
            json.loads(line)
            for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        losses = [line["loss"] for line in log if line["event"] == "validation"]
        found[f"{name}, seed {setting.seed}"] = {
            "changes": changes,
            "updates": steps,
            "validation_loss": min(losses),
        }
    return found


SHORT: dict[str, Callable[[Setting], dict]] = {
    "correctness": correctness, "training-base": lambda setting: training(setting, "base"),
    "training-big": lambda setting: training(setting, "big"), "decoding": decoding}  # fmt: skip
LONG: dict[str, Callable[[Setting], dict]] = {
    "multi30k": multi30k,
    "tatoeba": tatoeba,
    "table-3": table_3,
}


def installed(name: str) -> str | None:
    """The version of a package, if it is there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def about(setting: Setting) -> dict:
    """What the numbers depend on besides the code."""
    cuda = setting.device.type == "cuda"
    return {
        "command": "python -m benchmarks.scale.gpu",
        "device": torch.cuda.get_device_name(setting.device) if cuda else f"CPU, {platform.machine()}, toy sizes",
        "versions": {"python": platform.python_version(), "cuda": torch.version.cuda}
        | {name: installed(name) for name in ("torch", "transformers", "ctranslate2", "x-transformers")}}  # fmt: skip


def options() -> argparse.Namespace:
    """The command line, checked: one line and exit status 2 for what can't be done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default=",".join(SHORT), help=f"of {', '.join([*SHORT, *LONG])}"
    )
    parser.add_argument(
        "--device",
        default="cuda",
        choices=["cuda", "cpu"],
        help="CUDA_VISIBLE_DEVICES picks a GPU",
    )
    parser.add_argument("--tiny", action="store_true", help="toy sizes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=8.0, help="nothing new is begun after that"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="the record; results/scale/gpu.json, or with --tiny only the screen",
    )
    chosen = parser.parse_args()
    refusal = ""
    if chosen.device.startswith("cuda") and not torch.cuda.is_available():
        refusal = (
            "no CUDA device here; --device cpu --tiny runs the same code at toy sizes"
        )
    elif chosen.device == "cpu" and not chosen.tiny:
        refusal = "the full sizes are for a GPU: add --tiny"
    elif strange := [
        name for name in chosen.only.split(",") if name not in SHORT | LONG
    ]:
        refusal = f"no section {strange[0]!r}: choose from {', '.join([*SHORT, *LONG])}"
    if refusal:
        print(f"gpu.py: {refusal}", file=sys.stderr)
        sys.exit(2)
    return chosen


def join(old: dict, new: dict) -> dict:
    """A long section's seeds or rows beside those that are there; a short section's
    results in place of the old.
    """
    return {
        name: old.get(name, {}) | found if name in LONG else found
        for name, found in new.items()
    }


def main() -> None:
    """Measure the chosen sections, each into the record as soon as it is there."""
    chosen = options()
    deadline = time.perf_counter() + 60 * chosen.minutes
    setting = Setting(torch.device(chosen.device), chosen.tiny, chosen.seed, deadline)
    out = chosen.out or (None if chosen.tiny else RESULTS / "scale" / "gpu.json")
    record = json.loads(out.read_text(encoding="utf-8")) if out and out.exists() else {}
    for name in chosen.only.split(","):
        if setting.late:
            print(f"gpu.py: no time left for {name}: call again with --only {name}")
            continue
        record |= about(setting) | join(record, {name: (SHORT | LONG)[name](setting)})
        torch.compiler.reset()  # lets go of the models that were compiled
        if out:
            write_whole(out, (json.dumps(record, indent=1) + "\n").encode())
        print(json.dumps({name: record[name]}), flush=True)


if __name__ == "__main__":
    main()
