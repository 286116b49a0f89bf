"""Tokenized sentence pairs, in memory or mapped from files."""

import io
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..files import check_regular, new_folder, read_json, write_json
from ..model.config import BOS, PAD
from .pair_tokenizer import PairTokenizer

SIDES = ("src", "tgt")


@dataclass(frozen=True, eq=False)
class TokenizedPairs:
    """Sentence pairs as ids in flat arrays; each ends in [eos], none starts with [bos].

    Offsets say where each sentence begins, and last where the last one ends. `dropped`
    counts the pairs that were left out as too long. A batch pads with `pad_id` and
    begins targets with `bos_id`.
    """

    src_tokens: np.ndarray
    src_offsets: np.ndarray
    tgt_tokens: np.ndarray
    tgt_offsets: np.ndarray
    dropped: int = 0
    pad_id: int = PAD
    bos_id: int = BOS

    def __len__(self) -> int:
        return len(self.src_offsets) - 1

    def __getitem__(self, i: int | np.integer) -> tuple[np.ndarray, np.ndarray]:
        i = range(len(self))[i]
        src = self.src_tokens[self.src_offsets[i] : self.src_offsets[i + 1]]
        tgt = self.tgt_tokens[self.tgt_offsets[i] : self.tgt_offsets[i + 1]]
        return src, tgt

    @property
    def src_lengths(self) -> np.ndarray:
        """Tokens of each source sentence, [eos] counted."""
        return np.diff(self.src_offsets)

    @property
    def tgt_lengths(self) -> np.ndarray:
        """Tokens of each target sentence, [eos] counted."""
        return np.diff(self.tgt_offsets)

    @classmethod
    def build(
        cls,
        pairs: Iterable[tuple[str, str]],
        tokenizer: PairTokenizer,
        folder: str | Path | None = None,
        max_length: int | None = None,
    ) -> "TokenizedPairs":
        """Tokenize pairs as they stream by, into memory or into files of `folder` that
        are then memory-mapped.

        Raises: UserError if no pairs are left, or the folder is there already or can't
        be written.
        """
        if folder is not None:
            folder = Path(folder).resolve()  # the working directory may be replaced
            _write_folder(pairs, tokenizer, folder, max_length)
            return cls.open(folder)
        files = io.BytesIO(), io.BytesIO()
        offsets, dropped = _tokenize(pairs, tokenizer, files, max_length)
        src, tgt = (
            np.frombuffer(file.getbuffer(), dtype)
            for file, dtype in zip(files, _dtypes(tokenizer), strict=True)
        )
        return cls(src, offsets[0], tgt, offsets[1], dropped)

    @classmethod
    def open(cls, folder: str | Path) -> "TokenizedPairs":
        """Memory-map what `build` wrote.

        Raises: UserError for a folder that is missing or damaged.
        """
        folder = Path(folder)
        description = read_json(folder / "pairs.json")
        try:
            src, tgt = (
                _read_side(folder, side, description[side]["dtype"]) for side in SIDES
            )
            return cls(*src, *tgt, int(description["dropped"]))
        except (OSError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise UserError(
                f"{folder}: no readable tokenized pairs ({error}); build them again"
            ) from None


def _dtypes(tokenizer: PairTokenizer) -> list[np.dtype]:
    """The narrowest numbers for the ids of each side."""
    sizes = tokenizer.src_vocab_size, tokenizer.tgt_vocab_size
    return [np.dtype(np.uint16 if size <= 2**16 else np.int32) for size in sizes]


def _tokenize(
    pairs: Iterable[tuple[str, str]],
    tokenizer: PairTokenizer,
    files: Sequence[io.BufferedIOBase],
    max_length: int | None,
) -> tuple[list[np.ndarray], int]:
    """Write the ids of each side to its file, ten thousand pairs at a time; only their
    lengths stay in memory. (offsets of each side, how many were dropped as too long)

    Raises: UserError if no pairs are left.
    """
    stream, dropped, lengths = iter(pairs), 0, (array("i"), array("i"))
    while chunk := list(islice(stream, 10_000)):
        sources, targets = zip(*chunk, strict=True)
        src = tokenizer.encode_source(list(sources))
        tgt = tokenizer.encode_target(list(targets))
        rows = zip(src, tgt, strict=True)
        kept = [r for r in rows if max_length is None or max(map(len, r)) <= max_length]
        dropped += len(chunk) - len(kept)
        columns = [[pair[i] for pair in kept] for i in (0, 1)]
        sides = zip(columns, files, _dtypes(tokenizer), lengths, strict=True)
        for side, file, dtype, counts in sides:
            file.write(np.fromiter(chain.from_iterable(side), dtype).tobytes())
            counts.extend(map(len, side))
    if not lengths[0]:
        reason = f"are left, {dropped} were longer than {max_length} tokens"
        raise UserError(
            f"no sentence pairs {reason if dropped else 'came: check the source'}"
        )
    return [np.cumsum([0, *counts], dtype=np.int64) for counts in lengths], dropped


def _write_folder(
    pairs: Iterable[tuple[str, str]],
    tokenizer: PairTokenizer,
    folder: Path,
    max_length: int | None,
) -> None:
    """Write tokenized pairs into a folder that appears only when it is complete."""
    with new_folder(folder, "TokenizedPairs.build") as draft:
        paths = draft / "src.tokens", draft / "tgt.tokens"
        with paths[0].open("wb") as src, paths[1].open("wb") as tgt:
            offsets, dropped = _tokenize(pairs, tokenizer, (src, tgt), max_length)
        description: dict[str, Any] = {"format": 2, "pairs": len(offsets[0]) - 1}
        description["dropped"] = dropped
        dtypes = _dtypes(tokenizer)
        for side, starts, dtype in zip(SIDES, offsets, dtypes, strict=True):
            np.save(draft / f"{side}.offsets.npy", starts)
            description[side] = {"dtype": dtype.name}
        write_json(draft / "pairs.json", description)


def _read_side(folder: Path, side: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """The memory-mapped tokens and offsets of one side."""
    path, offsets_path = folder / f"{side}.tokens", folder / f"{side}.offsets.npy"
    if dtype not in ("uint16", "int32"):
        raise UserError(f"{path.name} has numbers of an unknown type, {dtype!r}")
    check_regular(path)
    check_regular(offsets_path)
    tokens = np.memmap(path, dtype, "r")
    try:
        offsets = np.load(offsets_path, mmap_mode="r", allow_pickle=False)
        complete = offsets[0] == 0 and offsets[-1] == len(tokens)
        fits = bool(complete and offsets.ndim == 1 and (np.diff(offsets) > 0).all())
    except Exception:  # the header of an .npy file is read as Python
        fits = False
    if not fits:
        raise UserError(f"{offsets_path.name} does not fit {path.name}")
    return tokens, offsets
