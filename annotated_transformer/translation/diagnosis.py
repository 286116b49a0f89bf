"""What a doctor measures: numbers, what is normal, and what is likely wrong."""

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Measure:
    """A number, the least and the most that is normal, and what else it means."""

    name: str
    value: int | float
    least: int | float
    most: int | float
    says: str

    @property
    def healthy(self) -> bool:
        """Whether it is normal; NaN never is."""
        return self.least <= self.value <= self.most

    @property
    def normal(self) -> str:
        """What is normal, as text."""
        if self.least == self.most:
            return f"{self.least:g}"
        if math.isinf(self.most):
            return f"{self.least:,g} or more"
        if math.isinf(self.least) or not self.least:
            return f"{self.most:,g} or less"
        return f"{self.least:g} to {self.most:g}"

    def __str__(self) -> str:
        value = f"{self.value:,.3g}" if self.value < 1_000 else f"{self.value:,.0f}"
        return f"{self.name} {value} (normal: {self.normal})"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; None for what is no number, or no limit."""
        numbers = (("value", self.value), ("least", self.least), ("most", self.most))
        limits = {name: n if math.isfinite(n) else None for name, n in numbers}
        return {"name": self.name, **limits, "says": self.says}


@dataclass(frozen=True)
class Diagnosis:
    """All measures of something, what is wrong first, and notes that aren't faults."""

    subject: str
    measures: list[Measure]
    notes: list[str] = field(default_factory=list)

    @property
    def findings(self) -> list[Measure]:
        """The measures that aren't normal, the likeliest cause first."""
        return [measure for measure in self.measures if not measure.healthy]

    def __str__(self) -> str:
        found = self.findings
        count = f"{len(found)} finding{'s' * (len(found) != 1)}" if found else "healthy"
        lines = [f"{self.subject}: {count} in {len(self.measures)} measures"]
        for number, each in enumerate(found, 1):
            lines += [f"{number}. {each.says}", f"   {each}"]
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(lines + [f"ok {m}" for m in self.measures if m.healthy])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        sides = {"findings": self.findings, "measures": self.measures}
        rows = {name: [each.to_dict() for each in ms] for name, ms in sides.items()}
        return {"subject": self.subject, **rows, "notes": self.notes}
