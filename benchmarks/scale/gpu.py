"""Everything that needs a GPU: correctness, speed, its share of the peak, long runs.

    python -m benchmarks.scale.gpu                           the short sections
    python -m benchmarks.scale.gpu --only decoding           one of them, or several
    python -m benchmarks.scale.gpu --only multi30k --seed 2  a run on Multi30k
    python -m benchmarks.scale.gpu --only tatoeba            more pairs, a bigger model
    python -m benchmarks.scale.gpu --only table-3            Table 3 at small scale
    python -m benchmarks.scale.gpu --device cpu --tiny       toy sizes, without a GPU

The short sections take under ten minutes. A long one goes on when it is called again,
and nothing new is begun after `--minutes`; it needs ANNOTATED_TRANSFORMER_DATA. Each
section is added to results/scale/gpu.json as soon as it is there, for
nbs/engine/growth.ipynb; `--out` names another file, and with --tiny the record is
printed instead.

The peers are those of benchmarks/speed/peers.py; where a library is lacking, the record
says so. Times are medians, by the clock around a synchronised device, contenders in
turn, after a warm-up.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.engine.ctranslate2 import ctranslate2_spec
from annotated_transformer.engine.decoding import fast
from annotated_transformer.engine.runs import prepare
from annotated_transformer.engine.update import fast_training, fused_adam
from annotated_transformer.model.config import TransformerConfig, preset
from annotated_transformer.model.costs import flops, parameter_count
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.loss import Objective
from annotated_transformer.training.recipes import recipe
from annotated_transformer.training.trainer import train
from annotated_transformer.translation.bleu import scores
from annotated_transformer.translation.search import (
    SearchOptions,
    StepModel,
    beam,
    greedy,
)
from annotated_transformer.translation.translator import Translator
from benchmarks.record import ROOT, command_line, load, save, versions
from benchmarks.speed import peers

PACKAGES = ("transformers", "ctranslate2", "x-transformers")
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
    "base": "",
    "A: 1 head": "h=1 d_k=128 d_v=128",
    "A: 2 heads": "h=2 d_k=64 d_v=64",
    "A: 8 heads": "h=8 d_k=16 d_v=16",
    "A: 16 heads": "h=16 d_k=8 d_v=8",
    "B: keys of a quarter": "d_k=8",
    "B: keys of a half": "d_k=16",
    "C: 1 layer": "N=1",
    "C: 3 layers": "N=3",
    "C: 5 layers": "N=5",
    "C: half d_model": "d_model=64 d_k=16 d_v=16",
    "C: twice d_model": "d_model=256 d_k=64 d_v=64",
    "C: half d_ff": "d_ff=128",
    "C: twice d_ff": "d_ff=512",
    "D: no dropout": "dropout=0.0",
    "D: dropout 0.5": "dropout=0.5",
    "D: no smoothing": "label_smoothing=0.0",
    "D: smoothing 0.2": "label_smoothing=0.2",
    "E: learned positions": "positions=learned",
    "big": "d_model=256 d_ff=512 h=8 dropout=0.4",
}


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


def why(error: Exception) -> str:
    """The first line of what went wrong."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def medians(
    setting: Setting, actions: dict[str, Callable[[], object]], repeats: int
) -> dict[str, float | str]:
    """Median seconds of each action, or its error; what fails leaves the round.

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
            except Exception as error:  # out of memory, not compiled: a result, too
                failed[name] = why(error)
    return {name: failed.get(name) or median(taken[name][3:]) for name in actions}


def build(
    name: str, architecture: TransformerConfig, device: torch.device
) -> nn.Module | str:
    """A contender, whose forward is the summed smoothed loss; or why there is none."""
    try:
        return peers.build(name, architecture).to(device).train()
    except (
        Exception
    ) as error:  # a library that fails mustn't cost the others their turn
        return f"not measured: {why(error)}"


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


def exact_and_fast(
    setting: Setting, architecture: TransformerConfig
) -> tuple[Objective, nn.Module]:
    """The readable objective in float64 on the CPU, and the fast one on the device."""
    torch.manual_seed(setting.seed)
    exact = Objective(Transformer(architecture).double(), 0.1).train()
    objective = fast_training(Transformer(architecture), 0.1)
    objective.load_state_dict(exact.state_dict())
    return exact, objective.to(setting.device).train()


def correctness(setting: Setting) -> dict:
    """Relative errors of loss and gradients, against float64 on the CPU."""
    small = replace(preset("base"), N=2, src_vocab_size=2_000, tgt_vocab_size=2_000)
    architecture = replace(TOY if setting.tiny else small, dropout=0.0)
    exact, objective = exact_and_fast(setting, architecture)
    batch = random_batch(architecture, 8, 24, torch.device("cpu"))
    batch[0][0, 20:] = batch[1][0, 16:] = batch[2][0, 16:] = architecture.pad_id
    expected = exact(*batch)
    wanted = gradient(expected, exact)
    there, found = [part.to(setting.device) for part in batch], {}
    for name, action, half in (
        ("float32", objective, False),
        ("bfloat16", objective, True),
        ("compiled", setting.compiled(objective), True),
    ):
        try:
            with torch.autocast(setting.device.type, torch.bfloat16, enabled=half):
                loss = action(*there)
            error = (gradient(loss, objective) - wanted).norm() / wanted.norm()
            relative = abs(loss.item() / expected.item() - 1)
            found[name] = {"loss": relative, "gradient": error.item()}
        except Exception as failure:  # one that isn't compiled mustn't cost the others
            found[name] = {"failed": why(failure)}
    return found | {"update_waits_for": waits_for(setting)}


def waits_for(setting: Setting) -> str | None:
    """What in an update makes the host wait for its GPU, in CUDA's words."""
    pairs, cuda = phrasebook("en", "de", "train", 300), setting.device.type == "cuda"
    device = None if cuda else "cpu"
    with TemporaryDirectory() as folder:
        run = prepare(recipe("phrasebook"), folder, pairs, pairs[:8], device=device)
        gradient = run.processes.gradient
        given = run.objective, run.optimizer, run.train, run.config
        updates = train(*given, gradient=gradient)
        next(updates)  # makes Adam's averages
        if cuda:
            torch.cuda.set_sync_debug_mode("error")
        try:
            next(updates)
        except RuntimeError as error:
            return str(error).splitlines()[0]
        finally:
            if cuda:
                torch.cuda.set_sync_debug_mode("default")
    return None


def matmul_peak(setting: Setting) -> float | None:
    """Operations a second of one large square product in bfloat16, in practice."""
    n = 256 if setting.tiny else 8_192
    a, b = torch.randn(2, n, n, device=setting.device, dtype=torch.bfloat16)
    taken = medians(setting, {"product": lambda: a @ b}, 10)["product"]
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
    optimizer, tokens = fused_adam(model), batch[2].numel()

    def step() -> None:
        with setting.autocast():
            loss = forward(*batch)
        (loss / tokens).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def contenders(
    setting: Setting, architecture: TransformerConfig, batch: list[Tensor]
) -> tuple[dict[str, Callable[[], None]], dict[str, str]]:
    """The steps of all peers, eager and compiled; and why others are lacking."""
    steps: dict[str, Callable[[], None]] = {}
    lacking: dict[str, str] = {}
    for name, form in product(peers.NAMES, ("eager", "compiled")):
        model = build(name, architecture, setting.device)
        if isinstance(model, str):
            lacking[f"{name}, {form}"] = model
        else:
            forward = model if form == "eager" else setting.compiled(model)
            step = training_step(setting, model, forward, batch)
            steps[f"{name}, {form}"] = step
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
    """Tokens a second of each contender, and its operations as a share of two peaks."""
    architecture = TOY if setting.tiny else preset(name)
    rows, length = (4, 8) if setting.tiny else (512, 48)
    batch = random_batch(architecture, rows, length, setting.device)
    operations = rows * sum(flops(architecture, length, length))
    measured, stated = matmul_peak(setting), data_sheet(setting)
    steps, lacking = contenders(setting, architecture, batch)
    found: dict[str, dict] = {each: {"error": why} for each, why in lacking.items()}
    for each, taken in medians(setting, steps, 3 if setting.tiny else 10).items():
        if isinstance(taken, str):
            found[each] = {"error": taken}
            continue
        found[each] = {
            "seconds": taken,
            "tokens_per_second": rows * length / taken,
            "of_measured_peak": operations / taken / measured if measured else None,
            "of_data_sheet": operations / taken / stated if stated else None,
            "peak_bytes": peak_bytes(setting, steps[each]),
        }
    return {
        "rows": rows,
        "length": length,
        "parameters": parameter_count(architecture),
        "flops_per_update": operations,
        "measured_peak": measured,
        "data_sheet_peak": stated,
        "precision": "bfloat16",
        "contenders": found,
    }


def our_search(
    model: StepModel, src: Tensor, beam_size: int, length: int
) -> Callable[[], object]:
    """Our greedy or beam search for exactly `length` tokens.

    The end token never comes, since its score is zero.
    """
    if beam_size == 1:
        return lambda: greedy(model, src, max_length=length)
    options = SearchOptions(beam_size=beam_size, max_length=length)
    return lambda: beam(model, src, options)


class Numbers:
    """A vocabulary of words without meaning, for an engine that is given words."""

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
        return f"not measured: {why(error)}"


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


def searches(
    setting: Setting, architecture: TransformerConfig, length: int
) -> dict[str, Callable[[Tensor, int], Callable[[], object]] | str]:
    """By name, what makes a search of a batch and a beam size; or why there is none."""
    ours, peer = (
        build(name, architecture, setting.device) for name in ("ours", "Marian")
    )
    assert isinstance(ours, nn.Module)
    with torch.no_grad():
        ours.model.tgt_embedding.weight[architecture.eos_id] = 0
    engine = ctranslate2_engine(ours.model.float().cpu(), setting.device)
    model = ours.model.to(setting.device).eval()
    prepared, half = fast(model, "bfloat16"), deepcopy(model).bfloat16()
    if isinstance(peer, nn.Module):
        peer = peer.bfloat16().eval()
    return {
        "ours": lambda src, beam: our_search(half, src, beam, length),
        "ours, prepared": lambda src, beam: our_search(prepared, src, beam, length),
        "CTranslate2": engine
        if isinstance(engine, str)
        else lambda src, beam: its_search(*engine, src, beam, length),
        "transformers": peer
        if isinstance(peer, str)
        else lambda src, beam: their_search(peer, src, beam, length),
    }


def decoding(setting: Setting) -> dict:
    """Output tokens a second, greedy and with a beam of 4, at three batch sizes."""
    architecture, length = (TOY, 6) if setting.tiny else (preset("base"), 64)
    makers = searches(setting, architecture, length)
    rows: list[dict] = [
        {"by": name, "error": make}
        for name, make in makers.items()
        if isinstance(make, str)
    ]
    for size, beam_size in product((1, 2) if setting.tiny else (1, 64, 512), (1, 4)):
        if setting.late:
            return {"length": length, "rows": rows, "unfinished": True}
        src = random_batch(architecture, size, 32, setting.device)[0]
        actions = {
            name: make(src, beam_size)
            for name, make in makers.items()
            if not isinstance(make, str)
        }
        for name, taken in medians(setting, actions, 3).items():
            failed = isinstance(taken, str)
            speed = {} if failed else {"tokens_per_second": size * length / taken}
            result = {"error": taken} if failed else speed
            rows.append({"batch": size, "beam_size": beam_size, "by": name} | result)
    return {"length": length, "source": 32, "precision": "bfloat16", "rows": rows}


def train_by_command(
    setting: Setting, folder: Path, plan: str, settings: list[str]
) -> bool:
    """Train on from the last checkpoint; whether the run ended before the deadline."""
    plan = "phrasebook" if setting.tiny else plan
    command = [sys.executable, "-m", "annotated_transformer", "train", plan]
    command += ["--out", str(folder)]
    command += [word for each in settings for word in ("--set", each)]
    command += ["--device", "cpu"] if setting.device.type == "cpu" else []
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        status = process.wait(timeout=max(30.0, setting.deadline - time.perf_counter()))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        status = process.wait()
    if status not in (0, 130):
        sys.exit(f"gpu.py: the training in {folder} ended with status {status}")
    return (folder / "model").exists()


def log_of(run: Path) -> list[dict]:
    """The lines of a run's log."""
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def bleu(
    setting: Setting, translator: Translator, test: "Test", split: str, alpha: float
) -> dict[str, float]:
    """All scores of a split with a beam of 5."""
    first = 4 if setting.tiny else 2_000
    pairs = list(islice(load_corpus(test.corpus, split, *test.langs), first))
    options = SearchOptions(beam_size=5, alpha=alpha)
    outputs = translator.translate([src for src, _ in pairs], options)
    results = scores(outputs, [tgt for _, tgt in pairs], test.langs[1])
    return {result.name: result.value for result in results}


@dataclass(frozen=True)
class Test:
    """What a long run is scored on, and the score that chooses α."""

    corpus: str
    langs: tuple[str, str]
    splits: list[str]
    rule: str


def long_run(setting: Setting, plan: str, settings: list[str], test: Test) -> dict:
    """The run of one seed: trained, α chosen on the validation split, tests scored."""
    folder = ROOT / "runs" / f"gpu-{'toy-' * setting.tiny}{test.corpus}-{setting.seed}"
    if setting.tiny:
        settings, test = ["steps=2"], Test("phrasebook", ("en", "de"), ["test"], RULE)
    settings = [f"seed={setting.seed}", *settings]
    if not train_by_command(setting, folder, plan, settings):
        return {f"seed {setting.seed}": {"unfinished": "call again to go on"}}
    translator = Translator.from_pretrained(folder / "model", device=setting.device)
    grid = {
        alpha: bleu(setting, translator, test, "val", alpha)[test.rule]
        for alpha in (0.6, 1.0, 1.4, 1.8)
    }
    best, log = max(grid, key=lambda alpha: grid[alpha]), log_of(folder)
    found = {
        "validation_grid": grid,
        "alpha": best,
        "updates": log[-1]["step"],
        "seconds": log[-1]["seconds"],
        "validation_loss": [row["loss"] for row in log if row["event"] == "validation"],
        "tests": {
            split: bleu(setting, translator, test, split, best) for split in test.splits
        },
    }
    return {f"seed {setting.seed}": found}


RULE = "BLEU Moses, lower-cased"


def multi30k(setting: Setting) -> dict:
    """The small model on Multi30k."""
    splits = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
    test = Test("multi30k", ("en", "de"), splits, RULE)
    return long_run(setting, "multi30k-en-de-tiny", [], test)


def tatoeba(setting: Setting) -> dict:
    """The model of IWSLT14 on Tatoeba; at most 2,000 sentences are scored."""
    settings = "corpus=tatoeba train_split=train valid_split=val lowercase=false"
    test = Test("tatoeba", ("de", "en"), ["test"], "BLEU 13a")
    return long_run(setting, "iwslt14-de-en", settings.split(), test)


def table_3(setting: Setting) -> dict:
    """The best validation loss of each row after 2,000 updates.

    Rows that there was no time for are left out.
    """
    steps, found = (2 if setting.tiny else 2_000), {}
    for name, changes in islice(ROWS.items(), 1 if setting.tiny else None):
        row = name.replace(": ", "-").replace(" ", "-")
        folder = ROOT / "runs" / f"gpu-{'toy-' * setting.tiny}row-{row}-{setting.seed}"
        settings = [f"steps={steps}", f"seed={setting.seed}", "patience=0"]
        settings += changes.split()
        plan = "multi30k-en-de-tiny"
        if setting.late or not train_by_command(setting, folder, plan, settings):
            break
        found[f"{name}, seed {setting.seed}"] = {
            "changes": changes.split(),
            "updates": steps,
            "validation_loss": min(
                line["loss"] for line in log_of(folder) if line["event"] == "validation"
            ),
        }
    return found


SHORT: dict[str, Callable[[Setting], dict]] = {
    "correctness": correctness,
    "training-base": lambda setting: training(setting, "base"),
    "training-big": lambda setting: training(setting, "big"),
    "decoding": decoding,
}
LONG: dict[str, Callable[[Setting], dict]] = {
    "multi30k": multi30k,
    "tatoeba": tatoeba,
    "table-3": table_3,
}


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line, checked: one line and exit status 2 for what can't be done."""
    names = ", ".join([*SHORT, *LONG])
    parser = command_line(__doc__)
    parser.add_argument("--only", default=",".join(SHORT), help=f"of {names}")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--tiny", action="store_true", help="toy sizes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=8.0, help="nothing new is begun after that"
    )
    parser.add_argument("--out", type=Path, help="the record, instead of the usual one")
    chosen, refusal = parser.parse_args(argv), ""
    strange = [name for name in chosen.only.split(",") if name not in SHORT | LONG]
    if chosen.device == "cuda" and not torch.cuda.is_available():
        refusal = "no CUDA device here; --device cpu --tiny runs all of it at toy sizes"
    elif chosen.device == "cpu" and not chosen.tiny:
        refusal = "the full sizes are for a GPU: add --tiny"
    elif strange:
        refusal = f"no section {strange[0]!r}: choose from {names}"
    if refusal:
        print(f"gpu.py: {refusal}", file=sys.stderr)
        sys.exit(2)
    return chosen


def join(old: dict, new: dict) -> dict:
    """New results beside the old: seeds and rows gather, short sections go."""
    return {
        name: old.get(name, {}) | found if name in LONG else found
        for name, found in new.items()
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the chosen sections, each into the record as soon as it is there."""
    chosen = options(argv)
    deadline = time.perf_counter() + 60 * chosen.minutes
    setting = Setting(torch.device(chosen.device), chosen.tiny, chosen.seed, deadline)
    place = str(chosen.out.absolute() if chosen.out else "scale/gpu.json")
    written = chosen.out or not chosen.tiny
    cuda = setting.device.type == "cuda"
    about = {
        "command": "python -m benchmarks.scale.gpu",
        "device": torch.cuda.get_device_name() if cuda else "CPU, toy sizes",
        "versions": versions(*PACKAGES) | {"cuda": torch.version.cuda},
    }
    for name in chosen.only.split(","):
        if setting.late:
            line = f"gpu.py: no time left for {name}: call again with --only {name}"
            print(line, file=sys.stderr)
            continue
        found = {name: (SHORT | LONG)[name](setting)}
        torch.compiler.reset()  # lets go of the models that were compiled
        if written:
            record = load(place)
            found = join(record, found)
            save(place, record | about | found)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
