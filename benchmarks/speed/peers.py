"""The same Transformer built from three other libraries, with our weights, for the
benchmarks to measure beside ours.

Each peer is used as its own documentation shows it. What a library lacks (embeddings,
positions, the tied output layer) it gets from ours; what it computes itself (attention,
norms, dropout, all logits at once) stays its own. A library is imported where it is
used, so that one that isn't installed leaves the others to be measured.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotated_transformer.data.batch import Batch
from annotated_transformer.interop.marian_export import marian_config
from annotated_transformer.interop.marian_weights import marian_weights
from annotated_transformer.model.attention import MultiHeadAttention
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.performance.update import FastObjective

NAMES = ["ours", "torch.nn.Transformer", "Marian", "x-transformers"]


def full_loss(logits: Tensor, target: Tensor, pad_id: int, smoothing: float) -> Tensor:
    """The summed smoothed loss over all logits; ε is shared over V − 1 tokens, as in
    ours.
    """
    vocab = logits.size(-1)
    return F.cross_entropy(
        logits.flatten(0, 1).float(),
        target.flatten(),
        ignore_index=pad_id,
        reduction="sum",
        label_smoothing=smoothing * vocab / (vocab - 1),
    )


class Peer(nn.Module):
    """What two of the peers lack: embeddings and positions, which are ours, and the
    dropout on their sum.
    """

    def __init__(self, ours: Transformer, smoothing: float):
        super().__init__()
        self.config = ours.config
        self.smoothing = smoothing
        self.src_embedding, self.tgt_embedding, self.positions = (
            ours.src_embedding,
            ours.tgt_embedding,
            ours.positions,
        )
        self.dropout = nn.Dropout(ours.config.dropout)

    def embedded(self, src: Tensor, tgt_in: Tensor) -> tuple[Tensor, Tensor]:
        """What goes into both stacks."""
        return (
            self.dropout(self.positions(self.src_embedding(src))),
            self.dropout(self.positions(self.tgt_embedding(tgt_in))),
        )

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        """The summed loss of what comes out of the decoder."""
        logits = self.tgt_embedding.logits(hidden)
        return full_loss(logits, target, self.config.pad_id, self.smoothing)


class TorchPeer(Peer):
    """`torch.nn.Transformer` without its extra final norms, and without dropout on
    weights and inside the network.
    """

    def __init__(self, ours: Transformer, smoothing: float):
        super().__init__(ours, smoothing)
        c = self.config
        sizes = {
            "d_model": c.d_model,
            "nhead": c.h,
            "dim_feedforward": c.d_ff,
            "dropout": c.dropout,
        }
        encoder = nn.TransformerEncoderLayer(**sizes, batch_first=True)
        decoder = nn.TransformerDecoderLayer(**sizes, batch_first=True)
        self.stacks = nn.Transformer(
            c.d_model,
            c.h,
            batch_first=True,
            custom_encoder=nn.TransformerEncoder(
                encoder, c.N, enable_nested_tensor=False
            ),
            custom_decoder=nn.TransformerDecoder(decoder, c.N),
        )
        for module in self.stacks.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(
                module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
            ):
                module.dropout = nn.Identity()
        copy_to_torch(ours, self.stacks)

    def forward(self, batch: Batch) -> Tensor:
        """The summed loss."""
        src, tgt_in = batch.src, batch.tgt_in
        padding = src == self.config.pad_id
        future = torch.ones(
            tgt_in.size(1), tgt_in.size(1), dtype=torch.bool, device=src.device
        ).triu(1)
        hidden = self.stacks(
            *self.embedded(src, tgt_in),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.loss(hidden, batch.tgt_out)


@torch.no_grad()
def copy_attention_to_torch(
    ours: MultiHeadAttention, theirs: nn.MultiheadAttention
) -> None:
    """Queries, keys and values as the one matrix they form; zero biases."""
    theirs.in_proj_weight.copy_(
        torch.cat([ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight])
    )
    theirs.out_proj.weight.copy_(ours.W_O.weight)
    theirs.in_proj_bias.zero_()
    theirs.out_proj.bias.zero_()


def copy_to_torch(ours: Transformer, theirs: nn.Transformer) -> None:
    """The weights of both stacks."""
    for mine, other in zip(ours.encoder.layers, theirs.encoder.layers, strict=True):
        copy_attention_to_torch(mine.self_attention, other.self_attn)
        other.linear1.load_state_dict(mine.feed_forward.W_1.state_dict())
        other.linear2.load_state_dict(mine.feed_forward.W_2.state_dict())
    for mine, other in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
        copy_attention_to_torch(mine.self_attention, other.self_attn)
        copy_attention_to_torch(mine.source_attention, other.multihead_attn)
        other.linear1.load_state_dict(mine.feed_forward.W_1.state_dict())
        other.linear2.load_state_dict(mine.feed_forward.W_2.state_dict())


class MarianPeer(nn.Module):
    """Hugging Face's `MarianMTModel` with ReLU and our weights; positions come in
    another order, so weights do too.
    """

    def __init__(self, ours: Transformer, smoothing: float):
        from transformers import MarianConfig, MarianMTModel

        super().__init__()
        self.pad_id, self.smoothing = ours.config.pad_id, smoothing
        off = {"attention_dropout": 0.0, "activation_dropout": 0.0}
        self.model = MarianMTModel(MarianConfig(**marian_config(ours.config) | off))
        self.model.load_state_dict(marian_weights(ours), strict=False)

    def forward(self, batch: Batch) -> Tensor:
        """The summed loss."""
        logits = self.model(
            input_ids=batch.src,
            attention_mask=batch.src != self.pad_id,
            decoder_input_ids=batch.tgt_in,
            use_cache=False,
        ).logits
        return full_loss(logits, batch.tgt_out, self.pad_id, self.smoothing)


class XTransformersPeer(Peer):
    """The stacks of `x-transformers`, post-norm, ReLU, its flash attention; its norms
    have no bias.
    """

    def __init__(self, ours: Transformer, smoothing: float):
        from x_transformers import Decoder, Encoder

        super().__init__(ours, smoothing)
        c = self.config
        common = {
            "dim": c.d_model,
            "depth": c.N,
            "heads": c.h,
            "pre_norm": False,
            "attn_dim_head": c.d_k,
            "attn_flash": True,
            "attn_sublayer_dropout": c.dropout,
            "ff_mult": c.d_ff / c.d_model,
            "ff_custom_activation": nn.ReLU(),
            "ff_sublayer_dropout": c.dropout,
        }
        self.encoder, self.decoder = (
            Encoder(**common),
            Decoder(**common, cross_attend=True),
        )
        copy_to_x_transformers(ours, self.encoder, self.decoder)

    def forward(self, batch: Batch) -> Tensor:
        """The summed loss."""
        real = batch.src != self.config.pad_id
        source, target = self.embedded(batch.src, batch.tgt_in)
        memory = self.encoder(source, mask=real)
        hidden = self.decoder(target, context=memory, context_mask=real)
        return self.loss(hidden, batch.tgt_out)


@torch.no_grad()
def copy_to_x_transformers(
    ours: Transformer, encoder: nn.Module, decoder: nn.Module
) -> None:
    """The weights of both stacks: each library has its blocks in the same order."""
    blocks = [
        part
        for layer in ours.encoder.layers
        for part in (layer.self_attention, layer.feed_forward)
    ]
    blocks += [
        part
        for layer in ours.decoder.layers
        for part in (layer.self_attention, layer.source_attention, layer.feed_forward)
    ]
    theirs = [block for _, block, _ in [*encoder.layers, *decoder.layers]]
    for mine, other in zip(blocks, theirs, strict=True):
        if isinstance(mine, MultiHeadAttention):
            for name, matrix in (
                ("to_q", mine.W_Q),
                ("to_k", mine.W_K),
                ("to_v", mine.W_V),
            ):
                getattr(other, name).weight.copy_(matrix.weight)
            linear = (
                other.to_out[0]
                if isinstance(other.to_out, nn.Sequential)
                else other.to_out
            )
            linear.weight.copy_(mine.W_O.weight)
        else:
            first, second = (
                module for module in other.ff.modules() if isinstance(module, nn.Linear)
            )
            first.load_state_dict(mine.W_1.state_dict())
            second.load_state_dict(mine.W_2.state_dict())


def build(
    name: str, architecture: TransformerConfig, smoothing: float = 0.1, seed: int = 1
) -> nn.Module:
    """A model whose `forward(batch)` is the summed smoothed loss; all of
    a seed have equal weights.
    """
    torch.manual_seed(seed)
    ours = Transformer(architecture)
    makers = FastObjective, TorchPeer, MarianPeer, XTransformersPeer
    return dict(zip(NAMES, makers, strict=True))[name](ours, smoothing)
