"""The doctor names planted faults first, and finds nothing in what is sound."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from tiny_run import refused, train_arguments, write_pairs
from torch import nn

from annotated_transformer import UserError, doctor, fit, load, prepare, recipe
from annotated_transformer.data.corpora import load_corpus
from annotated_transformer.data.phrasebook import different, meanings, phrasebook
from annotated_transformer.model import transformer
from annotated_transformer.model.attention import MultiHeadAttention
from annotated_transformer.training.log import Log
from annotated_transformer.translation.diagnosis import Diagnosis, Measure
from annotated_transformer.translation.prepared_data import InitFrom
from annotated_transformer.translation.run_measures import log_measures

ROOT = Path(__file__).resolve().parent.parent
Pairs = list[tuple[str, str]]


def first(found: Diagnosis) -> str:
    """The name of the first finding, without its number."""
    return found.findings[0].name if found.findings else "healthy"


# -- sentence pairs --------------------------------------------------------------------

SOUND = phrasebook("en", "de", "train", 1_200)
HELD = phrasebook("en", "de", "val", 100)
ENGLISH, GERMAN = ([*side] for side in zip(*SOUND, strict=True))
FRENCH = [tgt for _, tgt in phrasebook("en", "fr", "train", 1_200)]


def zipped(src: list[str], tgt: list[str]) -> Pairs:
    """Pairs, the longer side cut."""
    return [*zip(src, tgt, strict=False)]


FAULTS: dict[str, tuple[Pairs, str]] = {
    "swapped": (zipped(GERMAN, ENGLISH), "lead of en words in en"),
    "copied": (zipped(ENGLISH, ENGLISH), "same text on both sides, share"),
    "French source": (zipped(FRENCH, GERMAN), "lead of en words in en"),
    "French target": (zipped(ENGLISH, FRENCH), "lead of de words in de"),
    "lost": (
        zipped(ENGLISH, GERMAN[:700] + GERMAN[701:]),
        "lines that fit as they stand, share",
    ),
    "unrelated": (
        zipped(ENGLISH, sorted(GERMAN)),
        "lines that fit as they stand, share",
    ),
    "three": (SOUND[:3], "pairs"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_pairs_is_named_first(fault):
    pairs, name = FAULTS[fault]
    assert first(doctor(pairs, "en", "de", valid=HELD)) == name


@pytest.mark.parametrize("lost", [100, 700, 1_000])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_lost_line_is_found_where_it_was(lost, side):
    sides = {"source": [*ENGLISH], "target": [*GERMAN]}
    del sides[side][lost]
    found = doctor(zipped(*sides.values()), "en", "de").findings[0]
    told = found.says.replace(",", "").split("about line ")[1].split()[0]
    assert abs(int(told) - lost) <= 20
    assert f"the {side} lost a line" in found.says


@pytest.mark.parametrize(("source", "target"), [(800, 400), (400, 700), (300, 1_100)])
def test_a_line_lost_in_each_file_is_found_where_the_shift_begins(source, target):
    english, german = [*ENGLISH], [*GERMAN]
    del english[source], german[target]
    found = doctor(zipped(english, german), "en", "de").findings[0]
    told = found.says.replace(",", "").split("about line ")[1].split()[0]
    assert abs(int(told) - min(source, target)) <= 20
    lost = "source" if source < target else "target"
    assert f"the {lost} lost a line" in found.says


def test_files_of_uneven_length_are_no_error(tmp_path, run):
    write_sides(tmp_path, "train", ENGLISH, GERMAN[:-1])
    files = tmp_path / "train", "--src", "en", "--tgt", "de"
    status, out, _ = run("doctor", *files)
    assert status == 1
    assert "1. the source has 1,200 lines and the target 1,199" in out


@pytest.mark.parametrize(
    ("valid", "name"),
    [
        (SOUND[:20], "valid seen before, share"),
        (SOUND[:50] + HELD, "valid seen before, share"),
        (HELD, "valid nearly seen, share"),  # a phrase with another number
    ],
)
def test_a_fault_of_what_is_held_out_is_named_first(valid, name):
    assert first(doctor(SOUND, "en", "de", valid=valid)) == name


@pytest.mark.parametrize("tgt", ["de", "fr", "es", "it", "nl"])
def test_nothing_is_found_in_the_phrasebook(tgt):
    train = phrasebook("en", tgt, "train", 1_500)
    assert not doctor(train, "en", tgt).findings
    turned = [(b, a) for a, b in train]
    assert not doctor(turned, tgt, "en").findings


@pytest.mark.parametrize("tgt", ["de", "fr"])
def test_nothing_is_found_in_multi30k(data_root, tgt):
    train, valid = (
        [*islice(load_corpus("multi30k", split, "en", tgt, data_root), 8_000)]
        for split in ("train", "val")
    )
    assert not doctor(train, "en", tgt, valid=valid).findings


def test_nothing_is_found_in_tatoeba(data_root):
    """Its lines are in the order of their length, and neighbours are much alike."""
    train, valid = (
        [*load_corpus("tatoeba", split, "en", "de", data_root)]
        for split in ("test", "val")
    )
    assert not doctor(train, "en", "de", valid=valid).findings
    shifted = zipped([src for src, _ in train[1:]], [tgt for _, tgt in train])
    assert first(doctor(shifted, "en", "de")) == FAULTS["lost"][1]


# -- models ----------------------------------------------------------------------------


class NoPositions(nn.Module):
    """In the place of the position codes."""

    def forward(self, x: torch.Tensor, start: int = 0) -> torch.Tensor:
        return x


def encoder_gives(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable:
    """A plant that changes what the encoder hands on."""

    def plant(model: nn.Module) -> None:
        encode = model.encode
        model.encode = lambda src: (change(encode(src)[0]), encode(src)[1])

    return plant


def end_token(gain: float) -> Callable:
    """A plant that makes the end more or less likely."""

    def plant(model: nn.Module) -> None:
        logits, bias = model.logits, torch.zeros(model.config.tgt_vocab_size)
        bias[model.config.eos_id] = gain
        model.logits = lambda hidden: logits(hidden) + bias

    return plant


def not_a_number(model: nn.Module) -> None:
    next(model.parameters()).data[5, 5] = math.nan


def one_layer_twice(model: nn.Module) -> None:
    one, two = model.encoder.layers
    two.load_state_dict(one.state_dict())


def no_positions(model: nn.Module) -> None:
    model.positions = NoPositions()


def untrained(model: nn.Module) -> None:
    torch.manual_seed(0)
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.xavier_uniform_(weight)


PLANTS = [
    (not_a_number, "matrices with no numbers"),
    (one_layer_twice, "equal matrices"),
    (
        encoder_gives(lambda memory: nn.functional.dropout(memory, 0.1)),
        "change when asked twice, nats",
    ),
    (encoder_gives(torch.zeros_like), "rise with a neighbour's source, nats"),
    (no_positions, "rise with source words shuffled, nats"),
    (end_token(-12.0), "translations that end, share"),
    (untrained, "loss as a share of ln V"),
]


@pytest.mark.parametrize(("plant", "name"), PLANTS, ids=[name for _, name in PLANTS])
def test_a_fault_of_a_model_is_named_first(plant, name):
    translator = load("phrasebook-en-de", device="cpu", engine="plain")
    plant(translator.model)
    assert first(doctor(translator)) == name


def test_a_decoder_that_reads_ahead_is_named_first(monkeypatch):
    attend = MultiHeadAttention.attend
    monkeypatch.setattr(
        MultiHeadAttention,
        "attend",
        lambda *given, **_: attend(*given[:4], mask_of(given)),
    )
    assert first(doctor("phrasebook-en-de", device="cpu")) == (
        "change by later tokens, nats"
    )


def mask_of(given: tuple) -> torch.Tensor | None:
    """The mask among the arguments of `attend`."""
    return given[4] if len(given) > 4 else None


def test_padding_that_is_read_is_named_first(monkeypatch):
    whole = transformer.padding_mask
    monkeypatch.setattr(
        transformer, "padding_mask", lambda ids, pad: whole(ids, pad) | True
    )
    assert first(doctor("phrasebook-en-de", device="cpu")) == (
        "change beside others, nats"
    )


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda a, b: zipped(a, [*b[1:], b[0]]), "loss as a share of ln V"),
        (
            lambda a, b: [(f"{src} Ωλδψξ", tgt) for src, tgt in zipped(a, b)],
            "unknown source tokens, share",
        ),
        (
            lambda a, b: [(src, f"{tgt} Ωλδψξ") for src, tgt in zipped(a, b)],
            "unknown target tokens, share",
        ),
    ],
)
def test_a_fault_of_the_pairs_shows_in_the_model(change, name):
    sides = ([*side] for side in zip(*HELD[:32], strict=True))
    assert first(doctor("phrasebook-en-de", valid=change(*sides), device="cpu")) == name


MODELS = ["phrasebook-en-de", "tatoeba-en-de", str(ROOT / "models/tatoeba-de-en")]


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_found_in_the_shipped_models(name, run):
    status, out, _ = run("doctor", name, "--device", "cpu")
    assert status == 0
    assert "healthy in" in out and len(out.splitlines()) < 24


# -- runs ------------------------------------------------------------------------------

LOGS = sorted(ROOT.glob("results/runs/*/log.jsonl"))
SIZE = 8_281
REAL = [*Log(ROOT / "results/runs/tatoeba-en-de-first/log.jsonl").records()]
UPDATES = [record for record in REAL if record["event"] == "update"]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.parent.name)
def test_nothing_is_found_in_the_logs_of_real_runs(path):
    smoothing = 0.0 if path.parent.name.startswith("phrasebook") else 0.1
    measures = log_measures(Log(path).records(), SIZE, smoothing)
    assert not Diagnosis("", [*measures]).findings


def with_losses(change: Callable[[int, float], float]) -> Iterator[dict]:
    """A real log with other losses."""
    for number, record in enumerate(UPDATES):
        yield record | {"loss": change(number, record["loss"])}


EDITS = [
    (lambda n, loss: 50.0 if n == 0 else loss, "first loss above ln V, nats"),
    (lambda n, loss: loss + n % 2, "mean rise from point to point, nats"),
    (lambda n, loss: loss + 0.6 * (n == 80), "largest rise of the loss, nats"),
    (
        lambda n, loss: loss - 1,
        "last loss above 1.23, the floor of label smoothing, nats",
    ),
]


@pytest.mark.parametrize(("change", "name"), EDITS, ids=[name for _, name in EDITS])
def test_a_fault_in_a_log_is_named_first(change, name):
    found = Diagnosis("", [*log_measures(with_losses(change), SIZE, 0.1)])
    assert first(found) == name


def test_the_place_of_a_jump_is_told():
    losses = with_losses(EDITS[2][0])
    found = Diagnosis("", [*log_measures(losses, SIZE, 0.1)]).findings[0]
    assert f"near update {UPDATES[80]['step']:,}" in found.says


def test_a_loss_near_the_floor_is_a_false_alarm():
    """1.23 with the 8,281 tokens of the shipped model, 1.38 with the paper's 37,000."""
    low = [record | {"loss": max(1.4, record["loss"] - 1)} for record in UPDATES]
    for size, floor in ((SIZE, 1.23), (37_000, 1.38)):
        *_, last = log_measures(low, size, 0.1)
        assert last.healthy and last.name.startswith(f"last loss above {floor}, the")
    *_, last = log_measures(with_losses(lambda n, loss: loss / 5), SIZE, 0.1)
    assert not last.healthy


def short_run(folder: Path, train: Pairs, valid: Pairs) -> Path:
    """A few updates of the phrasebook's model, with the log of a whole run."""
    opened = load("phrasebook-en-de", device="cpu", engine="plain")
    start = InitFrom("phrasebook-en-de", opened.model, opened.tokenizer)
    plan = recipe("phrasebook")
    few = {"steps": 2, "save_every": 2, "peak": 1e-5, "label_smoothing": 0.1}
    plan = replace(plan, training=replace(plan.training, **few))
    how = {"report": None, "device": "cpu", "init_from": start}
    fit(prepare(plan, folder, train, valid, **how))
    log = "".join(json.dumps(record) + "\n" for record in UPDATES)
    (folder / "log.jsonl").write_text(log)
    return folder


def test_a_run_is_measured_by_its_data_its_log_and_its_model(tmp_path, run):
    folder = short_run(tmp_path / "run", SOUND, HELD)
    status, out, _ = run("doctor", folder, "--device", "cpu", "--json")
    found = json.loads(out)
    assert status == 0 and all(each["healthy"] for each in found)
    assert len(found) > 15


def test_a_leak_in_a_run_is_named_first(tmp_path):
    folder = short_run(tmp_path / "run", SOUND, SOUND[:100])
    assert first(doctor(folder, device="cpu")) == "valid seen before, share"


@pytest.mark.slow
def test_nothing_is_found_in_a_fresh_run(tmp_path):
    plan = recipe("phrasebook")
    sizes = {"d_model": 64, "d_ff": 128, "h": 4, "max_length": 64}
    few = {"steps": 400, "batch_tokens": 600, "warmup": 60, "peak": 0.004}
    few |= {"label_smoothing": 0.1, "log_every": 10, "save_every": 1_000, "keep": 1}
    plan = replace(
        plan,
        vocab_size=400,
        max_tokens=64,
        architecture=replace(plan.architecture, **sizes),
        training=replace(plan.training, **few),
    )
    topics = {"dates in words", "times", "sentences: times"}
    data = []
    for split, count in (("train", 4_000), ("val", 100)):
        wanted = (each for each in meanings(split) if each.pattern.topic in topics)
        pairs = ((each.say("en"), each.say("de")) for each in wanted)
        data.append([*islice(different(pairs), count)])
    fit(prepare(plan, tmp_path / "run", *data, device="cpu", report=None))
    found = doctor(tmp_path / "run", device="cpu")
    assert not found.findings, str(found)


# -- the command -----------------------------------------------------------------------


def write_sides(folder: Path, name: str, src: list[str], tgt: list[str]) -> None:
    """Two files, which may be of uneven length."""
    for language, texts in (("en", src), ("de", tgt)):
        text = "".join(f"{each}\n" for each in texts)
        (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def test_a_folder_brings_its_splits(tmp_path, run):
    write_sides(tmp_path, "train", ENGLISH, GERMAN)
    write_sides(tmp_path, "test", ENGLISH[:50], GERMAN[:50])
    status, out, _ = run("doctor", tmp_path, "--src", "en", "--tgt", "de")
    assert status == 1
    assert "1. pairs of test are in the training text" in out
    assert "test seen before, share 1 (normal: ≤ 0.01)" in out


@pytest.mark.parametrize("languages", [[], ["--src", "en", "--tgt", "de"]])
def test_two_files_before_they_are_split(tmp_path, run, languages):
    write_sides(tmp_path, "my", ENGLISH, GERMAN)
    files = tmp_path / "my.en", tmp_path / "my.de"
    status, out, _ = run("doctor", *files, *languages)
    assert status == 0 and "healthy in" in out
    write_sides(tmp_path, "my", ENGLISH, GERMAN[:-1])
    status, out, _ = run("doctor", *files, *languages)
    assert status == 1 and "1,200 lines and the target 1,199" in out


def test_train_tells_of_suspicious_pairs_and_goes_on(tmp_path, run):
    write_sides(tmp_path, "train", GERMAN, ENGLISH)
    write_sides(tmp_path, "valid", *zip(*HELD, strict=True))
    sizes = "N=1 d_model=16 d_ff=32 h=2 d_k=8 d_v=8 vocab_size=300 steps=1 warmup=1"
    status, _, err = run(*train_arguments(tmp_path, tmp_path / "run", sizes))
    assert status == 0
    assert [line for line in err.splitlines() if "are the sides swapped?" in line]
    assert all(line.startswith("doctor: ") for line in err.splitlines())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["own"], "--src and --tgt"),
        (["own/train"], "--src and --tgt"),
        (["own/train", "--src", "en"], "--src and --tgt"),
        (["nowhere"], "nowhere: there is no such model"),
        (["own/other", "--src", "en", "--tgt", "de"], "own/other.en: no such file"),
        (["own/train.en", "own/other.de"], "own/other.de: no such file"),
    ],
)
def test_what_is_asked_wrongly(tmp_path, monkeypatch, run, words, message):
    (tmp_path / "own").mkdir()
    write_pairs(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    refused(run("doctor", *words), message)


def test_too_few_pairs_for_a_model():
    with pytest.raises(UserError, match="eight and more"):
        doctor("phrasebook-en-de", valid=HELD[:3], device="cpu")


def test_a_measure_says_what_is_normal():
    assert str(Measure("a", 1_234.5, "≥", 1_000, "")) == "a 1,234 (normal: ≥ 1,000)"
    nothing = Measure("a", math.nan, "≤", 3, "b")
    assert not nothing.healthy
    kept = {"name": "a", "value": None, "sign": "≤", "limit": 3, "says": "b"}
    assert nothing.to_dict() == kept | {"healthy": False}
