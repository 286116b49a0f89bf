"""Source text mended before a model reads it: straight quotes, no text in capitals."""

import re
from unicodedata import category

QUOTES = str.maketrans(dict.fromkeys("“”„‟«»", '"') | dict.fromkeys("‘’‚", "'"))
PRONOUN = re.compile(r"(?<!\w)i(?![\w\u0300-\u036f])")  # no accent over it


def tidied(text: str) -> str:
    """The text with straight quotes and, if it shouts, in lower case.

    A text shouts that has two words at least, cut at spaces, and no small letter: its
    first letter stays a capital, and so does the English "I". So "OK" and "NATO" alone
    are left, and so is "USA" in a sentence.
    """
    text = text.translate(QUOTES)
    words = [word for word in text.split(" ") if any(map(str.isalpha, word))]
    if len(words) < 2 or any(category(letter) == "Ll" for letter in text):
        return text
    first = next(place for place, letter in enumerate(text) if letter.isalpha()) + 1
    return text[:first] + PRONOUN.sub("I", text[first:].lower())
