"""One sentence about a part that a reader wrote."""

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Verdict:
    """What a check says: one sentence, and whether the part is right or there at all.

    It is true when the part is right; one that `departs` works, and otherwise than the
    paper's. A notebook shows what was expected beside what
    was found, where there are numbers, and then the sentence. `waits_for` names the
    part to mend first, of those that this one uses.
    """

    sentence: str
    right: bool = False
    written: bool = True
    numbers: str = ""
    waits_for: str = ""
    departs: bool = False

    def __bool__(self) -> bool:
        return self.right

    def __str__(self) -> str:
        return f"{self.numbers}\n{self.sentence}" if self.numbers else self.sentence

    __repr__ = __str__


NOT_YET = Verdict("not yet written", written=False)
