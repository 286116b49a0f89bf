"""Another hypothesis of the beam, where the best lacks a number of its source."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from ..data.pair_tokenizer import PairTokenizer
from ..decoding.search import Hypothesis
from .lines import RowHypotheses, restore_unknown, split_sentences
from .missing import missing

Search = Callable[[list[list[int]]], list[list[Hypothesis]]]
NAMED = 20  # lines that the warning names, and losses of one line


@dataclass
class Losses:
    """What translations lack of their lines, for one warning at the end."""

    tokenizer: PairTokenizer
    lines: dict[int, list[str]] = field(default_factory=dict)

    def complete(
        self, lines: list[RowHypotheses], first_line: int, search: Search | None
    ) -> list[RowHypotheses]:
        """The lines, with other hypotheses where these lack less; notes what is left.

        `search` finds all hypotheses of a beam; without it nothing is exchanged.
        """
        parts = [
            (number, *each)
            for number, (line, rows) in enumerate(lines, start=first_line)
            for each in zip(self._sentences(line, len(rows)), rows, strict=True)
        ]
        lost = [self._lost(text, found[0]) for _, text, (_, found) in parts]
        lacking = [place for place, each in enumerate(lost) if each]
        again = [parts[place][2][0] for place in lacking]
        others = iter(search(again) if search and again else [])
        best = [row for *_, row in parts]
        for place in lacking:
            number, text, (row, found) = parts[place]
            ways = [found[0], *(each for each in next(others, []) if each.finished)]
            chosen = min(ways, key=lambda way: len(self._lost(text, way)))
            if chosen is not found[0]:
                best[place] = row, [chosen]
            if left := self._lost(text, chosen):
                self.lines.setdefault(number, []).extend(left)
        rest = iter(best)
        done = [(line, list(islice(rest, len(rows)))) for line, rows in lines]
        for number, (line, rows) in enumerate(done, start=first_line):
            ids = [found[0].tokens for _, found in rows]
            if any(self.tokenizer.unk_id in row for row in ids):
                text = " ".join(self.tokenizer.decode(ids))
                if "[unk]" in restore_unknown(text, line, self.tokenizer):
                    unread = "the character for which [unk] stands"
                    self.lines.setdefault(number, []).append(unread)
        return done

    def _sentences(self, line: str, count: int) -> list[str]:
        """The text of each of a line's rows."""
        text = " ".join(line.split())
        if count < 2:
            return [text] * count
        return split_sentences(text[len(self.tokenizer.prefix(text)) :])

    def _lost(self, text: str, found: Hypothesis) -> list[str]:
        """What a hypothesis lacks of its text."""
        languages = self.tokenizer.src_lang, self.tokenizer.tgt_lang
        if not missing(text, "", *languages):  # it has nothing that could be lost
            return []
        (translation,) = self.tokenizer.decode([found.tokens])
        whole = restore_unknown(translation, text, self.tokenizer)
        return missing(text, whole, *languages)

    def warn(self, stacklevel: int = 3) -> None:
        """One warning that names the lines and what is missing, if anything is."""
        if self.lines:
            warnings.warn("; ".join(self._told()), stacklevel=stacklevel)

    def _told(self) -> Iterator[str]:
        for number, lost in list(self.lines.items())[:NAMED]:
            more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
            names = ", ".join(lost[:NAMED])
            yield f"line {number}: the translation lacks {names}{more}"
        if len(self.lines) > NAMED:
            yield f"and {len(self.lines) - NAMED} lines more lack something"
