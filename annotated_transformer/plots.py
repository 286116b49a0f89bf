"""The figures of the chapters, in one style that the colour-blind can read."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

NUMBER = re.compile(r"[-+−±]?\d[\d.,]*( ?%)?$")
TAGS = re.compile(r"(`[^`]*`|\$[^$]*\$)|<")  # code, a formula, or a tag's begin
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermillion": "#D55E00",
    "sky": "#56B4E9",
    "purple": "#CC79A7",
    "yellow": "#F0E442",
    "black": "#000000",
    "grey": "#7F7F7F",
}
ON_LIGHT = "#111111"  # words on a light square, in both themes
SEQUENTIAL, SIGNED = "cividis", "RdBu_r"
DASHES = ["-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1))]


def house_style(ax: Axes) -> None:
    """No box on top and right, a light grid behind the data, the palette's colours."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_prop_cycle(color=list(COLOURS.values()))


def axes(width: float = 6.0, height: float = 3.4) -> tuple[Figure, Axes]:
    """One matplotlib figure and its axes in the house style; sizes in inches."""
    figure, ax = plt.subplots(figsize=(width, height), layout="constrained")
    house_style(ax)
    return figure, ax


def colour_scale(limits: tuple[float, float]) -> dict[str, Any]:
    """The colours for values within some limits: blue and red for the two signs and
    white for zero if there are both, else dark to bright.
    """
    low, high = limits
    if low < 0 < high:
        return {"cmap": SIGNED, "vmin": min(low, -high), "vmax": max(high, -low)}
    return {"cmap": SEQUENTIAL, "vmin": low, "vmax": high}


def squares(
    ax: Axes,
    values: Tensor,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    digits: int | None = None,
) -> AxesImage:
    """Draw a matrix (rows × columns) as coloured squares, with the names of its rows
    and columns and, to so many `digits`, its values, as far as they are given.
    """
    array = values.detach().float().cpu().numpy()
    image = ax.imshow(array, **colour_scale(limits))
    if columns is not None:
        words = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(columns)), columns, **words, parse_math=False)
    if rows is not None:
        ax.set_yticks(range(len(rows)), rows, parse_math=False)
    ax.set_xticks(np.arange(0.5, array.shape[1] - 1), minor=True)
    ax.set_yticks(np.arange(0.5, array.shape[0] - 1), minor=True)
    ax.grid(which="minor", color="white", linewidth=0.6)
    ax.tick_params(which="minor", length=0)
    if digits is not None:
        for (row, column), value in np.ndenumerate(array):
            light = np.dot([0.3, 0.6, 0.1], image.to_rgba(value)[:3]) > 0.5
            ink = {"color": ON_LIGHT if light else "white", "fontsize": 9}
            text = f"{value:.{digits}f}"
            ax.text(column, row, text, ha="center", va="center", **ink)
    return image


def matrices(
    panels: dict[str, Tensor],
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    row_name: str = "query",
    column_name: str = "key",
    limits: tuple[float, float] = (0.0, 1.0),
    digits: int | None = None,
) -> Figure:
    """Draw named matrices (rows × columns) side by side, four or more in two lines.

    They share one colour scale; booleans need none.
    """
    height, width = next(iter(panels.values())).shape
    side = 0.36 if digits is not None else 0.26  # of a square, in inches
    lines = 1 if len(panels) < 4 else 2
    across = math.ceil(len(panels) / lines)
    size = (
        across * max(1.9, side * width + 0.6) + 0.9,
        lines * max(2.3, side * height + 1.3),
    )
    figure, grid = plt.subplots(
        lines, across, figsize=size, layout="constrained", squeeze=False, sharey=True
    )
    for ax, (name, values) in zip(grid.flat, panels.items(), strict=False):
        image = squares(ax, values, rows, columns, limits=limits, digits=digits)
        ax.set(title=name, xlabel=column_name)
    for ax in grid[:, 0]:
        ax.set_ylabel(row_name)
    for ax in grid.flat[len(panels) :]:
        ax.axis("off")
    if any(values.is_floating_point() for values in panels.values()):
        figure.colorbar(image, ax=grid, shrink=0.8 / lines)
    return figure


def plot_curves(
    ax: Axes, curves: dict[str, dict[float, float]], *, markers: str = "os^Dv"
) -> None:
    """Draw named curves (x to y) in the house style, each in its own colour and with
    its own marker or dashes.
    """
    house_style(ax)
    for number, (name, curve) in enumerate(curves.items()):
        marker = markers[number % len(markers)] if markers else ""
        line = "-" if markers else DASHES[number % len(DASHES)]
        style = {"linestyle": line, "linewidth": 1.6, "marker": marker, "markersize": 4}
        ax.plot(list(curve), list(curve.values()), label=name, **style)
    if len(curves) > 1:
        ax.legend(frameon=False)


def log_ticks(ax: Axes, values: Sequence[float]) -> None:
    """Make the x axis logarithmic, with ticks at these places alone; one that would
    crowd the last stays without its number.
    """
    shown: list[float] = []
    apart = (max(values) / min(values)) ** (1 / 9)
    for tick in sorted(values):
        if not shown or tick >= shown[-1] * apart:
            shown.append(tick)
    names = [f"{tick:g}" if tick in shown else "" for tick in sorted(values)]
    ax.set_xscale("log")
    ax.set_xticks(sorted(values), names)
    ax.minorticks_off()


def lines(
    x: Sequence[float],
    series: dict[str, Sequence[float]],
    x_name: str,
    y_name: str,
    *,
    log: str = "",
    markers: str = "os^Dv",
) -> Figure:
    """One curve for each named series over shared x values; `log` names the logarithmic
    axes ("x", "y", "xy").
    """
    figure, ax = axes()
    by_x = {
        name: dict(zip(map(float, x), map(float, y), strict=True))
        for name, y in series.items()
    }
    plot_curves(ax, by_x, markers=markers)
    if "x" in log:
        log_ticks(ax, x)
    if "y" in log:
        ax.set_yscale("log")
    ax.set(xlabel=x_name, ylabel=y_name)
    return figure


def curves(
    panels: dict[str, dict[str, dict[float, float]]], x_name: str, y_name: str = ""
) -> Figure:
    """Named curves (x to y) in one panel under each title; with a `y_name` all panels
    have one y axis.
    """
    size = (4.0 + 2.0 * len(panels), 3.2)
    figure, grid = plt.subplots(
        1, len(panels), figsize=size, layout="constrained", sharey=bool(y_name)
    )
    for ax, (title, named) in zip(np.ravel(grid), panels.items(), strict=True):
        plot_curves(ax, named)
        ax.set_title(title, loc="left")
        ax.set(xlabel=x_name)
    figure.axes[0].set(ylabel=y_name)
    return figure


def growth_panels(
    panels: dict[str, dict[str, dict[float, float]]], x_name: str
) -> Figure:
    """`curves` on log–log axes, with grey lines of slope 1 and 2 from the lower left
    corner, as far as a panel's limits reach.
    """
    figure = curves(panels, x_name)
    for ax in figure.axes:
        ax.set(xscale="log", yscale="log")
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        for slope in (1, 2):
            end = min(right, left * (high / low) ** (1 / slope))
            top = low * (end / left) ** slope
            ax.plot([left, end], [low, top], color="#999999", linewidth=0.9, zorder=0)
            words = {"color": "#555555", "fontsize": 9, "ha": "right"}
            ax.annotate(f"slope {slope}", (end, top), **words)
        ax.set(xlim=(left, right), ylim=(low, high))
    return figure


def training_curves(records: Sequence[dict[str, Any]]) -> Figure:
    """Training and validation loss over updates, with the learning rate below, and
    BLEU between them if validations have it.
    """

    def curve(event: str, field: str) -> dict[float, float]:
        chosen = (each for each in records if each["event"] == event and field in each)
        return {float(each["step"]): each[field] for each in chosen}

    bleu, losses = curve("validation", "bleu"), {"training": curve("update", "loss")}
    losses["validation"] = curve("validation", "loss")
    heights = [3, 2, 1] if bleu else [3, 1]
    how: Any = {"sharex": True, "layout": "constrained", "height_ratios": heights}
    size = 6.4, 1.2 + 0.8 * sum(heights)
    figure, (upper, *middle, lower) = plt.subplots(len(heights), figsize=size, **how)
    plot_curves(upper, losses, markers=" o")  # a dot for each validation
    for ax in middle:
        plot_curves(ax, {"BLEU": bleu})
        ax.set(ylabel="BLEU")
    plot_curves(lower, {"rate": curve("update", "lr")}, markers="")
    upper.set(ylabel="loss per token, nats")
    lower.set(xlabel="update", ylabel="rate")
    return figure


def shares(
    bars: dict[str, dict[str, float]], y_name: str, *, x_name: str = ""
) -> Figure:
    """One stacked bar for each thing; the inner dictionaries name the parts, the same
    ones for each bar.
    """
    figure, ax = axes(6.4, 3.6)
    names = list(bars)
    bottom = np.zeros(len(names))
    for part in next(iter(bars.values())):
        heights = np.array([bars[name][part] for name in names], dtype=float)
        ax.bar(names, heights, bottom=bottom, width=0.6, label=part)
        bottom += heights
    ax.set(xlabel=x_name, ylabel=y_name)
    ax.grid(False, axis="x")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


class Table:
    """Rows of values under a header, numbers at the right, with `digits` decimals."""

    def __init__(
        self, header: Sequence[str], rows: Iterable[Sequence[Any]], digits: int = 2
    ):
        self.header, self.digits = list(header), digits
        self.rows = [[self._text(value) for value in row] for row in rows]
        assert all(len(row) == len(self.header) for row in self.rows)

    def _text(self, value: Any) -> str:
        if isinstance(value, Tensor | np.generic):
            value = value.item()
        return f"{value:.{self.digits}f}" if isinstance(value, float) else str(value)

    def _repr_markdown_(self) -> str:
        columns = zip(*self.rows, strict=True)
        rules = ["---:" if all(map(NUMBER.match, each)) else "---" for each in columns]
        cells = [self.header, rules, *self.rows]
        lines = (" | ".join(map(self._escaped, row)) for row in cells)
        return "\n".join(f"| {line} |" for line in lines)

    @staticmethod
    def _escaped(text: str) -> str:
        """Markdown in which "</s>" is text and no HTML, and "|" ends no cell."""
        shown = TAGS.sub(lambda match: match[1] or r"\<", text)
        return shown.replace("|", "\\|")

    __repr__ = _repr_markdown_
