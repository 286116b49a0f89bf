"""plots: what stands in a table is shown as it is."""

from markdown_it import MarkdownIt

from annotated_transformer.plots import Table


def test_a_table_shows_tokens_that_look_like_html():
    cells = ["</s>", "at 5 <unk>", "<s> | </s>", "`<pad>`", "$a < b$"]
    table = Table(["<unk>", "id"], [[cell, 3] for cell in cells])
    page = MarkdownIt("gfm-like", {"linkify": False}).render(table._repr_markdown_())
    shown = ["&lt;/s&gt;", "at 5 &lt;unk&gt;", "&lt;s&gt; | &lt;/s&gt;"]
    shown += ["<code>&lt;pad&gt;</code>", "$a &lt; b$"]
    assert "<th>&lt;unk&gt;</th>" in page
    assert [f"<td>{cell}</td>" in page for cell in shown] == [True] * len(cells)
