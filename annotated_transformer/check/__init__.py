"""Checks of a Transformer that you write yourself, part by part.

    >>> from annotated_transformer import check
    >>> check.attention(attention).sentence
    The scores aren't divided by √d_k before the softmax.

Each takes your function or class and answers that it is right, or shows what it
expected beside what it found and says the first thing that is wrong. Its docstring
holds the signature to write.
What counts is behaviour: attributes have the names that you like, linear layers a bias
or none, weights any start.
"""

from .attention import attention as attention
from .attention import causal_mask as causal_mask
from .attention import multi_head_attention as multi_head_attention
from .attention import padding_mask as padding_mask
from .batching import shift_and_pad as shift_and_pad
from .bleu import brevity_penalty as brevity_penalty
from .bleu import clipped_precision as clipped_precision
from .file import CHECKS as CHECKS
from .file import progress as progress
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
from .verdict import Verdict as Verdict
from .whole import transformer as transformer
