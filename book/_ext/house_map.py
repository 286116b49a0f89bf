"""The map on the cover: Figure 1 of the paper with the rooms of the book around it.

Each box is a link to a chapter and names the module that the chapter exports. The
extension puts the map where the cover says `% map`.
"""

import json
import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Colours that the colour-blind can tell apart (Okabe and Ito), one for each part.
COLOURS = {
    "before": "#E69F00",
    "after": "#56B4E9",
    "translation": "#CC79A7",
    "training": "#D55E00",
    "model": "#0072B2",
    "data": "#009E73",
    "engine": "#7F7F7F",
}
# The parts that are a row of boxes, from the top of the map, and how far down each is.
ROWS = {
    "after": (8, "After the paper", "§7 and since", ["pretrained"]),
    "translation": (
        92,
        "Translation",
        "§6",
        ["search", "translator", "bleu", "multi30k"],
    ),
    "training": (
        176,
        "Training",
        "§5.2–5.4",
        ["schedule", "loss", "trainer", "checkpoint", "recipes"],
    ),
    "data": (
        824,
        "The data",
        "§5.1",
        ["phrasebook", "corpus", "tokenizer", "batching"],
    ),
    "before": (
        908,
        "Before",
        "§1, §2",
        ["recurrent", "self_attention"],
    ),
    "engine": (
        992,
        "The engine room",
        "for machines",
        ["update", "growth", "decoding", "runs", "scale", "ctranslate2", "onnx"],
    ),
}
NAMES = {
    "recurrent": "Recurrent networks",
    "self_attention": "Self-attention, simply",
    "pretrained": "Pretrained models",
    "bleu": "BLEU",
    "multi30k": "Multi30k",
    "schedule": "Warm-up",
    "trainer": "The loop",
    "checkpoint": "Checkpoints",
    "batching": "Batches",
    "update": "An update",
    "runs": "A run",
    "scale": "Many devices",
    "ctranslate2": "CTranslate2",
    "onnx": "ONNX",
}
# The boxes of Figure 1: chapter, name, x, y, width, height.
LEFT, RIGHT = 190, 620
FIGURE_1 = [
    ("transformer", "The Transformer, whole", 130, 282, 220, 44),
    ("config", "The architecture as data", 130, 338, 220, 44),
    ("costs", "What it costs", 130, 394, 220, 44),
    ("attention", "Self-attention", LEFT, 622, 240, 40),
    ("layers", "Add and norm", LEFT, 588, 240, 26),
    ("feed_forward", "Feed-forward", LEFT, 528, 240, 40),
    ("layers", "Add and norm", LEFT, 494, 240, 26),
    ("position", "Positions", LEFT, 704, 240, 40),
    ("embedding", "Embedding", LEFT, 756, 240, 40),
    ("attention", "Masked self-attention", RIGHT, 622, 240, 40),
    ("layers", "Add and norm", RIGHT, 588, 240, 26),
    ("attention", "Attention to the encoder", RIGHT, 528, 240, 40),
    ("layers", "Add and norm", RIGHT, 494, 240, 26),
    ("feed_forward", "Feed-forward", RIGHT, 434, 240, 40),
    ("layers", "Add and norm", RIGHT, 400, 240, 26),
    ("embedding", "Output layer", RIGHT, 308, 240, 40),
    ("position", "Positions", RIGHT, 704, 240, 40),
    ("embedding", "Embedding", RIGHT, 756, 240, 40),
]
# Arrows as SVG paths: those of both columns, from their middles, and others.
UP = ["622 v-7", "528 v-7", "756 v-11", "704 v-41", "588 v-19"]
FLOWS = [f"M{x} {path}" for x in (310, 740) for path in UP] + [
    "M740 494 v-19",
    "M740 434 v-7",
    "M310 494 v-42 H520 V548 H618",
    "M740 400 v-51",
    "M740 308 v-54",
    "M740 835 V798",
    "M740 816 H310 V798",
]
# Residual connections: where each leaves the stream.
SKIPS = [(310, 669), (310, 575), (740, 669), (740, 575), (740, 481)]
SAYS = (
    "A map of the book. At the bottom the engine room, what came before the "
    "Transformer, and the data: sentence pairs, tokens, batches. In the middle the "
    "Transformer of Figure 1: embeddings and positions, N encoder layers, N decoder "
    "layers, the output layer. Above it training, translation, and what came after the "
    "paper. Each box leads to its chapter."
)

TIP = """
<marker id="{id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="{size}"
 markerHeight="{size}" orient="auto">
<path d="M0 0 L8 4 L0 8 z" fill="#7F7F7F"/></marker>
"""


def box(room: str, stem: str, name: str, x: float, y: float, w: float, h: float) -> str:
    """One chapter: a link with its name and, below or beside it, its module."""
    chapter = f"{room}/{stem}"
    module = (ROOT / "annotated_transformer" / f"{chapter}.py").exists()
    under = f"{stem}.py" if module else "a chapter alone"
    low = h < 30
    places = (
        [(x + 12, y + 17.5, "start"), (x + w - 10, y + 17, "end")]
        if low
        else [
            (x + w / 2, y + h / 2 - 2, "middle"),
            (x + w / 2, y + h / 2 + 14, "middle"),
        ]
    )
    texts = "".join(
        f'<text class="{kind}" x="{left:g}" y="{top:g}" font-size="{size}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
        for (left, top, anchor), kind, size, text in zip(
            places, ("name", "module"), (13.5, 10.5), (name, under), strict=True
        )
    )
    colour = COLOURS[room]
    return (
        f'<a href="{chapter}.html" aria-label="{escape(name)}: chapter {chapter}">'
        f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6" '
        f'fill="{colour}" fill-opacity=".13" stroke="{colour}" stroke-width="1.4"/>'
        f"{texts}</a>"
    )


def shelf(room: str, y: float, height: float, title: str, section: str) -> str:
    """The ground on which a part's boxes stand, with its title at the left."""
    middle = y + height / 2
    return (
        f'<rect x="8" y="{y}" width="934" height="{height}" rx="10" '
        f'fill="{COLOURS[room]}" fill-opacity=".045"/>'
        f'<text class="shelf" x="20" y="{middle - 2:g}" font-size="14">{title}</text>'
        f'<text class="section" x="20" y="{middle + 15:g}" font-size="11">'
        f"{section}</text>"
    )


def row(room: str) -> str:
    """A part whose chapters stand in a row, in reading order."""
    y, title, section, stems = ROWS[room]
    parts = [shelf(room, y, 72, title, section)]
    gap, left, right = 10, 136, 930
    width = min(190, (right - left - gap * (len(stems) - 1)) / len(stems))
    for i, stem in enumerate(stems):
        name = NAMES.get(stem, stem.capitalize())
        parts.append(box(room, stem, name, left + i * (width + gap), y + 11, width, 50))
    return "\n".join(parts)


def figure_1() -> str:
    """The model: both columns of the paper's Figure 1."""
    parts = [shelf("model", 260, 552, "The model", "§3, §4, Figure 1")]
    parts += [
        f'<rect x="{x}" y="{y}" width="284" height="{686 - y}" rx="10" fill="none" '
        'stroke="#7F7F7F" stroke-dasharray="5 4"/>'
        for x, y in ((168, 472), (598, 378))
    ]
    parts += [box("model", *each) for each in FIGURE_1]
    parts += [f'<path class="flow" d="{d}" marker-end="url(#tip)"/>' for d in FLOWS]
    parts += [
        f'<path class="skip" d="M{x} {y} h131 v-68 h-9" marker-end="url(#tip-quiet)"/>'
        for x, y in SKIPS
    ]
    parts.append('<text class="times" x="130" y="582" font-size="15">N ×</text>')
    parts.append('<text class="times" x="894" y="537" font-size="15">× N</text>')
    return "\n".join(parts)


def cover_map() -> str:
    """The whole map as one SVG element."""
    tips = "".join(
        TIP.format(id=name, size=size)
        for name, size in (("tip", 7), ("tip-quiet", 5.5))
    )
    body = "\n".join([figure_1(), *map(row, ROWS)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 950 1072" role="group" '
        f'aria-label="{SAYS}"><defs>{tips}</defs>\n{body}\n</svg>'
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
