"""A small folder of each kind that this package reads, and a question to each.

No measurement of its own: `python -m benchmarks.promises` and the tests use it.
"""

import hashlib
import shutil
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from annotated_transformer import load
from annotated_transformer.after.classifier_parts import ClassifierConfig
from annotated_transformer.after.forecasting import Scale
from annotated_transformer.after.language_model import (
    LanguageModel,
    LanguageModelConfig,
)
from annotated_transformer.after.masked_language_model import (
    MaskedLanguageModel,
    MaskedLanguageModelConfig,
)
from annotated_transformer.after.masked_texts import MASK, mask_tokenizer
from annotated_transformer.after.series import SeriesConfig, SeriesTransformer
from annotated_transformer.after.text_classification import new_classifier
from annotated_transformer.after.vision import VisionConfig, VisionTransformer
from annotated_transformer.before.recurrent_model import RecurrentModel
from annotated_transformer.data.pair_tokenizer import PairTokenizer
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.series import Series
from annotated_transformer.data.text_tokenizer import TextTokenizer, byte_pairs
from annotated_transformer.data.tokenized_pairs import TokenizedPairs
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.files import fingerprint, write_json
from annotated_transformer.interop.bert import Bert, BertConfig, BertFiller
from annotated_transformer.interop.gpt2 import GPT2, GPT2Config, GPT2Generator
from annotated_transformer.interop.marian import (
    MarianConfig,
    MarianTransformer,
    import_marian,
)
from annotated_transformer.interop.marian_export import marian_config
from annotated_transformer.interop.marian_weights import marian_weights
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import (
    adam_moments,
    checkpoints,
    load_checkpoint,
    save_model,
    write_checkpoint,
)
from annotated_transformer.training.recipes import Recipe, recipe
from annotated_transformer.training.run import fit
from annotated_transformer.training.schedule import adam
from annotated_transformer.translation.recurrent_translator import RecurrentConfig
from annotated_transformer.translation.task import prepare

PAIRS = phrasebook("en", "de", "train", 300)
SIZES: dict[str, Any] = dict(N=1, d_model=16, d_ff=16, h=2, d_k=8, d_v=8, max_length=32)
QUICK = SearchOptions(beam_size=2, max_length=5)
TEXT = "the cat sat on the mat, and the dog sat beside the cat. " * 3
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] . , the cat sat on mat and dog beside ##s"


@lru_cache
def tokenizer() -> PairTokenizer:
    """A vocabulary of the phrasebook."""
    return train_tokenizer(PAIRS, "en", "de", 200)


def model(seed: int = 0) -> Transformer:
    """A tiny Transformer of random weights."""
    torch.manual_seed(seed)
    size = tokenizer().src_vocab_size
    return Transformer(TransformerConfig(size, size, **SIZES))


def digest(weights: Any) -> str:
    """A hash of some tensors."""
    found = hashlib.sha256()
    for each in weights:
        found.update(each.detach().contiguous().numpy().tobytes())
    return found.hexdigest()


# -- translators -----------------------------------------------------------------------


def trained(folder: Path) -> None:
    """A model folder."""
    save_model(folder, model(), tokenizer())


def recurrent(folder: Path) -> None:
    """The translator of 2015."""
    torch.manual_seed(0)
    size = tokenizer().src_vocab_size
    config = RecurrentConfig(size, size, d_model=16, max_length=32)
    save_model(folder, RecurrentModel(config), tokenizer())


def marian(folder: Path) -> None:
    """A Marian directory, as the Hub has them."""
    import sentencepiece
    from safetensors.torch import save_file

    folder.mkdir()
    names: dict[str, None] = {}
    for side, name in enumerate(("source.spm", "target.spm")):
        with (folder / name).open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter([pair[side] for pair in PAIRS]),
                model_writer=file,
                vocab_size=120,
                hard_vocab_limit=False,
                minloglevel=2,
            )
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / name))
        names |= {pieces.id_to_piece(i): None for i in range(3, len(pieces))}
    table = {name: i for i, name in enumerate(["</s>", "<unk>", *names, "<pad>"])}
    write_json(folder / "vocab.json", table)
    size, pad = len(table), len(table) - 1
    ids = dict(pad_id=pad, bos_id=pad, eos_id=0)
    torch.manual_seed(0)
    config = MarianConfig(size, size, **SIZES, **ids)
    save_file(marian_weights(MarianTransformer(config)), folder / "model.safetensors")
    write_json(folder / "config.json", {"model_type": "marian"} | marian_config(config))
    write_json(folder / "tokenizer_config.json", {"source_lang": "en"})


def imported(folder: Path) -> None:
    """A Marian directory, imported."""
    marian(folder.with_name("marian"))
    import_marian(folder.with_name("marian"), folder)
    shutil.rmtree(folder.with_name("marian"))


def translate(folder: Path) -> Any:
    """Two translations, and how probable one is."""
    translator = load(folder, device="cpu")
    found = translator.translate(["the third of March", "two hours ago"], QUICK)
    return found, translator.score("two hours", "zwei Stunden").total


# -- machines of other kinds -----------------------------------------------------------


def classifier(folder: Path) -> None:
    """A classifier of texts."""
    config = ClassifierConfig(N=1, d_model=16, d_ff=16, h=2, vocab_size=100)
    new_classifier([english for english, _ in PAIRS], config).save_pretrained(folder)


def classify(folder: Path) -> Any:
    """The probability of each class."""
    return load(folder, device="cpu").probabilities(["two hours", "March"]).tolist()


def language_model(folder: Path) -> None:
    """A language model on byte pairs."""
    text = byte_pairs(TEXT, 280)
    sizes = dict(N=1, d_model=16, d_ff=16, h=2, max_length=32, vocab_size=text.size)
    torch.manual_seed(0)
    save_model(folder, LanguageModel(LanguageModelConfig(**sizes)), text)


def measure(folder: Path) -> Any:
    """What a text costs a writer, and a few tokens of its own."""
    writer = load(folder, device="cpu")
    cost = writer.measure("the dog sat on the cat")
    return cost, writer.generate("the", 5, seed=1)


def masked(folder: Path) -> None:
    """A masked language model."""
    torch.manual_seed(0)
    text = mask_tokenizer([english for english, _ in PAIRS], 100)
    sizes = dict(N=1, d_model=16, d_ff=16, h=2, max_length=32)
    config = MaskedLanguageModelConfig(**sizes, vocab_size=text.get_vocab_size())
    save_model(folder, MaskedLanguageModel(config), TextTokenizer(text))


def fill_ours(folder: Path) -> Any:
    """What may stand in a gap."""
    return load(folder, device="cpu").fill(f"the third of {MASK}", 3)


def vision(folder: Path) -> None:
    """A classifier of images."""
    torch.manual_seed(0)
    sizes = dict(N=1, d_model=16, d_ff=16, h=2, height=6, width=8, patch=4, classes=3)
    save_model(folder, VisionTransformer(VisionConfig(**sizes)), None)


def see(folder: Path) -> Any:
    """The probability of each class of an image."""
    image = torch.arange(48, dtype=torch.uint8).view(1, 6, 8)
    return load(folder, device="cpu").probabilities(image).tolist()


def series(folder: Path) -> None:
    """A forecaster."""
    torch.manual_seed(0)
    sizes = dict(N=1, d_model=16, d_ff=16, h=2, context=8, patch=4, horizon=4)
    scale = Scale(("a", "b"), (1.0, 2.0), (3.0, 4.0))
    save_model(folder, SeriesTransformer(SeriesConfig(**sizes)), scale)


def forecast(folder: Path) -> Any:
    """What follows ten steps."""
    values = torch.arange(20.0).view(10, 2)
    found = Series(("a", "b"), ("2020-01-01",) * 10, values)
    return load(folder, device="cpu").forecast(found).tolist()


def _foreign(opened: Any, folder: Path) -> None:
    torch.manual_seed(0)
    for parameter in opened.model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    opened.save_pretrained(folder)
    (folder / "manifest.json").unlink()  # as the Hub has them


def gpt2(folder: Path) -> None:
    """A checkpoint of GPT-2."""
    text = byte_pairs(TEXT, 280)
    sizes = dict(N=1, d_model=16, d_ff=64, h=2, max_length=32, vocab_size=text.size)
    _foreign(GPT2Generator(GPT2(GPT2Config(**sizes)), text), folder)


def bert(folder: Path) -> None:
    """A checkpoint of BERT, with a list of words."""
    sizes = dict(N=1, d_model=16, d_ff=16, h=2, max_length=32)
    config = BertConfig(**sizes, vocab_size=len(WORDS.split()))
    _foreign(BertFiller(Bert(config), tokenizer().source), folder)
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(WORDS.split()) + "\n", encoding="utf-8")


def fill(folder: Path) -> Any:
    """What may stand in a gap."""
    return load(folder, device="cpu").fill("the cat [MASK] on the mat.", 3)


# -- training --------------------------------------------------------------------------


def checkpoint(folder: Path) -> None:
    """A checkpoint after one update."""
    learner = model()
    optimizer = adam(learner)
    optimizer.param_groups[0]["lr"] = 0.01
    learner(torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7]])).square().sum().backward()
    optimizer.step()
    weights, moments = (
        dict(learner.named_parameters()),
        adam_moments(learner, optimizer),
    )
    parts = weights, learner.config, tokenizer()
    write_checkpoint(folder, parts, moments, {"step": 1, "epoch": 0})


def restore(folder: Path) -> Any:
    """Weights and Adam's averages of a checkpoint; a run reads its progress."""
    learner = model()
    optimizer = adam(learner)
    load_checkpoint(folder, learner, optimizer, 1)
    moments = [optimizer.state[p]["exp_avg"] for p in learner.parameters()]
    return digest(learner.parameters()), digest(moments)


def pairs(folder: Path) -> None:
    """Tokenized pairs."""
    TokenizedPairs.build(PAIRS[:50], tokenizer(), folder)


def open_pairs(folder: Path) -> Any:
    """All that is in them."""
    found = TokenizedPairs.open(folder)
    rows = [(found[i][0].tolist(), found[i][1].tolist()) for i in range(len(found))]
    return rows, found.dropped


def _plan(steps: int) -> Recipe:
    plan = recipe("phrasebook")
    few = dict(steps=steps, batch_tokens=200, warmup=2, log_every=1, save_every=2)
    return replace(
        plan,
        architecture=replace(plan.architecture, **SIZES),
        training=replace(plan.training, keep=2, **few),
        vocab_size=200,
        max_tokens=32,
    )


def run(folder: Path) -> None:
    """A finished run of four updates."""
    fit(prepare(_plan(4), folder, PAIRS[:40], PAIRS[40:50], device="cpu"))


def go_on(folder: Path) -> Any:
    """The weights after one more update."""
    plan = _plan(5)
    plan = replace(plan, training=replace(plan.training, steps=5))
    outcome = fit(prepare(plan, folder, PAIRS[:40], PAIRS[40:50], device="cpu"))
    last = checkpoints(folder)[-1]
    return outcome, fingerprint(last / "model.safetensors"), translate(folder)
