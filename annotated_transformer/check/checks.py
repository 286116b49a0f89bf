"""All checks, and the parts of a file that they ask."""

from .attention_parts import attention as attention
from .attention_parts import causal_mask as causal_mask
from .attention_parts import multi_head_attention as multi_head_attention
from .attention_parts import padding_mask as padding_mask
from .batching import shift_and_pad as shift_and_pad
from .bleu import brevity_penalty as brevity_penalty
from .bleu import clipped_precision as clipped_precision
from .heads import without_heads as without_heads
from .learning import greedy_search as greedy_search
from .learning import smoothed_cross_entropy as smoothed_cross_entropy
from .learning import training_step as training_step
from .optimizer import adam_step as adam_step
from .optimizer import noam as noam
from .splits import split_of as split_of
from .stacks import decoder as decoder
from .stacks import decoder_layer as decoder_layer
from .stacks import encoder as encoder
from .stacks import encoder_layer as encoder_layer
from .sublayers import add_norm as add_norm
from .sublayers import embedding as embedding
from .sublayers import feed_forward as feed_forward
from .sublayers import sinusoids as sinusoids
from .tokenizer import learn_merges as learn_merges
from .trees import linearise as linearise
from .whole import transformer as transformer

# What a reader writes, in the order of the chapters.
CHECKS = {
    "attention": attention,
    "padding_mask": padding_mask,
    "causal_mask": causal_mask,
    "MultiHeadAttention": multi_head_attention,
    "FeedForward": feed_forward,
    "Embedding": embedding,
    "sinusoids": sinusoids,
    "AddNorm": add_norm,
    "EncoderLayer": encoder_layer,
    "DecoderLayer": decoder_layer,
    "Encoder": encoder,
    "Decoder": decoder,
    "Transformer": transformer,
    "smoothed_cross_entropy": smoothed_cross_entropy,
    "training_step": training_step,
    "greedy_search": greedy_search,
}
