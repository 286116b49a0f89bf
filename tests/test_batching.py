"""data/batching: storage and its faults, budgets, padding, parts, resuming, memory."""

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from annotated_transformer.data.batching import collate, padding_share, token_batches
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.stream import batches
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.errors import UserError
from annotated_transformer.model.config import BOS, EOS, PAD

UINT16 = {"dtype": "uint16"}
TEXTS = phrasebook("en", "de", "train", 600)


@pytest.fixture(scope="module")
def tokenizer() -> PairTokenizer:
    return train_tokenizer(TEXTS, "en", "de", 400)


@pytest.fixture(scope="module")
def pairs(tokenizer) -> TokenizedPairs:
    return TokenizedPairs.build(TEXTS, tokenizer)


def random_lengths(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    src = rng.integers(1, 60, count)
    return src, np.clip(src + rng.integers(-8, 9, count), 1, None)


def test_storage_is_what_the_tokenizer_gave(pairs, tokenizer):
    assert len(pairs) == len(TEXTS)
    src, tgt = zip(*(pairs[i] for i in range(len(pairs))), strict=True)
    english, german = map(list, zip(*TEXTS, strict=True))
    assert [row.tolist() for row in src] == tokenizer.encode_source(english)
    assert [row.tolist() for row in tgt] == tokenizer.encode_target(german)
    assert pairs.src_lengths.tolist() == [len(row) for row in src]
    assert pairs.src_tokens.dtype == np.uint16
    assert (pairs[-1][0] == pairs[len(pairs) - 1][0]).all()
    with pytest.raises(IndexError):
        pairs[len(pairs)]


def test_disk_equals_memory(pairs, tokenizer, tmp_path):
    built = TokenizedPairs.build(iter(TEXTS), tokenizer, tmp_path / "a" / "b")
    for found in (built, TokenizedPairs.open(tmp_path / "a" / "b")):
        assert isinstance(found.src_tokens, np.memmap)
        assert (found.tgt_tokens == pairs.tgt_tokens).all()
        assert (found.src_offsets == pairs.src_offsets).all() and found.dropped == 0
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("thesis.txt", "mine"), ("pairs.json", "[[1, 2]]"), ("src.tokens", "mine")],
)
def test_a_folder_with_other_things_is_left_alone(tokenizer, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match="exists already"):
        TokenizedPairs.build(TEXTS[:9], tokenizer, tmp_path)
    assert (tmp_path / name).read_text() == text


@pytest.fixture
def folder(tokenizer, tmp_path) -> Path:
    """The files of twenty pairs."""
    TokenizedPairs.build(TEXTS[:20], tokenizer, tmp_path / "p")
    return tmp_path / "p"


def npy(header: bytes) -> bytes:
    """A file of NumPy's whose header says this."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    "name", ["pairs.json", "src.tokens", "tgt.tokens", "src.offsets.npy"]
)
@pytest.mark.parametrize("damage", ["gone", "half", npy(b"(" * 9000)])
def test_damaged_folders_are_one_clear_error(folder, name, damage):
    path = folder / name
    whole = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(whole[: len(whole) // 2] if damage == "half" else damage)
    words = f"{name} (is missing|is not|can't)|build them again|does not fit"
    with pytest.raises(UserError, match=words):
        TokenizedPairs.open(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"src": {"dtype": "float16"}},
        {"tgt": None},
        {"dropped": "many"},
        {"dropped": math.inf},
    ],
)
def test_a_changed_description_is_one_clear_error(folder, change):
    about = folder / "pairs.json"
    about.write_text(json.dumps({"src": UINT16, "tgt": UINT16, "dropped": 0, **change}))
    with pytest.raises(UserError, match="build them again"):
        TokenizedPairs.open(folder)


def test_long_pairs_are_dropped_and_counted(pairs, tokenizer):
    kept = TokenizedPairs.build(TEXTS, tokenizer, max_length=12)
    assert max(kept.src_lengths.max(), kept.tgt_lengths.max()) <= 12
    too_long = np.maximum(pairs.src_lengths, pairs.tgt_lengths) > 12
    assert kept.dropped == too_long.sum() == len(pairs) - len(kept) > 0
    with pytest.raises(UserError, match="pairs are left, 600 were longer than 1 token"):
        TokenizedPairs.build(TEXTS, tokenizer, max_length=1)


@pytest.mark.parametrize("max_tokens", [70, 500, 10**6])
def test_batches_hold_every_pair_once_within_the_budget(max_tokens):
    src, tgt = random_lengths(3000, 0)
    plan = token_batches(src, tgt, max_tokens, 0)
    assert sorted(np.concatenate(plan)) == list(range(3000)) and all(map(len, plan))
    for rows in plan:
        assert len(rows) * max(src[rows].max(), tgt[rows].max()) <= max_tokens


def test_same_seed_and_epoch_same_plan_and_others_differ():
    src, tgt = random_lengths(1000, 1)
    first, again, seed, epoch = (
        [tuple(rows) for rows in token_batches(src, tgt, 500, *place)]
        for place in ((3, 4), (3, 4), (4, 4), (3, 5))
    )
    assert first == again
    for other in (seed, epoch):
        assert {frozenset(it) for it in other} != {frozenset(it) for it in first}
        assert len(other) == len(first)


@pytest.mark.parametrize(
    ("src", "tgt", "message"),
    [
        ([5, 6, 7], [5, 6, 90], "pair 2 has 90 tokens, more than the 80 .* raise max_"),
        ([5, 5, 5, 0], [5, 5, 5, 0], "pair 3 has no tokens"),
        ([], [], "no pairs"),
    ],
)
def test_lengths_that_cannot_be_planned_are_named(src, tgt, message):
    with pytest.raises(UserError, match=message):
        token_batches(np.array(src, int), np.array(tgt, int), 80)


def test_of_many_pairs_a_batch_is_hardly_padded():
    src, tgt = random_lengths(1_000_000, 0)
    assert padding_share(src, tgt, token_batches(src, tgt, 25_000)) < 0.01


def test_collate_shifts_pads_and_counts(pairs):
    rows = np.array([3, 1, 4])
    batch = collate(pairs, rows)
    for i, row in enumerate(rows):
        src, tgt = (side.tolist() for side in pairs[row])
        wide, high = batch.src.shape[1], batch.tgt_out.shape[1]
        assert batch.src[i].tolist() == src + [PAD] * (wide - len(src))
        padding = [PAD] * (high - len(tgt))
        assert batch.tgt_in[i].tolist() == [BOS, *tgt[:-1], *padding]
        assert batch.tgt_out[i].tolist() == [*tgt, *padding] and tgt[-1] == EOS
    with pytest.raises(UserError, match="at least one pair"):
        collate(pairs, [])
    assert batch.tokens == pairs.tgt_lengths[rows].sum() and len(batch) == 3
    assert batch.src.dtype == batch.tgt_in.dtype == batch.tgt_out.dtype == torch.int64
    assert (batch.tgt_out != PAD).any(0).all() and (batch.src != PAD).any(0).all()


@pytest.mark.parametrize("n", [2, 5])
def test_parts_of_a_batch_are_the_batch(pairs, n):
    batch = collate(pairs, np.arange(3))
    parts = batch.split(n)
    assert len(parts) == n and sum(part.tokens for part in parts) == batch.tokens
    rows = [row for part in parts if part.tokens for row in part.tgt_out.tolist()]
    assert sorted(rows) == sorted(batch.tgt_out.tolist())
    for part in parts[3:]:
        assert len(part) == 1 and part.tokens == 0 and (part.src != PAD).any()


def test_stream_goes_on_from_any_position(pairs):
    whole = list(itertools.islice(batches(pairs, 512, seed=5), 90))
    for stop in (1, 30, 61):
        start = whole[stop - 1][0]
        rest = batches(pairs, 512, seed=5, start=start)
        for (position, a), (again, b) in zip(whole[stop:], rest, strict=False):
            assert position == again and torch.equal(a.src, b.src)
            assert torch.equal(a.tgt_out, b.tgt_out)
    n = len(token_batches(pairs.src_lengths, pairs.tgt_lengths, 512, 5, 0))
    assert [position for position, _ in whole[n - 2 : n]] == [(0, n - 1), (1, 0)]
    with pytest.raises(UserError, match=r"position \(3, 10000\) .*: epoch 3 has only"):
        next(batches(pairs, 512, start=(3, 10_000)))


def measure(count: int, folder: Path) -> dict:
    command = [sys.executable, "-m", "benchmarks.scale.memory_5m_pairs"]
    command += ["--pairs", str(count), "--folder", str(folder)]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.slow
def test_memory_hardly_grows_with_the_pairs(tmp_path):
    few, many = (measure(count, tmp_path) for count in (2_000, 60_000))
    assert many["pairs"] == 60_000 and not list(tmp_path.iterdir())
    assert many["peak_gib"] - few["peak_gib"] < 0.15
    assert many["tokens"]["target_tokens"] == many["epoch"]["batched_tokens"]
