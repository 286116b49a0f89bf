"""A doctor for data, models and runs: measures, and says what is likely wrong."""

from collections.abc import Iterable
from pathlib import Path

from ..data.parallel_files import ParallelFiles, parallel_prefix
from ..data.phrasebook import phrasebook
from ..data.phrasebook_grammar import LANGUAGES
from ..data.text_files import read_lines
from ..data.tokenized_pairs import TokenizedPairs
from ..errors import UserError, check_kind
from ..files import read_json
from ..training.log import Log
from .diagnosis import Diagnosis
from .model_measures import model_measures
from .run_measures import leak, log_measures
from .text_measures import Sides, text_measures
from .translator import Translator

Pairs = str | Path | Iterable[tuple[str, str]]
ASKED = 32  # pairs that a model is measured on


def doctor(
    what: Pairs | Translator,
    src: str | None = None,
    tgt: str | None = None,
    *,
    valid: Pairs | None = None,
    device: str | None = None,
) -> Diagnosis:
    """Measures of a run, sentence pairs or a model, and what is likely wrong.

    With languages `src` and `tgt` it is pairs: a list, parallel files, their common
    prefix, or a folder of train, valid and test. Else it is the name of a run or a
    model, or a translator. A model is measured on pairs of its languages, `valid` or
    else the phrasebook's; a run on its own.
    Raises: UserError for what can't be read, or doesn't go together.
    """
    if isinstance(what, Translator):
        return _model(what, valid)
    check_kind("what", what, str | Path | Iterable, "a run, a translator, or pairs")
    if src and tgt:
        return _data(what, (src, tgt), valid)
    name = what if isinstance(what, str | Path) else ""
    path = Path(name)
    own = [*path.parent.glob(f"{path.name}.*"), *path.glob("train.*")]
    if src or tgt or not name or own:
        raise UserError("pairs need both languages: src and tgt (--src and --tgt)")
    translator = Translator.from_pretrained(name, device=device, engine="plain")
    if valid is None and (path / "run.json").is_file():
        return _run(path, translator)
    return _model(translator, valid)


def _sides(pairs: Pairs, langs: tuple[str, str]) -> Sides:
    """Both sides as they are, blank and uneven lines included."""
    if isinstance(pairs, str | Path):
        pairs = parallel_prefix(pairs, *langs)
    if isinstance(pairs, ParallelFiles):
        return [*read_lines(pairs.src_path)], [*read_lines(pairs.tgt_path)]
    sides = [*zip(*pairs, strict=True)]
    if not sides:
        raise UserError("there are no pairs to measure")
    return sides[0], sides[1]


def _data(what: Pairs, langs: tuple[str, str], valid: Pairs | None) -> Diagnosis:
    """That of sentence pairs."""
    subject = str(what) if isinstance(what, str | Path) else "the pairs"
    held = {"valid": valid}
    if isinstance(what, str | Path) and Path(what).is_dir():
        folder, what = Path(what), Path(what, "train")
        splits = (name for name in ("valid", "test") if [*folder.glob(f"{name}.*")])
        held |= {name: folder / name for name in splits}
    sides = {name: _sides(each, langs) for name, each in held.items() if each}
    return Diagnosis(subject, [*text_measures(_sides(what, langs), langs, sides)])


def _run(folder: Path, translator: Translator) -> Diagnosis:
    """That of a run: its data, its log, and its model on its validation pairs."""
    text, training = translator.tokenizer, read_json(folder / "run.json")["training"]
    train, valid = (
        TokenizedPairs.open(folder / "data" / name) for name in ("train", "valid")
    )
    rows = [valid[i] for i in range(0, len(valid), len(valid) // ASKED + 1)]
    src, tgt = ([side.tolist() for side in sides] for sides in zip(*rows, strict=True))
    records = Log(folder / "log.jsonl").records()
    measures = [
        leak(train, valid),
        *log_measures(records, text.tgt_vocab_size, training["label_smoothing"]),
        *model_measures(translator.model, src, tgt, text.unk_id),
    ]
    return Diagnosis(str(folder), measures)


def _model(translator: Translator, valid: Pairs | None) -> Diagnosis:
    """That of a model."""
    text = translator.tokenizer
    langs = text.src_lang, text.tgt_lang
    if valid is None:
        if not {*langs} <= {*LANGUAGES}:
            raise UserError("the phrasebook lacks its languages: name pairs, --valid")
        valid = phrasebook(*langs, "val", ASKED)
    src, tgt = ([*side[:ASKED]] for side in _sides(valid, langs))
    ids = text.encode_source(src), text.encode_target(tgt)
    measures = model_measures(translator.model, *ids, text.unk_id)
    return Diagnosis(translator.source, [*measures])
