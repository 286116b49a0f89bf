"""Texts without labels, to train language models on."""

from pathlib import Path

from ..errors import UserError
from .labelled_texts import Examples, imdb
from .published_files import data_files, find_file
from .text_files import read_lines

TEXTS = {"tiny-shakespeare": "tinyshakespeare"}  # the file of each named text


def read_text(path: str | Path) -> str:
    """A file's text, each line ended by one line feed. Raises: as `read_lines`."""
    return "".join(f"{line}\n" for line in read_lines(path))


def load_text(name: str, root: str | Path | None = None) -> tuple[str, str]:
    """The training and the held-out text of a named text, or of a file of your own.

    The last tenth of a text is held out. Raises: UserError as `find_file` and
    `read_lines`, or for a name that is none.
    """
    if name in TEXTS:
        text = read_text(find_file(data_files()[f"text/{TEXTS[name]}.txt"], root))
    elif Path(name).is_file():
        text = read_text(name)
    else:
        raise UserError(f"{name}: no such file; or name {' or '.join(TEXTS)}")
    cut = int(0.9 * len(text))
    return text[:cut], text[cut:]


def unlabelled(
    data: str | Path | None = None, root: str | Path | None = None
) -> tuple[list[str], list[str]]:
    """(texts to train on, held-out texts), without any labels.

    Without `data` IMDb's 25,000 training reviews and 400 of its test reviews; of a file
    with a text on each line a tenth is held out, chosen by a hash of the text.
    Raises: UserError as `imdb` and `read_lines`, or for too few lines.
    """
    if data is None:
        train, test = imdb("train", root)[0].texts, imdb("test", root)[0].texts
        return train, test[:: len(test) // 400]
    texts = [line for line in read_lines(data) if line.strip()]
    known, held = Examples(texts, [0] * len(texts)).divide()
    if not known.texts or not held.texts:
        raise UserError(f"{data} has {len(texts)} texts, too few to hold some out")
    return known.texts, held.texts
