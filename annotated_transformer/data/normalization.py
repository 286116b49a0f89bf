"""Text mended before a model reads it: straight quotes, no capitals, no addresses."""

import re
from unicodedata import category

QUOTES = str.maketrans(dict.fromkeys("“”„‟«»", '"') | dict.fromkeys("‘’‚", "'"))
PRONOUN = re.compile(r"(?<!\w)i(?![\w\u0300-\u036f])")  # no accent over it

# An e-mail or web address, also one that begins with no "www." and has a common ending;
# a telephone number, of seven digits at least and in groups. There is nothing to
# translate in them, so one character stands for each.
ADDRESS = re.compile(
    r"(?<![\w.%+-])[\w.%+-]+@[\w-]+(?:\.[\w-]+)+|(?:https?://|www\.)\S*[\w/]"
    r"|(?<![\w.@-])(?:[\w-]+\.)+(?:com|org|net|edu|gov|info|io|eu|de|uk)"
    r"(?![\w-])(?:/\S*\w)?"
)
PHONE = re.compile(
    r"(?<![\w.,:$€£+-])(?=(?:[^0-9]{0,2}[0-9]){7})[+(]{0,2}[0-9]{2,6}\)?"
    r"(?:(?:[ -]{1,2}|/(?=[0-9]{5}))[0-9]{2,8}){1,5}(?![.,:]?[0-9])(?![-\w/])"
)
COPIED = re.compile(f"{ADDRESS.pattern}|{PHONE.pattern}")
HIDDEN = "\N{OBJECT REPLACEMENT CHARACTER}"


def normalize_text(text: str) -> str:
    """The text with straight quotes and, if it shouts or is a heading, in lower case.

    An address or telephone number becomes one character, `HIDDEN`.

    A text shouts that has two words at least, cut at spaces, and no small letter, so
    "OK" and "NATO" alone are left, and so is "USA" in a sentence; one of four words or
    more that all begin with a capital is a heading. The first letter stays a capital,
    and so does the English "I".
    """
    text = COPIED.sub(HIDDEN, text).translate(QUOTES)
    words = [word for word in text.split(" ") if any(map(str.isalpha, word))]
    if not (_shouts(text, words) or _is_heading(words)):
        return text
    first = next(index for index, letter in enumerate(text) if letter.isalpha()) + 1
    return text[:first] + PRONOUN.sub("I", text[first:].lower())


def _shouts(text: str, words: list[str]) -> bool:
    return len(words) > 1 and not any(category(letter) == "Ll" for letter in text)


def _is_heading(words: list[str]) -> bool:
    initials = (next(filter(str.isalpha, word)) for word in words)
    return len(words) > 3 and all(category(letter) == "Lu" for letter in initials)
