"""§5: corpus, vocabulary, architecture and training of a whole run, by name."""

from dataclasses import dataclass, replace
from numbers import Real

from ..errors import UserError, check_integer, check_kind, nearest
from ..model.config import BOS, EOS, PAD, TransformerConfig, preset
from .config import TrainingConfig


@dataclass(frozen=True)
class Recipe:
    """All that one training run needs to know.

    The corpus, the vocabulary, the architecture and the training.

    Raises: UserError for max_tokens, vocab_size or bpe_dropout out of range, or special
    ids that are not the tokenizer's.
    """

    corpus: str
    src: str
    tgt: str
    architecture: TransformerConfig
    training: TrainingConfig
    vocab_size: int = 37_000
    joint: bool = True
    moses: bool = False
    lowercase: bool = False
    tidy: bool = False
    bpe_dropout: float = 0.0
    train_split: str = "train"
    valid_split: str = "val"
    max_tokens: int = 256

    def __post_init__(self) -> None:
        batch = self.training.batch_tokens // self.training.micro_batches
        longest = self.architecture.max_length
        limits = {"max_length": longest, "batch_tokens / micro_batches": batch}
        check_kind("max_tokens", self.max_tokens, int, "a whole number")
        check_kind("bpe_dropout", self.bpe_dropout, Real, "a number")
        for name, limit in limits.items():
            if not 0 < self.max_tokens <= limit:
                raise UserError(
                    f"max_tokens is {self.max_tokens}: it must be at least 1 and at "
                    f"most {name}, {limit}"
                )
        check_integer(self, "vocab_size", below=2**24)
        if not 0 <= self.bpe_dropout <= 1:
            raise UserError(
                f"bpe_dropout is {self.bpe_dropout}: it is a probability, from 0 to 1"
            )
        model = self.architecture
        if (model.pad_id, model.bos_id, model.eos_id) != (PAD, BOS, EOS):
            raise UserError(
                f"pad_id, bos_id and eos_id must be {PAD}, {BOS} and {EOS}, as the "
                "tokenizer has them"
            )


def phrasebook_small() -> Recipe:
    """The embedded phrasebook en→de with a model of 2 + 2 layers that learns it in
    minutes on two cores.
    """
    architecture = TransformerConfig(
        N=2, d_model=128, d_ff=256, h=8, d_k=16, d_v=16, dropout=0.0, max_length=256
    )
    training = TrainingConfig(
        steps=3_000,
        batch_tokens=1_024,
        warmup=400,
        peak=0.003,
        label_smoothing=0.0,
        save_every=100,
    )
    return Recipe("phrasebook", "en", "de", architecture, training, vocab_size=1_000)


def tatoeba_everyday() -> Recipe:
    """Tatoeba's everyday sentences en→de with a model of 3 + 3 layers."""
    architecture = TransformerConfig(
        N=3, d_model=256, d_ff=1_024, h=4, d_k=64, d_v=64, dropout=0.1, max_length=256
    )
    training = TrainingConfig(
        steps=6_500,
        batch_tokens=8_192,
        warmup=800,
        peak=0.002,
        precision="auto",
        log_every=50,
        save_every=50,
        keep=8,
    )
    plan = Recipe("tatoeba", "en", "de", architecture, training, vocab_size=10_000)
    return replace(plan, tidy=True)


def multi30k_tiny() -> Recipe:
    """Multi30k en→de with the small model of Wu et al. (2021): 4 + 4 layers."""
    architecture = TransformerConfig(
        N=4, d_model=128, d_ff=256, h=4, d_k=32, d_v=32, dropout=0.3
    )
    training = TrainingConfig(
        steps=8_000,
        batch_tokens=8_192,
        warmup=2_000,
        peak=0.005,
        precision="auto",
        log_every=57,
        save_every=57,
        keep=10,
        patience=10,
    )
    plan = Recipe("multi30k", "en", "de", architecture, training, vocab_size=10_000)
    return replace(plan, moses=True, lowercase=True)


def own_text(pairs: int) -> Recipe:
    """The settings for so many pairs of one's own, from nothing: those of the run on
    the nearest number, 29,000 or 164,000.
    """
    return multi30k_tiny() if pairs < 100_000 else tatoeba_everyday()


def iwslt14() -> Recipe:
    """IWSLT14 de→en with the model that toolkits use for it; not tuned here."""
    architecture = TransformerConfig(d_ff=1_024, h=4, d_k=128, d_v=128, dropout=0.3)
    training = TrainingConfig(
        steps=30_000, batch_tokens=4_096, peak=5e-4, precision="auto", keep=10
    )
    plan = Recipe("iwslt14", "de", "en", architecture, training, vocab_size=10_000)
    return replace(plan, lowercase=True, valid_split="valid")


def wmt14_base() -> Recipe:
    """WMT 2014 en→de with the paper's base model (§5, §6.1).

    100,000 updates, the last 5 checkpoints averaged.
    """
    training = TrainingConfig(save_every=1_500, keep=5)
    return Recipe("wmt14", "en", "de", preset("base"), training)


def wmt14_big() -> Recipe:
    """WMT 2014 en→de with the paper's big model (§5, §6.1).

    300,000 updates, the last 20 checkpoints averaged.
    """
    training = TrainingConfig(steps=300_000, save_every=600, keep=20)
    return Recipe("wmt14", "en", "de", preset("big"), training)


def wmt14_french() -> Recipe:
    """WMT 2014 en→fr with the paper's big model (§5.1, §6.1).

    Dropout 0.1 and 32,000 tokens, else as en→de.
    """
    architecture = replace(preset("big"), dropout=0.1)
    return replace(wmt14_big(), tgt="fr", architecture=architecture, vocab_size=32_000)


def recipes() -> dict[str, Recipe]:
    """The named recipes."""
    return {
        "phrasebook": phrasebook_small(),
        "tatoeba-en-de": tatoeba_everyday(),
        "multi30k-en-de-tiny": multi30k_tiny(),
        "iwslt14-de-en": iwslt14(),
        "wmt14-en-de-base": wmt14_base(),
        "wmt14-en-de-big": wmt14_big(),
        "wmt14-en-fr-big": wmt14_french(),
    }


def recipe(name: str) -> Recipe:
    """The recipe of that name. Raises: UserError naming the nearest one."""
    known = recipes()
    if name not in known:
        raise UserError(f"unknown recipe {name!r}: {nearest(name, list(known))}")
    return known[name]
