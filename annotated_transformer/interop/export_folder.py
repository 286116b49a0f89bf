"""A folder for another program: whole or not at all, with its tokenizer and a note."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tokenizers import Regex, Tokenizer, normalizers

from ..data.pair_tokenizer import PairTokenizer
from ..files import new_folder
from ..model.transformer import Transformer
from .marian_tokenizer import MarianTokenizer

PAGES = {
    "marian": "after/other_weights",
    "ctranslate2": "interop/serve",
    "argos": "interop/serve",
    "onnx": "interop/serve",
}
BOOK = "https://annotated-transformer.github.io/annotated-transformer"


@contextmanager
def exported_folder(
    folder: str | Path, form: str, model: Transformer, tokenizer: PairTokenizer
) -> Iterator[Path]:
    """A draft for the files of a format, which gets a tokenizer and a README.md too.

    Raises: UserError as `new_folder`.
    """
    with new_folder(folder, f"export_{form}") as draft:
        write_tokenizer(draft, tokenizer)
        text = readme(form, model, tokenizer)
        (draft / "README.md").write_text(text, encoding="utf-8")
        yield draft


def write_tokenizer(folder: Path, tokenizer: PairTokenizer) -> None:
    """Write a tokenizer's own files; those of byte pairs need nothing before them."""
    if not isinstance(tokenizer, MarianTokenizer):
        source = self_contained(tokenizer.source)
        target = source if tokenizer.joint else self_contained(tokenizer.target)
        tokenizer = replace(tokenizer, source=source, target=target)
    tokenizer.save(folder)


def self_contained(tokenizer: Tokenizer) -> Tokenizer:
    """A copy that makes runs of white space one space, as `Translator` does."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    spaces = [normalizers.Replace(Regex(r"[\s\x1c-\x1f]+"), " "), normalizers.Strip()]
    own = [copy.normalizer] if copy.normalizer else []
    copy.normalizer = normalizers.Sequence([*spaces, *own])
    return copy


def readme(form: str, model: Transformer, tokenizer: PairTokenizer) -> str:
    """What to know about an exported folder, in Markdown."""
    config, name = model.config, tokenizer.target.id_to_token
    barred = " and ".join(f"`{name(i)}`" for i in {config.pad_id, config.bos_id})
    notes = [
        f"{BOOK}/{PAGES[form]}.html shows how to use this folder.",
        f"Sources and outputs have at most {config.max_length} tokens.",
        f"A search never writes {barred}.",
        "Characters that the model never saw are unknown, without an error.",
    ]
    if tokenizer.moses:
        case = "in lower case, " if tokenizer.lowercase else ""
        notes.append(
            f"Text goes in and comes out {case}cut by Moses' rules: moses_tokenize "
            "before and moses_detokenize after, from "
            "annotated_transformer.data.pair_tokenizer."
        )
    if tokenizer.normalize:
        notes.append(
            "The model expects straight quotes, no text in capitals, no heading, and "
            "U+FFFC for an address or a telephone number, to be put back where it "
            "writes [unk]: annotated_transformer.data.normalization.normalize_text "
            "sees to the source."
        )
    title = f"# {tokenizer.src_lang} to {tokenizer.tgt_lang}: {form}\n\n"
    return title + "".join(f"- {note}\n" for note in notes)
