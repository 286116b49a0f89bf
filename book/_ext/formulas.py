"""Formulas as MathML, which browsers draw by themselves: no page needs a script.

The paper's own numbers, `\\tag{1}`, stand at the right margin.
"""

import re
from html import escape

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging

logger = logging.getLogger(__name__)

TAG = re.compile(r"\s*\\tag\{([^{}]*)\}")
converter = LatexToMathML(fancy_error=False)


def mathml(latex: str, display: bool, where: nodes.Node) -> str:
    """One formula as MathML; one that can't be read is a warning, and stays LaTeX."""
    try:
        return converter.convert_with_local_state(latex, displaystyle=display)
    except LatexError as error:
        logger.warning("formula %r: %s", latex, error, location=where)
        return f"<code>{escape(latex)}</code>"


def visit_inline(translator, node: nodes.math) -> None:
    """A formula within a sentence."""
    formula = mathml(node.astext(), False, node)
    translator.body.append(f'<span class="math">{formula}</span>')
    raise nodes.SkipNode


def visit_block(translator, node: nodes.math_block) -> None:
    """A formula on a line of its own, with its number."""
    latex = node.astext().strip()
    number = TAG.search(latex)
    formula = mathml(TAG.sub("", latex), True, node)
    label = f'<span class="eqno">({escape(number[1])})</span>' if number else ""
    start = translator.starttag(node, "div", CLASS="math")
    translator.body.append(f"{start}{formula}{label}</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
