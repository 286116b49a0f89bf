"""The project's addresses, where they stand: in settings.ini, and copied from there.

`python -m tools.addresses` writes what settings.ini says in `git_url`, `doc_host` and
`doc_baseurl` into every tracked file that has the addresses of before, which are
pyproject.toml's.
"""

import configparser
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]


def stored(root: Path) -> list[str]:
    """What the files say."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    urls = tomllib.loads(text)["project"]["urls"]
    return addresses(urls["Source"], urls["Documentation"])


def wanted(root: Path) -> list[str]:
    """What settings.ini says."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(root / "settings.ini", encoding="utf-8")
    own = settings["DEFAULT"]
    return addresses(own["git_url"], own["doc_host"] + own["doc_baseurl"])


def addresses(repository: str, book: str) -> list[str]:
    """Both, and the repository's name by itself, as `OWNER/NAME`."""
    return [repository, book, urlsplit(repository).path.strip("/")]


def rewrite(root: Path) -> list[str]:
    """Write the addresses; the names of the files that changed."""
    listed = ["git", "-C", str(root), "ls-files", "-z"]
    names = subprocess.run(listed, check=True, capture_output=True).stdout.decode()
    changed, pairs = [], [*zip(stored(root), wanted(root), strict=True)]
    for name in filter(None, names.split("\0")):
        before = after = (root / name).read_bytes()
        for old, new in pairs:
            after = after.replace(old.encode(), new.encode())
        if after != before:
            (root / name).write_bytes(after)
            changed.append(name)
    return changed


if __name__ == "__main__":
    print(*rewrite(ROOT), sep="\n", file=sys.stderr)
