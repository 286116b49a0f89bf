"""What a doctor measures: numbers, what is normal, and what is likely wrong."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Measure:
    """A number, the limit of what is normal, and what a number beyond it means."""

    name: str
    value: int | float
    sign: Literal["≤", "≥"]
    limit: int | float
    says: str

    @property
    def healthy(self) -> bool:
        """Whether it is normal; NaN never is."""
        if self.sign == "≤":
            return self.value <= self.limit
        return self.value >= self.limit

    def __str__(self) -> str:
        value = f"{self.value:,.3g}" if self.value < 1_000 else f"{self.value:,.0f}"
        return f"{self.name} {value} (normal: {self.sign} {self.limit:,g})"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; None for a value that is no number."""
        value = self.value if math.isfinite(self.value) else None
        return asdict(self) | {"value": value, "healthy": self.healthy}


@dataclass(frozen=True)
class Diagnosis:
    """All measures of something."""

    subject: str
    measures: list[Measure]

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
        return "\n".join(lines + [f"ok {m}" for m in self.measures if m.healthy])
