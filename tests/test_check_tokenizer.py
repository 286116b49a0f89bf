"""The check of `learn_merges`: right ways pass, each mistake gets its reason."""

from collections import Counter, defaultdict

import pytest

from annotated_transformer import check
from annotated_transformer.data.tokenizer import learn_merges, merge

PLAIN = """
def learn_merges(counts, steps):
    words, merges = list(counts.items()), []
    for _ in range(steps):
        pairs = Counter()
        for word, count in words:
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        best = max(pairs, key=lambda pair: (pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        merges.append(best)
        words = [(merge(word, best), count) for word, count in words]
    return merges
"""
BEST = "max(pairs, key=lambda pair: (pairs[pair], pair), default=None)"
JOIN = "        words = [(merge(word, best), count) for word, count in words]\n"


def verdict(old="", new="", source=PLAIN):
    """What the check says when a piece of the plain solution is another."""
    assert old in source
    names = {"Counter": Counter, "merge": merge}
    exec(source.replace(old, new, 1), names)
    return check.learn_merges(names["learn_merges"])


def replaced_text(word, pair):
    """Joined as text, which finds a pair across the borders of symbols, too."""
    text = " ".join(word).replace(" ".join(pair), "".join(pair))
    return tuple(text.split(" "))


MISTAKES = [
    ("+= count", "+= 1", "Each word counts once"),
    (
        "in zip(word, word[1:])",
        "in set(zip(word, word[1:]))",
        "merge 4 should be n + i and is t + y",
    ),
    (
        "for word, count in words:",
        "for word, count in [(sum((w * c for w, c in words), ()), 1)]:",
        "from one word into the next",
    ),
    (
        BEST,
        "min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)",
        "merge 2 should be s + i and is i + n",
    ),
    (
        BEST,
        "max(pairs, key=pairs.get, default=None)",
        "merge 7 should be t + y and is a + t",
    ),
    (BEST, "max(pairs)", "merge 1 should be n + o and is y + n"),
    (
        BEST,
        "min(pairs, key=lambda p: (pairs[p], p), default=None)",
        "merge 1 should be n + o and is",
    ),
    (JOIN, "", "the same pair wins again"),
    ("merges.append(best)", "merges.append(''.join(best))", "merges is 'no'"),
    ("return merges", "return ' '.join(map(str, merges))", "should return a list"),
    ("    return merges", "    merges", "`return` missing"),
    ("return merges", "return merges[1:]", "merge 1 should be n + o and is s + i"),
    ("return merges", "return merges[:-1]", "the merges should be"),
    ("return merges", "return []", "and are []"),
    (
        "if best is None or pairs[best] < 2",
        "if best is None",
        "are [('t', 'o'), ('o', 'f')]: symbols",
    ),
    (", default=None)", ")", "raised ValueError"),
    ("pairs[best] < 2", "pairs[best] < 3", "should be [('t', 'o')] and are []"),
    ("merge(word, best)", "word.join(best)", "raised AttributeError"),
]


@pytest.mark.parametrize(("old", "new", "words"), MISTAKES)
def test_each_mistake_gets_its_own_reason(old, new, words):
    found = verdict(old, new)
    assert not found and words in str(found), found


def test_pairs_counted_once_are_noticed():
    def learn_merges(counts, steps):
        pairs = Counter()
        for word, count in counts.items():
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] += count
        order = sorted(pairs, key=lambda pair: (pairs[pair], pair), reverse=True)
        return order[:steps]

    assert "should be" in str(check.learn_merges(learn_merges))


def test_one_long_row_of_letters_is_noticed():
    def learn_merges_of_text(counts, steps):
        row = sum((word * count for word, count in counts.items()), ())
        return learn_merges({row: 1}, steps)

    assert "from one word into the next" in str(
        check.learn_merges(learn_merges_of_text)
    )


def test_symbols_joined_as_text_are_noticed():
    names = {"Counter": Counter, "merge": replaced_text}
    exec(PLAIN, names)
    found = check.learn_merges(names["learn_merges"])
    assert not found and "symbols are wholes" in str(found), found


def without_overlaps(counts, steps):
    """Lists for pairs, and no pair counted that shares its symbol with the last one."""
    words, merges = dict(counts), []
    while len(merges) < steps:
        pairs = defaultdict(int)
        for word, count in words.items():
            i = 0
            while i + 1 < len(word):
                pairs[word[i], word[i + 1]] += count
                alike = word[i : i + 1] == word[i + 1 : i + 2] == word[i + 2 : i + 3]
                i += 2 if alike else 1
        frequent = [pair for pair in pairs if pairs[pair] > 1]
        if not frequent:
            break
        most = max(pairs.values())
        best = sorted(pair for pair in frequent if pairs[pair] == most)[-1]
        merges.append(list(best))
        words = {merge(word, best): count for word, count in words.items()}
    return merges


@pytest.mark.parametrize("part", [learn_merges, without_overlaps])
def test_right_ways_pass(part):
    found = check.learn_merges(part)
    assert found and str(found).startswith("learn_merges is right: "), found


def test_the_way_that_the_mistakes_are_made_from_passes():
    assert verdict()


def test_what_raises_not_implemented_is_not_yet_written():
    def learn_merges(counts, steps):
        raise NotImplementedError

    assert str(check.learn_merges(learn_merges)) == "not yet written"
