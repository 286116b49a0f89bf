"""Cut Inter to the characters that the book's text and figures may use.

`python tools/text_font.py FOLDER` (of Debian's package fonts-inter-variable 4.0) writes
book/_static/fonts/text.woff2 and text-italic.woff2 for the pages, with weights from 400
to 700, and figures.ttf, of one weight, for matplotlib, which reads no other form.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

TARGET = Path(__file__).resolve().parents[1] / "book/_static/fonts"
CHARACTERS = """
U+0020-017F U+0192 U+02C6 U+02DA U+02DC U+0300-0304 U+0308 U+0391-03A9 U+03B1-03C9
U+2010-2027 U+202F U+2030 U+2032-2034 U+2039 U+203A U+2044 U+2070-209C U+20AC U+2113
U+2116 U+2122 U+2190-2199 U+21D0-21D4 U+2200-22FF U+2308-230B U+25A0-25FF U+2713 U+2717
""".replace("U+", "")
FEATURES = ["kern", "mark", "mkmk", "ccmp", "locl", "calt", "tnum", "sups", "subs"]


def cut(font: TTFont) -> TTFont:
    """Leave those characters, and what sets them."""
    options = subset.Options(hinting=False, layout_features=FEATURES)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=subset.parse_unicodes(CHARACTERS))
    cutter.subset(font)
    return font


def main() -> None:
    """Write the three fonts."""
    folder = Path(sys.argv[1])
    for style, name in (("roman", "text"), ("italic", "text-italic")):
        font = cut(TTFont(folder / f"Inter-{style}.var.ttf"))
        instantiateVariableFont(font, {"wght": (400, 700)}, inplace=True)
        font.flavor = "woff2"
        font.save(TARGET / f"{name}.woff2")
    font = cut(TTFont(folder / "Inter-roman.var.ttf"))
    instantiateVariableFont(font, {"wght": 400}).save(TARGET / "figures.ttf")


if __name__ == "__main__":
    main()
