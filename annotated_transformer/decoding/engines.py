"""What searches for a translator: either form of our model, or CTranslate2."""

from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import UserError, nearest
from ..registry import make
from .options import SearchOptions

if TYPE_CHECKING:
    from ..data.pair_tokenizer import PairTokenizer
    from .model_search import SearchEngine
    from .search import Hypothesis

DTYPES = {
    "torch": ("float32", "bfloat16"),  # the fast form of the model
    "plain": ("float32",),  # the readable one
    "ctranslate2": ("float32", "bfloat16", "int8"),
}
ENGINES = ("auto", *DTYPES)


def make_engine(
    name: str, model: Any, tokenizer: "PairTokenizer", dtype: str = "float32"
) -> "tuple[str, SearchEngine]":
    """The engine of this name, and its own name where that is "auto".

    "auto" is CTranslate2 where it is installed and takes the model, with our own search
    for samples, and else "torch".
    Raises: UserError for a name or a dtype that is unknown or doesn't fit.
    """
    check_engine(name, dtype)
    if name == "auto" and choose_engine(model.config, dtype) == "ctranslate2":
        try:
            engine = make("ctranslate2", model, tokenizer, dtype)
            return "ctranslate2", WithSamples(engine, model)
        except (UserError, RuntimeError, ImportError):
            if dtype == "int8":
                raise
    if name == "auto":  # or an installation that doesn't work on this device
        name = "torch"
    return name, make(name, model, tokenizer, dtype)


def choose_engine(config: Any, dtype: str = "float32") -> str:
    """What "auto" stands for with a model of this configuration."""
    known = config.model_type in ("transformer", "marian")
    fits = known and max(config.d_k, config.d_v) * config.h <= config.d_model
    installed = find_spec("ctranslate2") is not None
    faster = fits and installed and dtype == "float32"
    return "ctranslate2" if faster or dtype == "int8" else "torch"


def check_engine(name: str, dtype: str) -> None:
    """Raises: UserError for an engine that is unknown, or lacks the dtype."""
    if name not in ENGINES:
        raise UserError(f"unknown engine {name!r}: {nearest(name, ENGINES)}")
    having = [engine for engine in DTYPES if dtype in DTYPES[engine]]
    if not having:
        known = DTYPES["ctranslate2"]
        raise UserError(f"unknown dtype {dtype!r}: {nearest(dtype, known)}")
    if name not in ("auto", *having):
        raise UserError(
            f"the engine {name!r} has no dtype {dtype!r}: take the engine "
            f"{' or '.join(map(repr, having))}"
        )


def check_transformer(model: Any, program: str) -> None:
    """Raises: UserError for a model that is none, for a program that knows no other."""
    from ..model.transformer import Transformer

    replaced = getattr(model.config, "parts", None)
    if replaced or not isinstance(model, Transformer):
        raise UserError(
            f"{program} knows the paper's Transformer alone, and this model is of type "
            f"{model.config.model_type!r}: take the engine 'torch'"
        )


class WithSamples:
    """An engine that searches with a beam, and our own search for samples."""

    def __init__(self, beam: "SearchEngine", model: Any):
        self.beam, self.model = beam, model

    @cached_property
    def sampler(self) -> "SearchEngine":
        """What draws; made when the first sample is asked for, and kept."""
        engine: SearchEngine = make("torch", self.model, None, "float32")
        return engine

    def search(
        self, rows: Any, options: SearchOptions = SearchOptions()
    ) -> "list[list[Hypothesis]]":
        """The n best hypotheses of each row of source ids, best first."""
        engine = self.beam if options.temperature is None else self.sampler
        return engine.search(rows, options)
