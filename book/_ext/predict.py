"""The directive `predict`: a question that a reader answers before seeing what follows.

    :::{predict} How large is the largest weight?
    :right: 2
    - a half
    - nearly one
    - an eighth

    Why that is so.
    :::

The list holds the choices and `right` is the number of the right one; a question with
`number` (and `within`, its tolerance) has no list and asks for a number. What follows
is the answer's why. The rest of the section is shown once the answer is open: by a
choice (predict.js) or, without script too, by hand (book.css). In print it is open.

Why not a library: jupyterquiz writes a code cell's output in JavaScript alone, which
leaves nothing without script or in print, and sees one click and no keyboard's radio
buttons; sphinx-exercise has exercise and solution but no choice to be right or wrong;
sphinx-togglebutton and sphinx-design fold an answer and ask for nothing.
"""

from html import escape

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

BUTTON = '<button type="button" hidden>Check</button>'


def html(text: str) -> nodes.raw:
    """A piece of markup."""
    return nodes.raw("", text, format="html")


class Predict(SphinxDirective):
    """See the module."""

    required_arguments, final_argument_whitespace = 1, True
    has_content = True
    option_spec = {
        "right": directives.positive_int,
        "number": float,
        "within": float,
    }

    def run(self) -> list[nodes.Node]:
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        question, _ = self.state.inline_text(self.arguments[0], self.lineno)
        number = "number" in self.options
        name = f"predict-{self.env.new_serialno('predict')}"
        if number:
            answer = self.options["number"]
            within = self.options.get("within", 0.0)
            right = f'data-right="{answer:g}" data-within="{within:g}"'
            choices = [
                html(f'<input type="number" step="any" aria-labelledby="{name}"/>')
            ]
            told: list[nodes.Node] = [nodes.Text(f"{answer:g}")]
        else:
            items = self.items(body)
            number_of_right = self.options["right"]
            right = f'data-right="{number_of_right}"'
            choices = [
                part for i, item in enumerate(items, 1) for part in radio(name, i, item)
            ]
            told = [each.deepcopy() for each in items[number_of_right - 1]]
        return [
            html(f'<div class="predict" {right}><fieldset><legend id="{name}">'),
            nodes.inline("", "", *question),
            html("</legend>"),
            *choices,
            html(f'{BUTTON}</fieldset><p class="verdict" role="status"></p>'),
            html("<details><summary>Answer, and what follows</summary>"),
            nodes.paragraph("", "", nodes.strong("", "", *told)),
            *body.children,
            html("</details></div>"),
        ]

    def items(self, body: nodes.Element) -> list[list[nodes.Node]]:
        """The choices' words, with the list taken out of the body."""
        first = body.children[0] if body.children else None
        if not isinstance(first, nodes.bullet_list):
            raise self.error("predict needs a list of choices, or :number:")
        body.remove(first)
        items = [item.children[0].children for item in first.children]
        if not 1 <= self.options.get("right", 0) <= len(items):
            raise self.error(f"predict needs :right:, from 1 to {len(items)}")
        return items


def radio(name: str, value: int, words: list[nodes.Node]) -> list[nodes.Node]:
    """One choice: a radio button and its label."""
    start = f'<label><input type="radio" name="{escape(name)}" value="{value}"/>'
    return [html(start), nodes.inline("", "", *words), html("</label>")]


def setup(app):
    app.add_directive("predict", Predict)
    # pages.py leaves it out where a page has no question
    app.add_js_file("predict.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
