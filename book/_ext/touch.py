"""The directive `touch`: a part of a page that answers to the reader's hand.

    :::{touch} attention-sheet
    {"words": ["twenty", "first"]}
    :::

The argument names a custom element, of the script `_static/touch/NAME.js`; the body is
its JSON, joined with that of the file `data` where one is named. The page loads the
script when a reader comes near (near.js); without script and in print the drawing
`_static/touch/NAME.svg` stays, or NAME.STILL.svg where `still` is given; tools/touch.py
writes them.
"""

import json
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
TOUCH = ROOT / "book" / "_static" / "touch"


class Touch(SphinxDirective):
    """See the module."""

    required_arguments = 1
    has_content = True
    option_spec = dict.fromkeys(("data", "still"), directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        name, body = self.arguments[0], "\n".join(self.content) or "{}"
        kind = self.options.get("still")
        still = TOUCH / (f"{name}.{kind}.svg" if kind else f"{name}.svg")
        self.env.note_dependency(str(still))
        try:
            values = json.loads(body)
            if "data" in self.options:
                file = ROOT / self.options["data"]
                self.env.note_dependency(str(file))
                values |= json.loads(file.read_text(encoding="utf-8"))
            data = json.dumps(values, ensure_ascii=False)
            drawing = still.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise self.error(f"touch {name}: {error}") from error
        data = data.replace("</", "<\\/")
        markup = (
            f'<div class="touch"><{name}><script type="application/json">{data}'
            f"</script>{drawing}</{name}></div>"
        )
        return [nodes.raw("", markup, format="html")]


def setup(app):
    app.add_directive("touch", Touch)
    # pages.py leaves it out where nothing answers to a hand
    app.add_js_file("near.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
