"""data/batching: storage and its faults, budgets, padding, parts, resuming, memory."""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from annotated_transformer.data.batching import (
    TokenizedPairs,
    batches,
    collate,
    padding_share,
    token_batches,
)
from annotated_transformer.data.corpus import load_corpus
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer import PairTokenizer, train_tokenizer
from annotated_transformer.errors import UserError
from annotated_transformer.files import sha256_of
from annotated_transformer.model.config import BOS, EOS, PAD

DATA = os.environ.get("ANNOTATED_TRANSFORMER_DATA")
needs_data = pytest.mark.skipif(
    not DATA, reason="ANNOTATED_TRANSFORMER_DATA is not set"
)
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
    assert [row.tolist() for row in src] == tokenizer.encode_source(
        [text for text, _ in TEXTS]
    )
    assert [row.tolist() for row in tgt] == tokenizer.encode_target(
        [text for _, text in TEXTS]
    )
    assert (
        pairs.src_lengths.tolist() == [len(row) for row in src]
        and pairs.src_tokens.dtype == np.uint16
    )
    assert (pairs[-1][0] == pairs[len(pairs) - 1][0]).all()
    with pytest.raises(IndexError):
        pairs[len(pairs)]


def test_disk_equals_memory(pairs, tokenizer, tmp_path):
    built = TokenizedPairs.build(iter(TEXTS), tokenizer, tmp_path / "a" / "b")
    for found in (built, TokenizedPairs.open(tmp_path / "a" / "b")):
        assert (
            isinstance(found.src_tokens, np.memmap)
            and (found.tgt_tokens == pairs.tgt_tokens).all()
        )
        assert (found.src_offsets == pairs.src_offsets).all() and found.dropped == 0
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_building_again_replaces(tokenizer, tmp_path):
    TokenizedPairs.build(TEXTS[:9], tokenizer, tmp_path / "p")
    assert len(TokenizedPairs.build(TEXTS[:5], tokenizer, tmp_path / "p")) == 5


def test_a_directory_with_other_things_is_left_alone(tokenizer, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="holds other files"):
        TokenizedPairs.build(TEXTS, tokenizer, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_foreign_pairs_json_is_no_reason_to_delete_its_neighbours(
    tokenizer, tmp_path
):
    (tmp_path / "pairs.json").write_text("[]")
    (tmp_path / "novel.txt").write_text("mine")
    with pytest.raises(UserError, match="holds other files"):
        TokenizedPairs.build(TEXTS, tokenizer, tmp_path)
    assert (tmp_path / "novel.txt").read_text() == "mine"


def test_a_lone_pairs_json_may_be_somebodys(tokenizer, tmp_path):
    (tmp_path / "pairs.json").write_text("[[1, 2]]")
    with pytest.raises(UserError, match="holds other files"):
        TokenizedPairs.build(TEXTS, tokenizer, tmp_path)
    assert (tmp_path / "pairs.json").read_text() == "[[1, 2]]"


def test_a_pair_without_tokens_is_refused():
    with pytest.raises(UserError, match="pair 3 has no tokens"):
        token_batches(np.array([5, 5, 5, 0]), np.array([5, 5, 5, 0]), 64)


def test_a_link_and_the_working_directory_are_directories_too(
    tokenizer, tmp_path, monkeypatch
):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert len(TokenizedPairs.build(TEXTS[:5], tokenizer, tmp_path / "link")) == 5
    assert (tmp_path / "link").is_symlink() and (
        tmp_path / "there" / "pairs.json"
    ).exists()
    monkeypatch.chdir(tmp_path / "there")
    assert len(TokenizedPairs.build(TEXTS[:4], tokenizer, ".")) == 4


def test_no_pairs_are_named_as_such(tokenizer):
    with pytest.raises(UserError, match="no sentence pairs came"):
        TokenizedPairs.build([], tokenizer)


def test_a_build_that_fails_leaves_nothing(tokenizer, tmp_path):
    def stream():
        yield TEXTS[0]
        raise UserError("line 2 is blank")

    with pytest.raises(UserError, match="line 2 is blank"):
        TokenizedPairs.build(stream(), tokenizer, tmp_path / "p")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["pairs.json", "src.tokens", "tgt.tokens", "src.offsets.npy"]
)
@pytest.mark.parametrize("damage", ["gone", "half", "empty"])
def test_damaged_directories_are_one_clear_error(tokenizer, tmp_path, name, damage):
    TokenizedPairs.build(TEXTS[:20], tokenizer, tmp_path / "p")
    path = tmp_path / "p" / name
    whole = path.read_bytes()
    path.unlink() if damage == "gone" else path.write_bytes(
        whole[: len(whole) // 2 if damage == "half" else 0]
    )
    with pytest.raises(
        UserError, match=f"{name} (is missing|is not the file)|build them again"
    ):
        TokenizedPairs.open(tmp_path / "p")


def test_a_flipped_bit_and_a_newer_format_are_seen(tokenizer, tmp_path):
    TokenizedPairs.build(TEXTS[:20], tokenizer, tmp_path / "p")
    tokens, about = tmp_path / "p" / "src.tokens", tmp_path / "p" / "pairs.json"
    flipped = bytearray(tokens.read_bytes())
    flipped[7] ^= 1
    tokens.write_bytes(flipped)
    with pytest.raises(UserError, match="src.tokens is not the file that was written"):
        TokenizedPairs.open(tmp_path / "p")
    found = json.loads(about.read_text())
    (tmp_path / "p" / "manifest.json").unlink()
    with pytest.raises(UserError, match="manifest.json is missing"):
        TokenizedPairs.open(tmp_path / "p")
    found |= {"format": 1}
    about.write_text(json.dumps(found | {"src": found["src"] | {"dtype": "float16"}}))
    with pytest.raises(
        UserError, match="src.tokens has numbers of an unknown type, 'float16'"
    ):
        TokenizedPairs.open(tmp_path / "p")
    about.write_text(json.dumps(found | {"format": 3}))
    with pytest.raises(UserError, match="format 3, but this version reads formats 1"):
        TokenizedPairs.open(tmp_path / "p")


def test_changed_offsets_are_seen(tokenizer, tmp_path):
    TokenizedPairs.build(TEXTS[:20], tokenizer, tmp_path / "p")
    path = tmp_path / "p" / "src.offsets.npy"
    changed = bytearray(path.read_bytes())
    changed[-80] ^= 1
    path.write_bytes(changed)
    with pytest.raises(UserError, match="src.offsets.npy is not the file"):
        TokenizedPairs.open(tmp_path / "p")


def older(folder):
    """Make a folder one of format 1, whose hashes stood in pairs.json."""
    (folder / "manifest.json").unlink()
    about = json.loads((folder / "pairs.json").read_text()) | {"format": 1}
    for side in ("src", "tgt"):
        offsets = np.load(folder / f"{side}.offsets.npy")
        about[side] |= {
            "sha256": sha256_of(folder / f"{side}.tokens"),
            "offsets_sha256": hashlib.sha256(offsets.data).hexdigest(),
        }
    (folder / "pairs.json").write_text(json.dumps(about))


def test_a_folder_of_format_1_is_read_and_held(pairs, tokenizer, tmp_path):
    TokenizedPairs.build(TEXTS, tokenizer, tmp_path / "p")
    older(tmp_path / "p")
    assert (TokenizedPairs.open(tmp_path / "p").src_tokens == pairs.src_tokens).all()
    path = tmp_path / "p" / "tgt.tokens"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(UserError, match="tgt.tokens was cut short or changed"):
        TokenizedPairs.open(tmp_path / "p")


@pytest.mark.parametrize(
    "header", [b"{'descr': '<i8', 'shape': (", b"(" * 9000, b"\xff\xfe", b""]
)
def test_an_odd_header_of_offsets_is_one_error(tokenizer, tmp_path, header):
    TokenizedPairs.build(TEXTS[:20], tokenizer, tmp_path / "p")
    older(tmp_path / "p")
    path = tmp_path / "p" / "src.offsets.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(UserError, match="src.offsets.npy does not fit"):
        TokenizedPairs.open(tmp_path / "p")


def test_a_batch_of_nothing_is_refused(tokenizer):
    with pytest.raises(UserError, match="at least one pair"):
        collate(TokenizedPairs.build(TEXTS[:20], tokenizer), [])


def test_a_place_for_pairs_that_cannot_be_written(tokenizer, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "p"):
        with pytest.raises(UserError, match="can't be written"):
            TokenizedPairs.build(TEXTS[:20], tokenizer, place)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(
        UserError, match="p can't be written .*No space left.*: free some space"
    ):
        TokenizedPairs.build(TEXTS[:20], tokenizer, tmp_path / "p")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_long_pairs_are_dropped_and_counted(pairs, tokenizer):
    kept = TokenizedPairs.build(TEXTS, tokenizer, max_length=12)
    assert max(kept.src_lengths.max(), kept.tgt_lengths.max()) <= 12
    assert (
        kept.dropped
        == (np.maximum(pairs.src_lengths, pairs.tgt_lengths) > 12).sum()
        == len(pairs) - len(kept)
        > 0
    )
    with pytest.raises(
        UserError, match="no sentence pairs are left, 600 were longer than 1 tokens"
    ):
        TokenizedPairs.build(TEXTS, tokenizer, max_length=1)


def test_a_large_vocabulary_takes_wider_numbers(tokenizer):
    class Large(PairTokenizer):
        src_vocab_size = 70_000

    large = Large(tokenizer.source, tokenizer.target, "en", "de")
    found = TokenizedPairs.build(TEXTS[:3], large)
    assert (found.src_tokens.dtype, found.tgt_tokens.dtype) == (np.int32, np.uint16)


@pytest.mark.parametrize("max_tokens", [70, 500, 4096, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_batches_hold_every_pair_once_within_the_budget(max_tokens, seed):
    src, tgt = random_lengths(3000, seed)
    plan = token_batches(src, tgt, max_tokens, seed)
    assert sorted(np.concatenate(plan)) == list(range(3000)) and all(
        len(rows) for rows in plan
    )
    for rows in plan:
        assert (
            len(rows) * src[rows].max() <= max_tokens
            and len(rows) * tgt[rows].max() <= max_tokens
        )


def test_batches_are_as_few_as_a_plain_loop_makes():
    src, tgt = random_lengths(3000, 7)
    longer, count, widest, rows = np.sort(np.maximum(src, tgt)), 1, 0, 0
    for length in longer:
        if (rows + 1) * max(widest, length) > 1000:
            count, widest, rows = count + 1, 0, 0
        widest, rows = max(widest, length), rows + 1
    assert len(token_batches(src, tgt, 1000)) == count


def test_same_seed_and_epoch_same_plan_and_others_differ():
    src, tgt = random_lengths(1000, 1)
    first, again, seed, epoch = (
        token_batches(src, tgt, 500, *place)
        for place in ((3, 4), (3, 4), (4, 4), (3, 5))
    )
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    for other in (seed, epoch):
        assert {tuple(sorted(rows)) for rows in other} != {
            tuple(sorted(rows)) for rows in first
        }
        assert len(other) == len(first)


def test_a_sentence_beyond_the_budget_is_named():
    with pytest.raises(
        UserError, match=r"pair 2 has 90 tokens, more than the 80 .* raise max_tokens"
    ):
        token_batches(np.array([5, 6, 7]), np.array([5, 6, 90]), 80)
    with pytest.raises(UserError, match="no pairs"):
        token_batches(np.array([], int), np.array([], int), 80)


@needs_data
@pytest.mark.parametrize("moses", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_padding_on_multi30k_is_under_six_per_cent(moses):
    texts = list(load_corpus("multi30k", "train", "en", "de", DATA))
    tokenizer = train_tokenizer(texts, "en", "de", 10_000, moses=moses, lowercase=moses)
    pairs = TokenizedPairs.build(texts, tokenizer)
    lengths = pairs.src_lengths, pairs.tgt_lengths
    share = padding_share(*lengths, token_batches(*lengths, 4096))
    assert 0.02 < share < 0.06, share


def test_millions_of_pairs_are_planned_in_seconds():
    src, tgt = random_lengths(1_000_000, 0)
    plan = token_batches(src, tgt, 25_000)
    assert sum(map(len, plan)) == 1_000_000 and padding_share(src, tgt, plan) < 0.01


def test_collate_shifts_pads_and_counts(pairs):
    rows = np.array([3, 1, 4])
    batch = collate(pairs, rows)
    for i, row in enumerate(rows):
        src, tgt = (side.tolist() for side in pairs[row])
        n = len(tgt)
        assert batch.src[i].tolist() == src + [PAD] * (batch.src.shape[1] - len(src))
        assert batch.tgt_in[i].tolist() == [BOS, *tgt[:-1]] + [PAD] * (
            batch.tgt_in.shape[1] - n
        )
        assert (
            batch.tgt_out[i].tolist() == tgt + [PAD] * (batch.tgt_out.shape[1] - n)
            and tgt[-1] == EOS
        )
    assert batch.tokens == pairs.tgt_lengths[rows].sum() and len(batch) == 3
    assert batch.src.dtype == batch.tgt_in.dtype == batch.tgt_out.dtype == torch.int64
    assert (batch.tgt_out != PAD).any(0).all() and (batch.src != PAD).any(0).all()


def test_a_batch_goes_to_a_device_whole(pairs):
    batch = collate(pairs, np.array([3, 1, 4])).to("meta")
    assert batch.src.is_meta and batch.tgt_in.is_meta and batch.tgt_out.is_meta
    assert batch.pad_id == PAD and len(batch) == 3


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_parts_of_a_batch_are_the_batch(pairs, n):
    batch = collate(pairs, np.arange(3))
    parts = batch.split(n)
    assert len(parts) == n and sum(part.tokens for part in parts) == batch.tokens
    rows = [row for part in parts if part.tokens for row in part.tgt_out.tolist()]
    assert sorted(rows) == sorted(batch.tgt_out.tolist())
    for part in parts[3:]:
        assert len(part) == 1 and part.tokens == 0 and (part.src != PAD).any()


def test_stream_goes_on_from_any_place(pairs):
    whole = list(itertools.islice(batches(pairs, 512, seed=5), 90))
    for stop in (1, 30, 61):
        start = whole[stop - 1][0]
        for (place, a), (again, b) in zip(
            whole[stop:], batches(pairs, 512, seed=5, start=start), strict=False
        ):
            assert (
                place == again
                and torch.equal(a.src, b.src)
                and torch.equal(a.tgt_out, b.tgt_out)
            )
    per_epoch = len(token_batches(pairs.src_lengths, pairs.tgt_lengths, 512, 5, 0))
    assert whole[per_epoch - 1][0] == (1, 0) and whole[per_epoch - 2][0] == (
        0,
        per_epoch - 1,
    )


def measure(count: int, folder: Path) -> dict:
    command = [
        sys.executable,
        "-m",
        "benchmarks.scale.memory_5m_pairs",
        "--pairs",
        str(count),
        "--folder",
        str(folder),
    ]
    return json.loads(
        subprocess.run(
            command,
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )


def test_memory_hardly_grows_with_the_pairs(tmp_path):
    few, many = (
        measure(2_000, tmp_path),
        measure(60_000, tmp_path),
    )  # what PyTorch takes by itself differs by its build
    assert (
        many["pairs"] == 60_000
        and many["peak_gib"] - few["peak_gib"] < 0.15
        and not list(tmp_path.iterdir())
    )
    assert many["tokens"]["target_tokens"] == many["epoch"]["batched_tokens"]


@pytest.mark.slow
def test_five_million_pairs_need_less_than_four_gib(tmp_path):
    found = measure(5_000_000, tmp_path)
    assert (
        found["distinct_words"] > 2_000_000
        and found["vocabulary"]["vocabulary"] == 37_000
    )
    assert found["peak_gib"] < 4


def test_a_place_behind_the_end_of_its_epoch_is_refused(pairs):
    found = batches(pairs, 512, start=(3, 10_000))
    with pytest.raises(UserError, match=r"place \(3, 10000\) .*: epoch 3 has only"):
        next(found)
