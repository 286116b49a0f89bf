"""Weights of one byte: whole numbers and a scale for each row of a matrix.

A matrix W becomes whole numbers q from -127 to 127 and one scale s for each row (that
is, for each output, or for each token of the vocabulary), so that W ≈ s q with the
largest entry of each row met exactly. Biases and norms keep their 32 bits. CTranslate2
stores weights of 8 bits in the same way.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

SCALE = ".scale"  # after the name of a matrix, the name of its rows' scales


def quantized(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as int8 with the scales of their rows beside them, others as float32."""
    stored = {}
    for name, weight in weights.items():
        stored[name] = weight.float()
        if weight.dim() == 2:
            scale = stored[name].abs().amax(dim=1) / 127
            scale[scale == 0] = 1  # a row of zeros
            stored[name + SCALE] = scale
            stored[name] = (stored[name] / scale[:, None]).round().to(torch.int8)
    return stored


def dequantized(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The float32 weights of `quantized`; a matrix without fitting scales stays."""
    weights = dict(tensors)
    for name, tensor in tensors.items():
        scale = tensors.get(name + SCALE)
        if tensor.dtype != torch.int8 or tensor.dim() != 2 or scale is None:
            continue
        if scale.dtype == torch.float32 and scale.shape == tensor.shape[:1]:
            weights[name] = tensor * scale[:, None]
            del weights[name + SCALE]
    return weights
