"""Tiny random checkpoints, as `transformers` writes them, and their faults."""

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.text_tokenizer import byte_pairs

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")
sentencepiece = pytest.importorskip("sentencepiece")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

PAIRS = phrasebook("en", "de", "train", 400)
TEXT = "the cat sat on the mat, and the dog sat beside the cat. " * 3
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ","]
WORDS += "the cat sat on mat and dog beside ##s".split()


def jitter(model: torch.nn.Module, scale: float) -> None:
    """Move every parameter, biases and norms too, so that a mix-up shows."""
    bias = getattr(model, "final_logits_bias", None)
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), ("bias", bias)]:
            if tensor is not None and "embed_positions" not in name:
                tensor.add_(scale * torch.randn_like(tensor))


def sentence_pieces(folder: Path, **options) -> list[Path]:
    """A SentencePiece model for each language of the phrasebook."""
    paths = [folder / "source.spm", folder / "target.spm"]
    for side, path in enumerate(paths):
        with path.open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter([pair[side] for pair in PAIRS]),
                model_writer=file,
                minloglevel=2,
                **dict(vocab_size=160, hard_vocab_limit=False) | options,
            )
    return paths


def table_of_ids(paths: list[Path]) -> dict[str, int]:
    """OPUS-MT's order: end, unknown, codes of languages, pieces, padding last."""
    sides = [sentencepiece.SentencePieceProcessor(model_file=str(p)) for p in paths]
    pieces = dict.fromkeys(
        side.id_to_piece(i) for side in sides for i in range(3, side.get_piece_size())
    )
    names = ["</s>", "<unk>", ">>deu<<", ">>fra<<", *pieces, "<pad>"]
    return {name: i for i, name in enumerate(names)}


def marian_tokenizer(folder: Path, separate: bool, **pieces):
    """Write its files; with separate tables both are equally long, as OPUS-MT's are."""
    paths = sentence_pieces(folder, **pieces)
    tables = [table_of_ids([p]) for p in paths] if separate else [table_of_ids(paths)]
    if separate:
        short, long = sorted(tables, key=len)
        pad = short.pop("<pad>")
        short |= {f"filler{i}": i for i in range(pad, len(long) - 1)}
        short["<pad>"] = len(long) - 1
    files = [folder / "vocab.json", folder / "target_vocab.json"]
    for path, table in zip(files, tables, strict=False):
        path.write_text(json.dumps(table), encoding="utf-8")
    tokenizer = transformers.MarianTokenizer(
        *map(str, [*paths, files[0]]),
        str(files[1]) if separate else None,
        source_lang="en",
        target_lang="de",
        separate_vocabs=separate,
    )
    tokenizer.save_pretrained(folder)
    return tokenizer, len(tables[0])


def make_marian(folder: Path, separate: bool = False, pieces=None, **settings):
    """Write a Marian directory; its model and its tokenizer, whose SentencePiece models
    are trained with the options `pieces`.
    """
    folder.mkdir()
    tokenizer, size = marian_tokenizer(folder, separate, **pieces or {})
    sizes = dict(encoder_layers=2, decoder_layers=2, max_position_embeddings=40)
    for side in ("encoder", "decoder"):
        sizes |= {f"{side}_attention_heads": 4, f"{side}_ffn_dim": 48}
    ids = dict(pad_token_id=size - 1, decoder_start_token_id=size - 1)
    torch.manual_seed(3)
    config = transformers.MarianConfig(
        **dict(vocab_size=size, decoder_vocab_size=size, d_model=32, **ids)
        | dict(activation_function="swish", scale_embedding=True, **sizes)
        | dict(share_encoder_decoder_embeddings=not separate)
        | settings,
        attn_implementation="eager",
    )
    model = transformers.MarianMTModel(config).eval()
    jitter(model, 0.2)
    model.save_pretrained(folder)
    return model, tokenizer


def make_gpt2(folder: Path):
    """Write a GPT-2 with byte pairs; its model."""
    text = byte_pairs(TEXT, 280)
    torch.manual_seed(0)
    sizes = dict(n_embd=32, n_layer=3, n_head=4, n_positions=40, vocab_size=text.size)
    config = transformers.GPT2Config(**sizes, initializer_range=0.3)
    model = transformers.GPT2LMHeadModel(config).eval()
    jitter(model, 0.05)
    model.save_pretrained(folder)
    text.save(folder)
    return model


def make_bert(folder: Path):
    """Write a BERT with a list of words; its model."""
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4)
    more = dict(intermediate_size=48, vocab_size=len(WORDS), initializer_range=0.3)
    config = transformers.BertConfig(**sizes, **more, max_position_embeddings=40)
    model = transformers.BertForMaskedLM(config).eval()
    jitter(model, 0.05)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    return model


# -- faults: functions that spoil a folder ---------------------------------------------


def change(name: str = "config.json", **values):
    """Set fields of a JSON file; None takes one away."""

    def spoil(folder: Path) -> None:
        found = json.loads((folder / name).read_text()) | values
        kept = {key: value for key, value in found.items() if value is not None}
        (folder / name).write_text(json.dumps(kept))

    return spoil


def change_tensors(edit):
    """Write the tensors that `edit` makes of those of model.safetensors."""

    def spoil(folder: Path) -> None:
        path = folder / "model.safetensors"
        save_file(edit(load_file(path)), path, {"format": "pt"})

    return spoil


def with_tensor(name: str, tensor: torch.Tensor):
    """Replace or add a tensor."""
    return change_tensors(lambda tensors: tensors | {name: tensor})


def without_tensor(ending: str):
    """Take the tensors away whose names end so."""
    return change_tensors(
        lambda found: {k: v for k, v in found.items() if not k.endswith(ending)}
    )


def remove(name: str):
    """Delete a file."""
    return lambda folder: (folder / name).unlink()


def write(name: str, data: bytes):
    """Put other bytes into a file."""
    return lambda folder: (folder / name).write_bytes(data)


def truncate(name: str):
    """Cut the end off a file."""
    return lambda folder: (folder / name).write_bytes(
        (folder / name).read_bytes()[:-99]
    )


def as_pickle(model: torch.nn.Module):
    """Weights as older repositories have them."""

    def spoil(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")

    return spoil
