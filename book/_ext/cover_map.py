"""The map on the cover: Figure 1 of the paper with the parts of the book around it.

Each box is a link to a chapter and names the module that the chapter exports. The
extension puts the map where the cover says `% map`.
"""

import json
import re
from functools import cache
from html import escape
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
# Colours that the colour-blind can tell apart (Okabe and Ito), one for each part.
COLOURS = {
    "before": "#E69F00",
    "after": "#56B4E9",
    "translation": "#CC79A7",
    "decoding": "#CC79A7",
    "training": "#D55E00",
    "model": "#0072B2",
    "data": "#009E73",
    "performance": "#7F7F7F",
    "interop": "#7F7F7F",
}
# The parts from the top of the map to its foot. The model is Figure 1; the others are
# rows of boxes, one for each chapter that book/_toc.yml lists.
PARTS = {
    "after": ("After the paper", "§7 and since"),
    "translation": ("Translation", "§6"),
    "decoding": ("Decoding", "§6.1"),
    "training": ("Training", "§5.2–5.4"),
    "model": ("The model", "§3, §4, Figure 1"),
    "data": ("The data", "§5.1"),
    "before": ("Before", "§1, §2"),
    "performance": ("Performance", "skip it freely"),
    "interop": ("Other programs", "in and out"),
}
NAMES = {
    "recurrent": "Recurrent networks",
    "self_attention": "Self-attention, simply",
    "other_weights": "Marian, in and out",
    "gpt2_bert": "GPT-2 and BERT",
    "bleu": "BLEU",
    "multi30k": "Multi30k",
    "race": "A race",
    "table3": "Table 3",
    "heads": "Inside the heads",
    "schedule": "Warm-up",
    "trainer": "The loop",
    "pairs": "Corpora",
    "batching": "Batches",
    "update": "An update",
    "ctranslate2": "CTranslate2",
    "onnx": "ONNX",
    "language_model": "Text generation",
    "masked_language_model": "BERT",
    "since_2017": "Since 2017",
}
# A row has at most so many boxes to a line: their words must be legible.
ACROSS = 5
# The boxes of Figure 1: chapter, name, x, y from the figure's top, width, height.
LEFT, RIGHT, FIGURE_1_HEIGHT = 190, 620, 552
Spot = tuple[str, str, float, float, float, float]
FIGURE_1 = [
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
    "M740 48 v-54",
    "M740 575 V538",
    "M740 556 H310 V538",
]
# Residual connections: where each leaves the stream.
SKIPS = [(310, 409), (310, 315), (740, 409), (740, 315), (740, 221)]
SAYS = (
    "A map of the book. At the bottom performance and other programs, what came "
    "before the Transformer, and the data: pairs, tokens, batches. In the middle the "
    "Transformer of Figure 1: embeddings and positions, N encoder layers, N decoder "
    "layers, the output layer. Above it training, decoding, translation, and what came "
    "after the paper. Each box leads to its chapter."
)

TIP = """<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6"
markerHeight="6" orient="auto" fill="#7F7F7F"><path d="M0 0 L8 4 L0 8 z"/></marker>"""


def box(
    part: str, stem: str, name: str, x: float, y: float, w: float, h: float, again: bool
) -> str:
    """One chapter: a link with its name and, below or beside it, its module.

    The Tab key stops at the first of several boxes of a chapter, not `again`.
    """
    chapter = f"{part}/{stem}"
    module = (ROOT / "annotated_transformer" / f"{chapter}.py").exists()
    under = f"{stem}.py" if module else "a chapter alone"
    if h < 30:
        places = (x + 12, y + 17.5, "start"), (x + w - 10, y + 17, "end")
    else:
        middle, half = x + w / 2, y + h / 2
        places = (middle, half - 2, "middle"), (middle, half + 14, "middle")
    texts = " ".join(
        f'<text class="{kind}" x="{left:g}" y="{top:g}" font-size="{size}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
        for (left, top, anchor), kind, size, text in zip(
            places, ("name", "module"), (13.5, 11.5), (name, under), strict=True
        )
    )
    colour, skip = COLOURS[part], ' tabindex="-1"' if again else ""
    return (
        f'<a href="{chapter}.html"{skip}>'
        f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6" '
        f'fill="{colour}" fill-opacity=".13" stroke="{colour}" stroke-width="1.4"/>'
        f"{texts}</a>"
    )


def shelf(part: str, y: float, height: float, title: str, section: str) -> str:
    """The ground on which a part's boxes stand, with its title at the left."""
    middle = y + height / 2
    return (
        f'<rect x="8" y="{y}" width="934" height="{height}" rx="10" '
        f'fill="{COLOURS[part]}" fill-opacity=".045"/>'
        f'<text class="shelf" x="20" y="{middle - 2:g}" font-size="14">{title}</text>'
        f'<text class="section" x="20" y="{middle + 15:g}" font-size="11">'
        f"{section}</text>"
    )


@cache
def chapters() -> dict[str, list[str]]:
    """The parts and their chapters, in reading order."""
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    files = [
        entry["file"]
        for part in toc["parts"]
        if part.get("caption") != "For developers"
        for entry in part["chapters"]
    ]
    folders = dict.fromkeys(file.partition("/")[0] for file in files)
    return {
        part: [file.partition("/")[2] for file in files if file.startswith(f"{part}/")]
        for part in [*(each for each in folders if each in PARTS), *PARTS]
    }


def height(part: str) -> int:
    """How high a part is."""
    lines = -(-len(chapters()[part]) // ACROSS)
    return FIGURE_1_HEIGHT if part == "model" else 12 + 60 * lines


def top(part: str) -> int:
    """How far down a part begins."""
    above = list(PARTS)[: list(PARTS).index(part)]
    return 8 + sum(height(each) + 12 for each in above)


def spots(part: str) -> list[Spot]:
    """The boxes of a part: chapter, name, x, y, width, height."""
    if part == "model":
        return [
            (stem, name, x, y + top("model"), width, high)
            for stem, name, x, y, width, high in FIGURE_1
        ]
    stems, gap, left, right = chapters()[part], 10, 148, 930
    lines = -(-len(stems) // ACROSS)
    across = -(-len(stems) // max(lines, 1))
    width = min(190, (right - left - gap * (across - 1)) / max(across, 1))
    found: list[Spot] = []
    for i, stem in enumerate(stems):
        x, y = left + i % across * (width + gap), top(part) + 11 + i // across * 60
        found.append((stem, name_of(stem), x, y, width, 50))
    return found


def name_of(stem: str) -> str:
    """A chapter's name on the map."""
    return NAMES.get(stem, stem.replace("_", " ").capitalize())


def row(part: str) -> str:
    """A part's boxes on their ground."""
    parts = [shelf(part, top(part), height(part), *PARTS[part])]
    stems = [spot[0] for spot in spots(part)]
    for number, spot in enumerate(spots(part)):
        parts.append(box(part, *spot, again=spot[0] in stems[:number]))
    return "\n".join(parts)


def figure_1() -> str:
    """The model: both columns of the paper's Figure 1."""
    lines = [
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
    drawn = "\n".join(lines)
    return f'{row("model")}\n<g transform="translate(0 {top("model")})">{drawn}</g>'


def foot() -> int:
    """How high the map is."""
    return top("interop") + height("interop") + 8


def cover_map() -> str:
    """The whole map as one SVG element."""
    rows = [row(part) for part in PARTS if part != "model"]
    body = "\n".join([figure_1(), *rows])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 950 {foot()}" '
        'role="group" '
        f'aria-label="{SAYS}"><defs>{TIP}</defs>\n{body}\n</svg>'
    )


def as_list() -> str:
    """The map for a narrow screen: the parts from the first to the last, and the
    chapters of each.
    """
    lines = []
    for part, stems in chapters().items():
        links = "".join(
            f'<li><a href="{part}/{stem}.html">{escape(name_of(stem))}</a></li>'
            for stem in stems
        )
        title, section = PARTS[part]
        lines.append(
            f"<p><strong>{title}</strong> {section}</p>"
            f'<ul style="--part:{COLOURS[part]}">{links}</ul>'
        )
    return "\n".join(lines)


def put_map(app, docname: str, source: list[str]) -> None:
    """Sphinx event: the map in the place of `% map` in a notebook's text."""
    if (
        not str(app.env.doc2path(docname)).endswith(".ipynb")
        or "% map" not in source[0]
    ):
        return
    notebook = json.loads(source[0])
    raw = (
        f'```{{raw}} html\n<div class="map">\n{cover_map()}\n</div>\n'
        f'<div class="map-list">\n{as_list()}\n</div>\n```'
    )
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            cell["source"] = re.sub(r"^% map$", lambda _: raw, text, flags=re.M)
    source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", put_map)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
