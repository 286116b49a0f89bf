"""Transformers handed to CTranslate2, and searches that it makes."""

import os
from ctypes import py_object, pythonapi
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from weakref import WeakSet

import numpy as np
import torch

from ..data.batching import pad_rows
from ..data.pair_tokenizer import PairTokenizer
from ..data.tokenizer_files import as_rows
from ..decoding.engines import check_transformer
from ..decoding.options import SearchOptions
from ..decoding.search import Hypothesis, length_limits, length_penalty
from ..errors import UserError
from ..model.config import TransformerConfig
from ..model.transformer import Transformer
from .export_folder import exported_folder
from .extras import needed
from .marian_weights import weights_of, widen_heads

ACTIVATION_NAMES = {"relu": "RELU", "swish": "SWISH", "silu": "SWISH", "gelu": "GELU"}
ACTIVATION_NAMES["gelu_new"] = "GELUTanh"


def fill_linear(linear: Any, arrays: dict[str, np.ndarray], *names: str) -> None:
    """One linear map of a specification: these maps of the model, stacked."""
    linear.weight = np.concatenate([arrays[f"{name}.weight"] for name in names])
    if f"{names[0]}.bias" in arrays:
        linear.bias = np.concatenate([arrays[f"{name}.bias"] for name in names])


def fill_layer(spec: Any, arrays: dict[str, np.ndarray], layer: str) -> None:
    """One layer of either stack."""
    own, source = f"{layer}.self_attention", f"{layer}.source_attention"
    decoder = f"{source}.W_Q.weight" in arrays
    first = "after_self_attention" if decoder else "after_attention"
    stacked = [f"{own}.{part}" for part in ("W_Q", "W_K", "W_V")]
    fill_linear(spec.self_attention.linear[0], arrays, *stacked)
    fill_linear(spec.self_attention.linear[1], arrays, f"{own}.W_O")
    norms = {first: spec.self_attention, "after_feed_forward": spec.ffn}
    if decoder:
        queries, memory, output = spec.attention.linear
        fill_linear(queries, arrays, f"{source}.W_Q")
        fill_linear(memory, arrays, f"{source}.W_K", f"{source}.W_V")
        fill_linear(output, arrays, f"{source}.W_O")
        norms["after_source_attention"] = spec.attention
    fill_linear(spec.ffn.linear_0, arrays, f"{layer}.feed_forward.W_1")
    fill_linear(spec.ffn.linear_1, arrays, f"{layer}.feed_forward.W_2")
    for name, part in norms.items():
        part.layer_norm.gamma = arrays[f"{layer}.{name}.norm.weight"]
        part.layer_norm.beta = arrays[f"{layer}.{name}.norm.bias"]


def ctranslate2_spec(
    model: Transformer, tokenizer: PairTokenizer, quantization: str = "float32"
) -> Any:
    """CTranslate2's `TransformerSpec` with this model's weights, checked and rounded.

    Raises: UserError for heads above d_model / h, or an unknown quantization.
    """
    config, specs = model.config, needed("ctranslate2.specs")
    wide = widen_heads(weights_of(model), config)
    arrays = {name: weight.numpy() for name, weight in wide.items()}
    stacks: Any = (model.encoder.layers, model.decoder.layers)
    activation = getattr(config, "activation", "relu")  # an imported model's own
    spec = specs.TransformerSpec.from_config(
        tuple(map(len, stacks)),
        config.h,
        pre_norm=False,
        activation=getattr(specs.Activation, ACTIVATION_NAMES[activation]),
    )
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        for i, layer in enumerate(stack.layer):
            fill_layer(layer, arrays, f"{side}.layers.{i}")
    target = arrays["tgt_embedding.weight"]
    spec.encoder.embeddings[0].weight = arrays.get("src_embedding.weight", target)
    spec.decoder.embeddings.weight = spec.decoder.projection.weight = target
    if "logits_bias" in arrays:
        spec.decoder.projection.bias = arrays["logits_bias"]
    table = cast(Any, model.positions).table.detach().float().cpu().numpy()
    spec.encoder.position_encodings.encodings = table
    spec.decoder.position_encodings.encodings = table
    _name_tokens(spec, tokenizer, config)
    spec.validate()
    try:
        spec.optimize(quantization)
    except ValueError as error:
        raise UserError(str(error)) from None
    return spec


def _name_tokens(
    spec: Any, tokenizer: PairTokenizer, config: TransformerConfig
) -> None:
    """The vocabularies, and which tokens begin, end and stand for the unknown."""
    source, target = _tokens(tokenizer.source), _tokens(tokenizer.target)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.bos_token = target[config.bos_id]
    spec.config.decoder_start_token = target[config.bos_id]
    spec.config.eos_token = target[config.eos_id]
    spec.config.unk_token = target[tokenizer.unk_id]
    spec.config.layer_norm_epsilon = 1e-5


def _tokens(side: Any) -> list[str]:
    """The tokens of one side in the order of their ids."""
    return [side.id_to_token(i) for i in range(side.get_vocab_size())]


def export_ctranslate2(
    model: Transformer,
    tokenizer: PairTokenizer,
    folder: str | Path,
    quantization: str = "float32",
) -> None:
    """Write a folder that `ctranslate2.Translator` loads.

    `quantization` is CTranslate2's name for how weights are stored. Raises: UserError
    for heads above d_model / h, an unknown quantization, a folder that holds something,
    or when ctranslate2 is not installed.
    """
    spec = ctranslate2_spec(model, tokenizer, quantization)
    with exported_folder(folder, "ctranslate2", model, tokenizer) as draft:
        spec.save(str(draft))


ENGINES: "WeakSet[CTranslate2Engine]" = WeakSet()


def _leave_to_parent() -> None:
    """After a fork CTranslate2's threads are gone, and to work with them or to delete
    them would wait for ever: the child keeps them as they are, and starts its own.
    """
    for each in ENGINES:
        if each.translator is not None:
            pythonapi.Py_IncRef(py_object(each.translator))
            each.translator = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _start(
    model: Transformer, tokenizer: PairTokenizer, dtype: str, device: torch.device
) -> Any:
    """CTranslate2's translator. Raises: UserError when it lacks device or dtype."""
    spec = ctranslate2_spec(model, tokenizer, dtype)
    settings = dict(device_index=device.index or 0, compute_type=dtype)
    settings |= dict(intra_threads=torch.get_num_threads())
    try:
        with TemporaryDirectory() as folder:  # read once, into memory
            spec.save(folder)
            return needed("ctranslate2").Translator(
                folder, device=device.type, **settings
            )
    except (ValueError, RuntimeError) as error:
        raise UserError(
            f"CTranslate2 can't run in {dtype} on {device} ({error}): choose another "
            "dtype or device"
        ) from None


class CTranslate2Engine:
    """A `SearchEngine` that hands the whole search to CTranslate2.

    Raises: UserError when ctranslate2 is missing, or lacks the device or the dtype.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: PairTokenizer,
        dtype: str = "float32",
        device: str | torch.device = "cpu",
    ):
        self.config = model.config
        self.source, self.target = _tokens(tokenizer.source), _tokens(tokenizer.target)
        self.ids = {token: i for i, token in enumerate(self.target)}
        self.start = partial(_start, model, tokenizer, dtype, torch.device(device))
        self.translator = self.start()
        ENGINES.add(self)

    def search(
        self, rows: Any, options: SearchOptions = SearchOptions()
    ) -> list[list[Hypothesis]]:
        """The n best hypotheses of each row of source ids, best first.

        Raises: UserError for samples, or a row that the model can't read.
        """
        rows = as_rows(rows, len(self.source), self.config.pad_id)
        limits = self._limits(rows, options)
        results = self._translate(rows, max(limits, default=1), options)
        late: dict[int, list[int]] = {}
        for index, (limit, (texts, _)) in enumerate(zip(limits, results, strict=True)):
            if max(map(len, texts)) > limit:
                late.setdefault(limit, []).append(index)
        for limit, indices in late.items():
            again = self._translate([rows[index] for index in indices], limit, options)
            for index, result in zip(indices, again, strict=True):
                results[index] = result
        return [self._ranked(*result, options) for result in results]

    def _limits(self, rows: list[list[int]], options: SearchOptions) -> list[int]:
        """The most tokens, end included, that each row's output may have."""
        if options.temperature is not None:
            raise UserError(
                "the ctranslate2 engine draws no samples: take engine='torch' or "
                "'plain'"
            )
        most = self.config.max_length
        for index, row in enumerate(rows):
            if not 1 <= len(row) <= most:
                raise UserError(
                    f"source row {index} has {len(row)} tokens: the model reads 1 to "
                    f"{most}"
                )
        if not rows:
            return []
        src = pad_rows(rows, pad_id=self.config.pad_id)
        return length_limits(src, self.config, options.max_length).tolist()

    def _translate(
        self, rows: list[list[int]], limit: int, options: SearchOptions
    ) -> list[tuple[list[list[str]], list[float]]]:
        """The tokens of each row's hypotheses, end included, and log-probabilities."""
        barred = {self.config.pad_id, self.config.bos_id}
        if self.translator is None:
            self.translator = self.start()
        results = self.translator.translate_batch(
            [[self.source[i] for i in row] for row in rows],
            max_batch_size=options.batch_tokens,
            batch_type="tokens",
            beam_size=options.beam_size,
            num_hypotheses=options.beam_size if options.alpha else options.n_best,
            length_penalty=0,
            suppress_sequences=[[self.target[i]] for i in barred],
            max_input_length=0,
            max_decoding_length=limit,
            return_scores=True,
            return_end_token=True,
        )
        return [(result.hypotheses, result.scores) for result in results]

    def _ranked(
        self, texts: list[list[str]], totals: list[float], options: SearchOptions
    ) -> list[Hypothesis]:
        """A row's hypotheses with the paper's scores, best first."""
        hypotheses = []
        for tokens, total in zip(texts, totals, strict=True):
            ids = [self.ids[token] for token in tokens]
            finished = ids[-1:] == [self.config.eos_id]
            score = total / length_penalty(len(ids), options.alpha)
            ids = ids[:-1] if finished else ids
            hypotheses.append(Hypothesis(ids, total, score, finished))
        return sorted(hypotheses, key=lambda each: -each.score)[: options.n_best]


def ctranslate2_engine(model: Any, tokenizer: Any, dtype: str) -> CTranslate2Engine:
    """The engine on the model's own device. Raises: UserError as `CTranslate2Engine`,
    or for a model that is no paper's Transformer.
    """
    check_transformer(model, "CTranslate2")
    device = model.tgt_embedding.weight.device
    return CTranslate2Engine(model, tokenizer, dtype, device)
