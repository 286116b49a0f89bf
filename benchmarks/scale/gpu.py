"""What needs a GPU: correct losses and gradients, training's and decoding's speed.

    python -m benchmarks.scale.gpu                    every section, three minutes
    python -m benchmarks.scale.gpu decoding           one of them, or several
    python -m benchmarks.scale.gpu --device cpu       toy sizes, printed, without a GPU

The peers are those of benchmarks/speed/peers.py, ours through torch.compile as well;
what fails says so in its row. Times are medians by the clock around a synchronised
device, contenders in turn, after a warm-up. Writes results/scale/gpu.json. Long runs
have commands of their own, which take a GPU where there is one.
"""

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import median

import torch
from torch import Tensor, nn

from annotated_transformer.data.batch import Batch
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.decoding.search import beam, greedy
from annotated_transformer.model.config import TransformerConfig, preset
from annotated_transformer.model.costs import flops, parameter_count
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.decoding import fast
from annotated_transformer.performance.update import fast_training
from annotated_transformer.training.loss import Objective
from annotated_transformer.training.schedule import adam
from benchmarks.record import command_line, load, save
from benchmarks.speed import peers

PLACE = "scale/gpu.json"
TOY = TransformerConfig(100, 100, N=1, d_model=32, d_ff=64, h=2, d_k=16, d_v=16)
Row = dict[str, float | str]
Action = Callable[[], object]


def toy(device: torch.device) -> bool:
    """Whether sizes are small, for a trial without a GPU."""
    return device.type != "cuda"


def sync(device: torch.device) -> None:
    """Wait until the device has done all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def compiled(module: nn.Module, device: torch.device) -> Callable:
    """The module through torch.compile; at toy sizes without generated kernels."""
    return torch.compile(module, backend="aot_eager" if toy(device) else "inductor")


def medians(
    actions: dict[str, Action],
    device: torch.device,
    repeats: int = 10,
    warm_up: int = 3,
) -> dict[str, Row]:
    """Median seconds of each action, or its error; what fails leaves the round.

    The first rounds are the warm-up, in which compiling takes its time.
    """
    taken: dict[str, list[float]] = {name: [] for name in actions}
    failed: dict[str, Row] = {}
    for _ in range(warm_up + repeats):
        for name in [name for name in actions if name not in failed]:
            try:
                sync(device)
                start = time.perf_counter()
                actions[name]()
                sync(device)
                taken[name].append(time.perf_counter() - start)
            except Exception as error:  # out of memory, not compiled: a result, too
                failed[name] = {"error": f"{type(error).__name__}: {error}"[:200]}
    return {
        name: failed.get(name) or {"seconds": median(taken[name][warm_up:])}
        for name in actions
    }


def random_batch(
    config: TransformerConfig, rows: int, length: int, device: torch.device
) -> Batch:
    """Source, decoder input and target of `rows` pairs without padding."""
    shape, seed = (rows, 2 * length + 1), torch.manual_seed(0)
    ids = torch.randint(4, config.tgt_vocab_size, shape, generator=seed).to(device)
    return Batch(ids[:, :length], ids[:, length:-1], ids[:, length + 1 :])


# -- correctness -----------------------------------------------------------------------


def gradient(loss: Tensor, model: nn.Module) -> Tensor:
    """All gradients as one float64 vector on the CPU."""
    parts = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([part.flatten().double().cpu() for part in parts])


def correctness(device: torch.device) -> dict[str, dict[str, float]]:
    """Relative errors of loss and gradients, against float64 on the CPU."""
    small = replace(preset("base"), N=2, src_vocab_size=2_000, tgt_vocab_size=2_000)
    config = replace(TOY if toy(device) else small, dropout=0.0)
    torch.manual_seed(1)
    exact = Objective(Transformer(config).double(), 0.1).train()
    objective = fast_training(Transformer(config), 0.1)
    objective.load_state_dict(exact.state_dict())
    objective.to(device).train()
    batch = random_batch(config, 8, 24, torch.device("cpu"))
    for ids, end in ((batch.src, 20), (batch.tgt_in, 16), (batch.tgt_out, 16)):
        ids[0, end:] = config.pad_id
    expected = exact(batch)
    wanted, found = gradient(expected, exact), {}
    for name, action, half in (
        ("float32", objective, False),
        ("bfloat16", objective, True),
        ("bfloat16, compiled", compiled(objective, device), True),
    ):
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            loss = action(batch.to(device))
        error = (gradient(loss, objective) - wanted).norm() / wanted.norm()
        relative = abs(loss.item() / expected.item() - 1)
        found[name] = {"loss": relative, "gradient": error.item()}
    return found


# -- training --------------------------------------------------------------------------


def training_step(
    name: str, form: str, config: TransformerConfig, batch: Batch
) -> Action:
    """One update of a peer in bfloat16: forward, backward, Adam."""
    device, tokens = batch.src.device, batch.tokens
    model = peers.build(name, config).to(device).train()
    forward = compiled(model, device) if form == "compiled" else model
    optimizer = adam(model, fused=True)

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16):
            loss = forward(batch)
        (loss / tokens).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def training(size: str, device: torch.device) -> dict:
    """Tokens a second of each peer, and its share of what a large product reaches."""
    config = TOY if toy(device) else preset(size)
    rows, length, n = (4, 8, 256) if toy(device) else (512, 48, 8_192)
    batch = random_batch(config, rows, length, device)
    operations = rows * sum(flops(config, length, length))
    a, b = torch.randn(2, n, n, device=device, dtype=torch.bfloat16)
    peak = 2 * n**3 / medians({"": lambda: a @ b}, device)[""]["seconds"]
    steps = {
        f"{name}, {form}": training_step(name, form, config, batch)
        for name, form in [*product(peers.NAMES, ["eager"]), ("ours", "compiled")]
    }
    found = medians(steps, device)
    for row in found.values():
        if seconds := row.get("seconds"):
            row["tokens_per_second"] = rows * length / seconds
            row["share_of_peak"] = operations / seconds / peak
    about = {"rows": rows, "length": length, "parameters": parameter_count(config)}
    return about | {"flops": operations, "product_flops": peak, "contenders": found}


# -- decoding --------------------------------------------------------------------------


def our_search(model: nn.Module, src: Tensor, beam_size: int, length: int) -> object:
    """Our greedy or beam search for exactly `length` tokens, if [eos] never comes."""
    if beam_size == 1:
        return greedy(model, src, max_length=length)
    return beam(model, src, SearchOptions(beam_size, max_length=length))


@torch.inference_mode()
def their_search(peer: nn.Module, src: Tensor, beam_size: int, length: int) -> object:
    """The same by transformers' `generate`."""
    return peer.model.generate(
        input_ids=src,
        attention_mask=torch.ones_like(src),
        num_beams=beam_size,
        do_sample=False,
        min_new_tokens=length,
        max_new_tokens=length,
    )


def decoding(device: torch.device) -> dict:
    """Output tokens a second, greedy and with a beam of 4, at three batch sizes."""
    config, length = (TOY, 6) if toy(device) else (preset("base"), 32)
    model = peers.build("ours", config).model.to(device).eval()
    with torch.no_grad():
        model.tgt_embedding.weight[config.eos_id] = 0  # its score is never the best
    marian = peers.build("Marian", config).to(device).bfloat16().eval()
    searches = {
        "ours": partial(our_search, deepcopy(model).bfloat16()),
        "ours, fast": partial(our_search, fast(model, "bfloat16")),
        "transformers": partial(their_search, marian),
    }
    rows: list[dict] = []
    for size, beam_size in product((1, 2) if toy(device) else (1, 64, 512), (1, 4)):
        src = random_batch(config, size, 32, device).src
        actions = {n: partial(s, src, beam_size, length) for n, s in searches.items()}
        for name, row in medians(actions, device, 3, 1).items():
            if seconds := row.get("seconds"):
                row["tokens_per_second"] = size * length / seconds
            rows.append({"batch": size, "beam_size": beam_size, "by": name} | row)
    return {"length": length, "source": 32, "precision": "bfloat16", "rows": rows}


SECTIONS: dict[str, Callable[[torch.device], dict]] = {
    "correctness": correctness,
    "base": partial(training, "base"),
    "big": partial(training, "big"),
    "decoding": decoding,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure the named sections, each into the record as soon as it is there."""
    parser = command_line(__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; or all")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    asked = parser.parse_args(argv)
    if unknown := set(asked.sections) - set(SECTIONS):
        parser.error(f"no section {min(unknown)!r}: choose from {', '.join(SECTIONS)}")
    if asked.device == "cuda" and not torch.cuda.is_available():
        parser.error("no CUDA device here; --device cpu runs all of it at toy sizes")
    for name in asked.sections or SECTIONS:
        found = {name: SECTIONS[name](torch.device(asked.device))}
        torch.compiler.reset()  # lets go of the models that were compiled
        print(found, flush=True)
        if asked.device == "cuda":
            kept = {part: row for part, row in load(PLACE).items() if part in SECTIONS}
            save(PLACE, kept | found, "transformers", "x-transformers")


if __name__ == "__main__":
    main()
