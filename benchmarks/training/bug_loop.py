"""The program around nbs/my_transformer.py in which bugs.py plants its bugs.

It learns phrases from 4,000 pairs and translates those that it hasn't seen. Halfway it
stops and goes on from what it has saved, as a run does that was interrupted.
"""

from copy import deepcopy

import torch
from torch.nn.functional import pad

BOS, EOS, PAD = 1, 2, 0
UPDATES, BATCH, WARMUP, PEAK = 300, 32, 60, 6e-3
LONGEST = 24


def rows(lines):
    """Rows of ids as one tensor, padded with 0."""
    longest = max(map(len, lines))
    return torch.stack([pad(torch.tensor(x), (0, longest - len(x))) for x in lines])


def source_rows(lines, words):
    return rows([[*words.encode(line), EOS] for line in lines])


def target_rows(lines, words):
    return rows([[BOS, *words.encode(line), EOS] for line in lines])


def split(pairs, held_out):
    """The pairs to learn from and those to test with."""
    test = pairs[:held_out]
    train = pairs[held_out:]
    return train, test


def sides(pairs):
    """The lines of both files."""
    sources = [source for source, _ in pairs]
    targets = [target for _, target in pairs]
    return list(zip(sources, targets, strict=False))


def new_adam(model):
    return torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)


def learn(mine, model, pairs, words, updates=UPDATES):
    """The loss of each update; the model is the better for it."""
    pairs, draw = sides(pairs), torch.Generator().manual_seed(1)
    optimizer, losses, order = new_adam(model), [], []
    for step in range(1, updates + 1):
        rate = PEAK * min(step / WARMUP, (WARMUP / step) ** 0.5)
        optimizer.param_groups[0]["lr"] = rate
        if len(order) < BATCH:
            order = torch.randperm(len(pairs), generator=draw).tolist()
        batch, order = [pairs[i] for i in order[:BATCH]], order[BATCH:]
        src = source_rows([source for source, _ in batch], words)
        tgt = target_rows([target for _, target in batch], words)
        losses.append(mine.training_step(model.train(), optimizer, src, tgt))
        if step == updates // 2:
            saved = deepcopy(optimizer.state_dict())
            optimizer = new_adam(model)
            optimizer.load_state_dict(saved)
    return losses


def translate(mine, model, lines, words):
    """Each line's translation, by greedy search."""
    model.eval()
    src = source_rows(lines, words)
    found = mine.greedy_search(model, src, LONGEST).tolist()
    cut = [ids[: ids.index(EOS)] if EOS in ids else ids for ids in found]
    return [words.decode(ids) for ids in cut]
