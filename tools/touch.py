"""Write the drawings that stand for the book's touchable parts without script and in
print: python -m tools.touch. Each is what the part's own script draws first.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TOUCH = ROOT / "book" / "_static" / "touch"
PART = re.compile(
    r"^:::\{touch\} (\S+)\n(?::data: (\S+)\n)?(?::still: (\S+)\n)?(.*?)\n:::$",
    re.M | re.S,
)
DRAW = (
    "process.stdout.write(require(process.argv[1])"
    '.still(JSON.parse(require("fs").readFileSync(0))))'
)


def parts() -> Iterator[tuple[str, dict[str, Any]]]:
    """The drawing of each touchable part of the chapters, and the part's values."""
    for chapter in sorted((ROOT / "nbs").rglob("*.ipynb")):
        for cell in json.loads(chapter.read_text(encoding="utf-8"))["cells"]:
            for name, data, kind, body in PART.findall("".join(cell["source"])):
                more = json.loads((ROOT / data).read_text()) if data else {}
                yield f"{name}.{kind}" if kind else name, json.loads(body) | more


def still(name: str, values: dict[str, Any]) -> str:
    """One drawing."""
    script = TOUCH / f"{name.partition('.')[0]}.js"
    command = ["node", "-e", DRAW, str(script)]
    done = subprocess.run(
        command, input=json.dumps(values), capture_output=True, text=True, check=True
    )
    return done.stdout


def main() -> None:
    """Write all drawings."""
    for name, values in parts():
        (TOUCH / f"{name}.svg").write_text(still(name, values), encoding="utf-8")


if __name__ == "__main__":
    main()
