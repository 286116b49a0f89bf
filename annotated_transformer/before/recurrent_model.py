"""The recurrent translator of 2015, with the interface of the Transformer.

It is what `before.recurrent` builds, complete: a GRU in both directions, additive
attention, one matrix for embeddings and output, decoding step by step.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..cache import Cache
from .recurrent import AdditiveAttention


class RecurrentModel(nn.Module):
    """A bidirectional GRU encoder and a GRU decoder with additive attention.

    The translator of 2015 (Bahdanau et al.), with the interface of the Transformer.
    """

    def __init__(self, config: Any):
        super().__init__()
        d = config.d_model
        self.config = config
        self.tgt_embedding = nn.Embedding(config.tgt_vocab_size, d)
        self.src_embedding = self.tgt_embedding
        if not config.shared_vocab:
            self.src_embedding = nn.Embedding(config.src_vocab_size, d)
        self.encoder = nn.GRU(d, d // 2, batch_first=True, bidirectional=True)
        self.begin = nn.Linear(d // 2, d)
        self.attention = AdditiveAttention(d)
        self.decoder = nn.GRUCell(2 * d, d)
        self.output = nn.Linear(2 * d, d)
        self.dropout = nn.Dropout(config.dropout)
        for embedding in (self.src_embedding, self.tgt_embedding):
            nn.init.normal_(embedding.weight, std=0.1)

    def encode(self, src: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder's states (batch, src, d) and the mask of real words."""
        mask = src != self.config.pad_id
        words = self.dropout(self.src_embedding(src))
        packed = pack_padded_sequence(
            words, mask.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(
            self.encoder(packed)[0], batch_first=True, total_length=src.size(1)
        )
        return states, mask

    def begun(self, memory: Tensor, mask: Tensor) -> Cache:
        """The decoder before its first word: its state is where the encoder that
        reads backwards has ended.
        """
        state = torch.tanh(self.begin(memory[:, 0, memory.size(2) // 2 :]))
        return Cache(
            memory=memory, keys=self.attention.U(memory), mask=mask, state=state
        )

    def advance(self, word: Tensor, cache: Cache) -> Tensor:
        """One step: look, read a word's vector, change the state; the output."""
        found, _ = self.attention(cache.state, cache.memory, cache.keys, cache.mask)
        cache.state = self.decoder(torch.cat([word, found], dim=-1), cache.state)
        return torch.tanh(self.output(torch.cat([cache.state, found], dim=-1)))

    def decode(self, tgt: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """The decoder's outputs (batch, tgt, d), one position after the other."""
        words, cache = self.dropout(self.tgt_embedding(tgt)), self.begun(memory, mask)
        outputs = [self.advance(word, cache) for word in words.unbind(dim=1)]
        return self.dropout(torch.stack(outputs, dim=1))

    def logits(self, hidden: Tensor) -> Tensor:
        """A score for each word: how well the output fits the word's own vector."""
        return F.linear(hidden, self.tgt_embedding.weight)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Scores for the word after each target position, (batch, tgt, vocab)."""
        return self.logits(self.decode(tgt, *self.encode(src)))

    def start(self, src: Tensor, beam_size: int = 1) -> Cache:
        """Read the sources once; `beam_size` rows for each of them."""
        cache = self.begun(*self.encode(src))
        rows = torch.arange(len(src), device=src.device).repeat_interleave(beam_size)
        cache.reorder(rows)
        return cache

    def step(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Feed one more word a row; scores for the word after it."""
        return self.logits(self.advance(self.tgt_embedding(tokens), cache))
