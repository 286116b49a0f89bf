"""Lines of text on their way to a model, as rows of ids, and back."""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..data.normalization import COPIED, HIDDEN
from ..data.pair_tokenizer import PairTokenizer
from ..decoding.search import Hypothesis
from ..errors import UserError, check_kind

UNREAD = re.compile(rf"\[unk\]|{HIDDEN}")
# A line, and each of its rows with what was found for it.
RowHypotheses = tuple[str, list[tuple[list[int], list[Hypothesis]]]]


def in_chunks(lines: Iterable[str], count: int) -> Iterator[list[str]]:
    """The lines as they come, so many at a time.

    Raises: UserError for one string, or a count below 1.
    """
    if isinstance(lines, str):
        raise UserError("expected lines and got one string: put it in a list, [text]")
    if type(count) is not int or count < 1:
        raise UserError(f"lines_at_once is {count}: take one at least")
    check_kind("lines", lines, Iterable, "lines, such as a list of texts or a file")
    source = iter(lines)
    while chunk := list(islice(source, count)):
        yield chunk


def single_spaced(line: str, name: str) -> str:
    """The line with each run of white space made one space.

    Raises: UserError if it is no text, or was not UTF-8.
    """
    if not isinstance(line, str):
        raise UserError(f"{name} is {line!r:.40}: give a text, of type str")
    if not line.isascii() and re.search("[\ud800-\udfff]", line):
        raise UserError(f"{name} is not valid UTF-8: convert it")
    return " ".join(line.split())


def encode_lines(
    encode: Callable[[list[str]], list[list[int]]],
    lines: list[str],
    names: Sequence[str],
) -> list[list[int]]:
    """The ids of the lines, none for a blank one.

    Raises: UserError naming the line, where the tokenizer refuses one.
    """
    real = [line for line in lines if line]
    try:
        rows = iter(encode(real))
    except UserError:
        for name, line in zip(names, lines, strict=True):
            try:
                encode([line])
            except UserError as error:
                raise UserError(f"{name}: {error}") from None
        raise
    return [next(rows) if line else [] for line in lines]


@dataclass
class Unknown:
    """Counts the characters that the model never saw, for one warning at the end."""

    unk_id: int
    strict: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    def inspect(
        self,
        name: str,
        line: str,
        row: list[int],
        encode: Callable[[list[str]], list[list[int]]],
    ) -> None:
        """Count what became unknown in this line.

        Raises: UserError if strict.
        """
        if self.unk_id not in row or self.unk_id not in encode([line])[0]:
            return
        letters = [c for c in dict.fromkeys(line) if self.unk_id in encode([c])[0]]
        if not letters:  # no letter by itself, so a piece of several
            letters = [line]
        if self.strict:
            raise UserError(
                f"{name} has characters that this model never saw: "
                f"{' '.join(map(printable, letters[:20]))}; replace them, or let them "
                "pass as unknown (without strict)"
            )
        self.counts.update({letter: line.count(letter) for letter in letters})

    def warn(self, stacklevel: int = 3) -> None:
        """One warning that counts and names what passed, if anything did."""
        if self.counts:
            total, common = self.counts.total(), self.counts.most_common(20)
            names = ", ".join(f"{printable(c)} ({count})" for c, count in common)
            warnings.warn(
                f"passed as unknown, since this model never saw them: {names}; "
                f"{total} in all, replace them or refuse their lines (strict)",
                stacklevel=stacklevel,
            )


def printable(text: str) -> str:
    """The text itself, or the code of a character that can't be shown."""
    return text if text.isprintable() else f"U+{ord(text[0]):04X}"


def split_sentences(text: str) -> list[str]:
    """Cut after . ! ? or …, a closing quote or bracket included, before white space and
    what can begin a sentence.

    That is anything but a small Latin-1 letter, œ or a closing ». A simple rule: it
    also cuts after an abbreviation before a capital, as in "Dr. Smith".
    """
    return re.split(
        r"""(?:(?<=[.!?…])|(?<=[.!?…]["'”“’»«)])|(?<=[.!?…]\s»))"""
        r"""\s++(?!»\s|[a-zß-öø-ÿœ])""",
        text.strip(),
    )


def source_rows(
    tokenizer: PairTokenizer,
    lines: Sequence[str],
    limit: int,
    unknown: Unknown,
    split: bool = False,
    first_line: int = 1,
) -> list[list[list[int]]]:
    """Rows of ids for each line: none if it is blank, several if it had to be cut.

    Raises: UserError naming the line that can't be translated.
    """
    encode = tokenizer.encode_source
    names = [f"line {number}" for number, _ in enumerate(lines, start=first_line)]
    texts = [single_spaced(line, name) for line, name in zip(lines, names, strict=True)]
    rows, parts = encode_lines(encode, texts, names), []
    for name, text, row in zip(names, texts, rows, strict=True):
        unknown.inspect(name, tokenizer.without_addresses(text), row, encode)
        encoded, remedy = (
            [row] * bool(row),
            "shorten it, or cut it into sentences (split)",
        )
        if split and len(row) > limit:
            prefix = tokenizer.prefix(text)
            sentences = split_sentences(text[len(prefix) :])
            encoded = encode_lines(
                encode, [prefix + each for each in sentences], [name]
            )
            remedy = "it is one sentence, or can't be told from one, so shorten that"
        longest = max(map(len, encoded), default=0)
        if longest > limit:
            raise UserError(
                f"{name} has {longest} tokens, and this model reads at most {limit}: "
                f"{remedy}"
            )
        parts.append(encoded)
    return parts


def encode_untruncated(
    tokenizer: PairTokenizer,
    texts: Sequence[str],
    limit: int,
    unknown: Unknown,
    side: str,
) -> list[list[int]]:
    """The row of ids of each text of one side, "source " or "target ".

    Raises: UserError naming a line that is blank or too long.
    """
    encode = tokenizer.encode_source
    if side == "target ":
        encode = tokenizer.encode_target
    names = [f"{side}line {number}" for number, _ in enumerate(texts, start=1)]
    lines = list(map(single_spaced, texts, names))
    rows = encode_lines(encode, lines, names)
    for name, line, row in zip(names, lines, rows, strict=True):
        if not line or not row:  # which a tokenizer may have emptied
            raise UserError(f"{name} is blank: leave it out")
        unknown.inspect(name, tokenizer.without_addresses(line), row, encode)
        if len(row) > limit:
            raise UserError(
                f"{name} has {len(row)} tokens, and this model reads at most "
                f"{limit}: shorten it"
            )
    return rows


@dataclass(frozen=True)
class Translation:
    """One translation of one text; unfinished means that it was cut at its limit.

    `score` ranks it, see `search.Hypothesis`.
    """

    text: str
    score: float
    log_probability: float
    finished: bool


def warn_of_cuts(lines: list[RowHypotheses], first_line: int) -> None:
    """A warning for each line whose best translation is unfinished."""
    for number, (_, parts) in enumerate(lines, start=first_line):
        if not all(hypotheses[0].finished for _, hypotheses in parts):
            warnings.warn(
                f"line {number}: the translation reached its limit and was cut there",
                stacklevel=5,
            )


def to_translations(
    hypotheses: list[Hypothesis], tokenizer: PairTokenizer
) -> list[Translation]:
    """Hypotheses as text."""
    texts = tokenizer.decode([hypothesis.tokens for hypothesis in hypotheses])
    return [
        Translation(text, h.score, h.log_probability, h.finished)
        for text, h in zip(texts, hypotheses, strict=True)
    ]


def restore_unknown(text: str, line: str, tokenizer: PairTokenizer) -> str:
    """A translation with the line's addresses and unknown characters where it has
    copied them, in order.

    For an [unk] more than the line has of them stands the letter of the line's only
    word that is the same but for it or, for one by itself, that is so rare a letter
    that it has no token of its own as a word; without one it stays.
    """
    if "[unk]" in line or not UNREAD.search(text):
        return text
    addresses, letters = iter(COPIED.findall(line)), tokenizer.unknown_characters(line)
    unread = (next(addresses, each) if each == HIDDEN else each for each in letters)
    text = UNREAD.sub(lambda match: next(unread, match[0]), text)
    return re.sub(
        r"(\w*)\[unk\](\w*)", lambda match: restored(match, line, tokenizer), text
    )


def restored(match: re.Match[str], line: str, tokenizer: PairTokenizer) -> str:
    """A word with the one letter that its word in the line has for an [unk]."""
    before, after = match.groups()
    words = set(re.findall(rf"(?<!\w){before}\w{after}(?!\w)", line))
    if not before + after:
        words = {each for each in words if len(tokenizer.source_tokens(each)) > 2}
    return words.pop() if len(words) == 1 else match[0]


def join_parts(parts: list[list[Translation]]) -> list[Translation]:
    """The translations of one line: of its only row, or the best of each, joined."""
    if len(parts) == 1:
        return parts[0]
    best = [hypotheses[0] for hypotheses in parts]
    return [
        Translation(
            " ".join(each.text for each in best),
            sum((each.score for each in best), 0.0),
            sum((each.log_probability for each in best), 0.0),
            all(each.finished for each in best),
        )
    ]
