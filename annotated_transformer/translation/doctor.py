"""A doctor for data, models and runs: measures, and says what is likely wrong."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..data.parallel_files import parallel_prefix
from ..data.phrasebook import phrasebook
from ..data.phrasebook_grammar import LANGUAGES
from ..data.text_files import read_lines
from ..data.tokenized_pairs import TokenizedPairs
from ..errors import UserError
from ..files import read_json
from ..training.log import Log
from .diagnosis import Diagnosis
from .model_measures import model_measures
from .run_measures import floor_note, log_measures, pairs_measures
from .text_measures import Sides, text_measures
from .translator import Translator

Pairs = str | Path | Iterable[tuple[str, str]]
ASKED = 32  # pairs that a model is measured on
SPLITS = {"valid": ("valid", "val", "dev"), "test": ("test",)}  # in a folder


def doctor(
    what: Pairs | Translator,
    src: str | None = None,
    tgt: str | None = None,
    *,
    valid: Pairs | None = None,
    test: Pairs | None = None,
    on: Pairs | None = None,
    quick: bool = False,
    device: str | None = None,
) -> Diagnosis:
    """Measures of a run's folder, of sentence pairs or of a model, and what is likely
    wrong.

    With languages `src` and `tgt` it is pairs: a list, the common prefix of two files,
    or a folder with train, valid and test; `quick` passes over near copies. Else it is
    the name of a run or a model, or a translator, measured `on` pairs of its languages:
    a run's own validation pairs, or the phrasebook's, unless they are named.
    Raises: UserError for what can't be read, or doesn't go together.
    """
    if src or tgt:
        if not (src and tgt):
            raise UserError("sentence pairs need both languages: --src and --tgt")
        if on is not None or isinstance(what, Translator):
            raise UserError("a model brings its languages: leave out --src and --tgt")
        return _data(what, (src, tgt), {"valid": valid, "test": test}, quick)
    if valid is not None or test is not None or not isinstance(what, NAMES):
        raise UserError("sentence pairs need both languages: --src and --tgt")
    translator = _opened(what, device)
    if isinstance(what, str | Path) and (Path(what) / "run.json").is_file():
        return _run(Path(what), translator)
    return _model(translator, on)


NAMES = str | Path | Translator


def _opened(what: Any, device: str | None) -> Translator:
    """A translator. Raises: UserError for files that need their languages."""
    if isinstance(what, Translator):
        return what
    path = Path(what)
    if not path.is_dir() and any(path.parent.glob(f"{path.name}.*")):
        raise UserError(f"{what} is the prefix of files: add --src and --tgt")
    return Translator.from_pretrained(what, device=device, engine="plain")


def _sides(pairs: Pairs, langs: tuple[str, str]) -> Sides:
    """Both sides as they are, blank and uneven lines included."""
    if isinstance(pairs, str | Path):
        files = parallel_prefix(pairs, *langs)
        return [*read_lines(files.src_path)], [*read_lines(files.tgt_path)]
    both = [*pairs]
    return [src for src, _ in both], [tgt for _, tgt in both]


def _data(
    what: Pairs, langs: tuple[str, str], named: dict[str, Pairs | None], quick: bool
) -> Diagnosis:
    """That of sentence pairs."""
    if isinstance(what, str | Path) and Path(what).is_dir():
        folder, what = Path(what), Path(what, "train")
        for split, names in SPLITS.items():
            there = (folder / n for n in names if [*folder.glob(f"{n}.{langs[0]}*")])
            named[split] = named[split] or next(there, None)
    held = {name: _sides(each, langs) for name, each in named.items() if each}
    subject = str(what) if isinstance(what, str | Path) else "the pairs"
    train = _sides(what, langs)
    return Diagnosis(subject, [*text_measures(train, langs, held, near=not quick)])


def _run(folder: Path, translator: Translator) -> Diagnosis:
    """That of a run: its data, its log, and its model on its validation pairs."""
    text, smoothing = translator.tokenizer, _smoothing(folder)
    train, valid = (TokenizedPairs.open(folder / "data" / n) for n in SIDES)
    records = [*Log(folder / "log.jsonl").records()]
    each = max(1, len(valid) // ASKED)
    rows = [valid[i] for i in range(0, len(valid), each)][:ASKED]
    src, tgt = ([side.tolist() for side in sides] for sides in zip(*rows, strict=True))
    measures = [
        *pairs_measures(train, valid, text.shares_vocabulary),
        *log_measures(records, text.tgt_vocab_size),
        *model_measures(translator.model, src, tgt, text.unk_id),
    ]
    note = floor_note(records, text.tgt_vocab_size, smoothing)
    return Diagnosis(str(folder), measures, [note] if note else [])


SIDES = ("train", "valid")


def _smoothing(folder: Path) -> float:
    """The label smoothing of a run, by its record."""
    return float(read_json(folder / "run.json")["training"]["label_smoothing"])


def _model(translator: Translator, on: Pairs | None) -> Diagnosis:
    """That of a model."""
    text = translator.tokenizer
    langs = text.src_lang, text.tgt_lang
    if on is None:
        if not {*langs} <= {*LANGUAGES}:
            known = " to ".join(langs)
            raise UserError(f"no sentences of ours are {known}: name yours by --on")
        on = phrasebook(*langs, "val", ASKED)
    src, tgt = _sides(on, langs)
    ids = text.encode_source([*src[:ASKED]]), text.encode_target([*tgt[:ASKED]])
    measures = [*model_measures(translator.model, *ids, text.unk_id)]
    return Diagnosis(translator.source, measures)
