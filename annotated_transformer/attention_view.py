"""Every head of every layer as a page that needs only a browser."""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np


def attention_view(panels: Sequence[dict[str, Any]]) -> str:
    """Every head's attention, to point at, as HTML.

    Each panel has a `name`, the tokens of its `queries` and `keys`, and `weights` as
    (layer, head, query, key).
    """
    shown = [
        panel | {"weights": np.asarray(panel["weights"], dtype=float).round(3).tolist()}
        for panel in panels
    ]
    data = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    quoted = escape(data, quote=False).replace("'", "&#39;")
    return (
        f"<attention-view panels='{quoted}'><span slot='fallback'>The picture needs "
        f"JavaScript, and in a notebook your trust.</span></attention-view>\n"
        f"<script>\n{_shipped('attention.js')}</script>\n"
    )


def attention_page(source: str, target: str, panels: Sequence[dict[str, Any]]) -> str:
    """A self-contained HTML page of what `attention_view` shows."""
    page = Template(_shipped("attention.html"))
    words = {"source": escape(source), "target": escape(target)}
    return page.substitute(words, view=attention_view(panels))


def _shipped(name: str) -> str:
    return files("annotated_transformer").joinpath(name).read_text(encoding="utf-8")
