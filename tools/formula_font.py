"""Cut STIX Two Math to the signs that formulas of the book may use.

`python tools/formula_font.py stix-two-math-latin-400-normal.woff2` (from the package
@fontsource/stix-two-math 5.3.0) writes book/_static/fonts/formulas.woff2. Brackets and
roots keep all their sizes, but every root gets the width of the smallest: Chromium
leaves room for the widest behind each of them.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.pens.transformPen import TransformPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont

TARGET = Path(__file__).resolve().parents[1] / "book/_static/fonts/formulas.woff2"
ROOT_SIGN = 0x221A
SIGNS = """
U+0020-007E U+00A0 U+00AC U+00B1 U+00B7 U+00D7 U+00F7 U+02C6 02DC 00AF 0302-0308
U+0391-03A9 U+03B1-03C9 U+03D1 U+03D5 U+03F5 U+2013 U+2014 U+2016 U+2026
U+2032-2034 U+2061-2064 U+20D7 U+210E U+2113 U+211D U+2115 U+2124 U+1D53C
U+2190-2194 U+21D0-21D4 U+21A6 U+2200-220C U+220F U+2211-221A U+221D-2220
U+2223-222B U+2236 U+223C U+2243 U+2245 U+2248 U+2260-2265 U+226A U+226B
U+2282-2287 U+2295-2299 U+22A4 U+22A5 U+22C0-22C5 U+22EE-22F1 U+2308-230B U+27E8
U+27E9 U+2A00-2A02 U+1D400-1D467 U+1D6A4 U+1D6A5 U+1D6E2-1D71B U+1D49C-1D4B5
U+2112 U+1D7CE-1D7D7
""".replace("U+", "")


def cut(font: TTFont) -> None:
    """Leave the signs alone, and what draws them at each size."""
    options = subset.Options(hinting=False, layout_features=[])
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=subset.parse_unicodes(SIGNS))
    cutter.subset(font)


def narrow_roots(font: TTFont) -> None:
    """Give all sizes of the root the width of the smallest."""
    root = font.getBestCmap()[ROOT_SIGN]
    variants = font["MATH"].table.MathVariants
    place = variants.VertGlyphCoverage.glyphs.index(root)
    sizes = variants.VertGlyphConstruction[place]
    names = [each.VariantGlyph for each in sizes.MathGlyphVariantRecord]
    names += [each.glyph for each in sizes.GlyphAssembly.PartRecords]
    glyphs, width = font.getGlyphSet(), font["hmtx"][root][0]
    for name in set(names) - {root}:
        wide, left = font["hmtx"][name]
        pen = TTGlyphPen(glyphs)
        glyphs[name].draw(TransformPen(pen, (width / wide, 0, 0, 1, 0, 0)))
        font["glyf"][name] = pen.glyph()
        font["hmtx"][name] = (width, round(left * width / wide))


if __name__ == "__main__":
    font = TTFont(sys.argv[1])
    cut(font)
    narrow_roots(font)
    font.flavor = "woff2"
    font.save(TARGET)
