"""Translators of ours as packages that Argos Translate installs."""

import json
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from babel import Locale
from tokenizers import Tokenizer

from ..data.pair_tokenizer import PairTokenizer, empty_tokenizer
from ..data.tokenizer_files import SPECIAL
from ..errors import UserError
from ..files import write_file
from ..model.config import UNK
from ..model.transformer import Transformer
from .ctranslate2 import ctranslate2_spec
from .export_folder import readme
from .extras import needed
from .marian_tokenizer import MarianTokenizer


def sentencepiece_model(tokenizer: Tokenizer) -> bytes:
    """A SentencePiece model that cuts as this byte-pair tokenizer does.

    Tokens that no merge makes are unused: SentencePiece cuts them into their parts.
    Raises: UserError for a tokenizer with other rules than a plain pair's.
    """
    ours, plain = (json.loads(each.to_str()) for each in (tokenizer, empty_tokenizer()))
    if any(ours[part] != plain[part] for part in ("normalizer", "pre_tokenizer")):
        raise UserError(
            "Argos Translate knows neither Moses' rules nor lower case: export to "
            "ctranslate2, or train with moses=false and lowercase=false"
        )
    needed("google.protobuf")  # which SentencePiece's own file format wants
    model = needed("sentencepiece.sentencepiece_model_pb2").ModelProto()
    ranks = {"".join(pair): i for i, pair in enumerate(ours["model"]["merges"])}
    vocab, piece = ours["model"]["vocab"], model.SentencePiece
    for token in sorted(vocab, key=vocab.__getitem__):
        merged = len(token) == 1 or token in ranks
        form = piece.NORMAL if merged else piece.UNUSED
        if vocab[token] in SPECIAL.values():
            form = piece.UNKNOWN if vocab[token] == UNK else piece.CONTROL
        score = -ranks.get(token, len(ranks))
        model.pieces.add(piece=token, score=score, type=form)
    model.trainer_spec.model_type = model.trainer_spec.BPE
    for name, i in SPECIAL.items():
        setattr(model.trainer_spec, f"{name.strip('[]')}_id", i)
        setattr(model.trainer_spec, f"{name.strip('[]')}_piece", name)
    model.normalizer_spec.name = "identity"
    return model.SerializeToString()


def source_model(tokenizer: PairTokenizer) -> bytes:
    """The SentencePiece model of a pair's source. Raises: UserError for one that Argos
    Translate can't run.
    """
    if not isinstance(tokenizer, MarianTokenizer):
        return sentencepiece_model(tokenizer.source)
    if tokenizer.source.codes:
        raise UserError(
            "this model wants a code of the target language before each text, which "
            "Argos Translate can't put there: export to ctranslate2"
        )
    return tokenizer.source.model


def metadata(tokenizer: PairTokenizer) -> dict[str, Any]:
    """The content of metadata.json, with the languages' names in English."""
    found: dict[str, Any] = {"package_version": "1.0", "argos_version": "1.9"}
    for side, code in (("from", tokenizer.src_lang), ("to", tokenizer.tgt_lang)):
        name = Locale("en").languages.get(code, code)
        found |= {f"{side}_code": code, f"{side}_name": name}
    return found


def export_argos(
    model: Transformer, tokenizer: PairTokenizer, path: str | Path
) -> None:
    """Write an .argosmodel, its weights in 8 bits.

    Raises: UserError for a tokenizer that Argos Translate can't run, heads above
    d_model / h, a file that is there already or ends otherwise, or when ctranslate2 or
    sentencepiece is not installed.
    """
    path = Path(path)
    if path.exists():
        raise UserError(f"{path} exists already: choose another name")
    if path.suffix != ".argosmodel":
        raise UserError(f"{path} must end in .argosmodel, by which Argos knows it")
    cut = source_model(tokenizer)
    spec = ctranslate2_spec(model, tokenizer, "int8")
    spec.config.add_source_eos = True  # Argos Translate hands over the text's own
    text = f"{readme('argos', model, tokenizer)}\n{tokenizer.card}"
    files = {"sentencepiece.model": cut, "README.md": text.encode()}
    files["metadata.json"] = json.dumps(metadata(tokenizer), indent=2).encode()
    with TemporaryDirectory() as folder:
        spec.save(folder)
        for each in sorted(Path(folder).iterdir()):
            files[f"model/{each.name}"] = each.read_bytes()
    top, packed = f"translate-{tokenizer.src_lang}_{tokenizer.tgt_lang}", BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"{top}/{name}", data)
    write_file(path, packed.getvalue())
