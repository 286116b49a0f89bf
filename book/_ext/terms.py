"""The first use of a glossary's term in a chapter leads to the glossary.

The chapters' files stay as they are: the links are made while Sphinx reads them. A term
is not linked in the chapter that explains it, nor within code, formulas, links,
headings, tables, drawings and touchable parts.
"""

import json
import re
from functools import cache
from pathlib import Path

GLOSSARY = Path(__file__).resolve().parents[2] / "nbs" / "glossary.md"
IN_ORDER = {"before", "model", "data", "training", "decoding", "translation"}
MOST = 8  # links in one chapter
ENTRY = re.compile(r"^(\S.*)\n  (.*)$", re.M)
PLACE = re.compile(r"\]\(([\w/]+)\.ipynb")
HOMONYMS = {"memory", "query", "key", "value"}  # words of daily life, too
# What is left alone: fences, the data of touchable parts, code, formulas, roles, links,
# tags, headings, tables.
SKIP = re.compile(
    r"```.*?```|^:::\{touch\}.*?^:::$|`[^`\n]*`"
    r"|\$\$.*?\$\$|\$[^$\n]*\$|!?\[[^\]]*\]\([^)]*\)|<[^>\n]*>"
    r"|^(?:#|\||:::|\(\w).*?$",
    re.S | re.M,
)


@cache
def terms() -> dict[str, tuple[str, str]]:
    """Each term: the chapter that explains it, and its entry in the glossary."""
    text = GLOSSARY.read_text(encoding="utf-8").split("```{glossary}")[1]
    found = {}
    for names, explained in ENTRY.findall(text):
        place = PLACE.search(explained)
        for name in names.split(", "):
            if place and name not in HOMONYMS:
                found[name] = place[1], names
    return found


def link_terms(cells: list[dict], chapter: str) -> None:
    """Link the first uses of terms in a notebook's cells of text."""
    left = {
        name.lower(): entry
        for name, (place, entry) in terms().items()
        if place != chapter
    }
    count = 0
    for cell in cells:
        if cell["cell_type"] != "markdown" or not left:
            continue
        words = "|".join(map(re.escape, sorted(left, key=len, reverse=True)))
        use = re.compile(rf"(?<![\w-])({words})(?:s|es)?(?![\w-])", re.I)

        def link(match: re.Match) -> str:
            nonlocal count
            entry = left.get(match[1].lower())
            if entry is None or count == MOST:
                return match[0]
            del left[match[1].lower()]
            count += 1
            return f"{{term}}`{match[0]} <{entry}>`"

        text, at, parts = "".join(cell["source"]), 0, []
        for skipped in [*SKIP.finditer(text), None]:
            end = skipped.start() if skipped else len(text)
            parts += [use.sub(link, text[at:end]), skipped[0] if skipped else ""]
            at = skipped.end() if skipped else at
        cell["source"] = "".join(parts)


def read(app, docname: str, source: list[str]) -> None:
    """Sphinx event: link the terms of a chapter."""
    in_order = docname.partition("/")[0] in IN_ORDER
    if in_order and str(app.env.doc2path(docname)).endswith(".ipynb"):
        notebook = json.loads(source[0])
        link_terms(notebook["cells"], docname)
        source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", read, priority=400)  # before the cells get their tags
    return {"parallel_read_safe": True, "parallel_write_safe": True}
