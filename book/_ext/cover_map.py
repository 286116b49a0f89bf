"""The map on the cover: Figure 1 of the paper, each box a link to the chapter that
builds it, with the module that it exports. It stands where the cover says `% map`.
"""

import json
import re
from html import escape

COLOUR = "#0072B2"  # of Okabe and Ito, whose colours the colour-blind tell apart
LEFT, RIGHT = 190, 620
# The boxes: chapter, name, x, y, width, height.
Spot = tuple[str, str, int, int, int, int]
BOXES: list[Spot] = [
    ("transformer", "The Transformer, whole", 130, 22, 220, 44),
    ("costs", "What it costs", 130, 78, 220, 44),
    ("attention", "Self-attention", LEFT, 362, 240, 40),
    ("layers", "Add and norm", LEFT, 328, 240, 26),
    ("feed_forward", "Feed-forward", LEFT, 268, 240, 40),
    ("layers", "Add and norm", LEFT, 234, 240, 26),
    ("position", "Positions", LEFT, 444, 240, 40),
    ("embedding", "Embedding", LEFT, 496, 240, 40),
    ("attention", "Masked self-attention", RIGHT, 362, 240, 40),
    ("layers", "Add and norm", RIGHT, 328, 240, 26),
    ("attention", "Attention to the encoder", RIGHT, 268, 240, 40),
    ("layers", "Add and norm", RIGHT, 234, 240, 26),
    ("feed_forward", "Feed-forward", RIGHT, 174, 240, 40),
    ("layers", "Add and norm", RIGHT, 140, 240, 26),
    ("embedding", "Output layer", RIGHT, 48, 240, 40),
    ("position", "Positions", RIGHT, 444, 240, 40),
    ("embedding", "Embedding", RIGHT, 496, 240, 40),
]
# Arrows as SVG paths: those of both columns, from their middles, and others.
UP = ["362 v-7", "268 v-7", "496 v-11", "444 v-41", "328 v-19"]
FLOWS = [f"M{x} {path}" for x in (310, 740) for path in UP] + [
    "M740 234 v-19",
    "M740 174 v-7",
    "M310 234 v-42 H520 V288 H618",
    "M740 140 v-51",
    "M740 48 v-44",
    "M740 575 V538",
    "M740 556 H310 V538",
]
# Residual connections: where each leaves the stream.
SKIPS = [(310, 409), (310, 315), (740, 409), (740, 315), (740, 221)]
SAYS = (
    "Figure 1 of the paper: embeddings and positions, N encoder layers, N decoder "
    "layers, the output layer. Each box leads to its chapter."
)
TIP = """<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6"
markerHeight="6" orient="auto" fill="#7F7F7F"><path d="M0 0 L8 4 L0 8 z"/></marker>"""


def box(spot: Spot, again: bool) -> str:
    """One chapter: a link with its name and, below or beside it, its module.

    The Tab key stops at the first of several boxes of a chapter, not `again`.
    """
    stem, name, x, y, w, h = spot
    if h < 30:
        places = (x + 12, y + 17.5, "start"), (x + w - 10, y + 17, "end")
    else:
        middle, half = x + w / 2, y + h / 2
        places = (middle, half - 2, "middle"), (middle, half + 14, "middle")
    labels = zip(
        places, ("name", "module"), (13.5, 11.5), (name, f"{stem}.py"), strict=True
    )
    texts = " ".join(
        f'<text class="{kind}" x="{left:g}" y="{top:g}" font-size="{size}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
        for (left, top, anchor), kind, size, text in labels
    )
    skip = ' tabindex="-1"' if again else ""
    return (
        f'<a href="model/{stem}.html"{skip}>'
        f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="6" '
        f'fill="{COLOUR}" fill-opacity=".13" stroke="{COLOUR}" stroke-width="1.4"/>'
        f"{texts}</a>"
    )


def cover_map() -> str:
    """The map as one SVG element."""
    stems = [spot[0] for spot in BOXES]
    lines = [box(spot, spot[0] in stems[:i]) for i, spot in enumerate(BOXES)]
    lines += [
        f'<rect x="{x}" y="{y}" width="284" height="{426 - y}" rx="10" fill="none" '
        'stroke="#7F7F7F" stroke-dasharray="5 4"/>'
        for x, y in ((168, 212), (598, 118))
    ]
    lines += [f'<path class="flow" d="{d}" marker-end="url(#tip)"/>' for d in FLOWS]
    lines += [
        f'<path class="skip" d="M{x} {y} h131 v-68 h-9" marker-end="url(#tip)"/>'
        for x, y in SKIPS
    ]
    lines.append('<text class="times" x="130" y="322" font-size="15">N ×</text>')
    lines.append('<text class="times" x="894" y="277" font-size="15">× N</text>')
    body = "\n".join(lines)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="120 0 820 580" role="group" '
        f'aria-label="{SAYS}"><defs>{TIP}</defs>\n{body}\n</svg>'
    )


def put_map(app, docname: str, source: list[str]) -> None:
    """Sphinx event: the map in the place of `% map` in a notebook's text."""
    if (
        not str(app.env.doc2path(docname)).endswith(".ipynb")
        or "% map" not in source[0]
    ):
        return
    notebook = json.loads(source[0])
    raw = f'```{{raw}} html\n<div class="map">\n{cover_map()}\n</div>\n```'
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            cell["source"] = re.sub(r"^% map$", lambda _: raw, text, flags=re.M)
    source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", put_map)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
