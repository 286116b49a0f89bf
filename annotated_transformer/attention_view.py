"""Every head of every layer as a page that needs only a browser."""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
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
    script = files("annotated_transformer").joinpath("attention.js")
    return (
        f"<attention-view panels='{quoted}'><span slot='fallback'>The picture needs "
        f"JavaScript, and in a notebook your trust.</span></attention-view>\n"
        f"<script>\n{script.read_text(encoding='utf-8')}</script>\n"
    )


def attention_page(source: str, target: str, panels: Sequence[dict[str, Any]]) -> str:
    """A self-contained HTML page of what `attention_view` shows."""
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Where each head looks</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; }}
main {{ padding: 0 1rem; overflow-wrap: anywhere; }}
</style>
<main>
<h1>Where each head looks</h1>
<p>{escape(source)} → {escape(target)}</p>
{attention_view(panels)}</main>
</html>
"""
