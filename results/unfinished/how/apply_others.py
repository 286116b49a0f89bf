"""python apply_others.py ROOT: tools/readme.py and family.ipynb read the new records."""
import json, sys
from pathlib import Path
root = Path(sys.argv[1])
path = root / "tools/readme.py"
text = path.read_text()
def swap(old, new):
    global text
    assert old in text, old; text = text.replace(old, new, 1)
swap('''def table(head: Iterable''', '''def tested(place: str, **case: Any) -> list[dict[str, Any]]:
    """The runs of a study that are of this case and read the test, at what won."""
    lines = (ROOT / "results" / place).read_text(encoding="utf-8").splitlines()
    runs = [run for run in map(json.loads, lines) if case.items() <= run.items()]
    best = max(runs, key=lambda run: (run["valid_accuracy"], -run["valid_loss"]))
    won = {name: best[name] for name in SETTINGS if name in best}.items()
    return [run for run in runs if "accuracy" in run and won <= run.items()]


def table(head: Iterable''')
swap('''PRECISIONS = {''', '''SETTINGS = ("rate", "dropout", "n", "C")  # what is searched for in after/
PRECISIONS = {''')
swap('''    reviews = record("after/classifier.json")
    models, half = reviews["models"], reviews["positive"]["test"]
    images = record("after/vision.json")["parts"]
    classes = [sum(row) for row in images["linear"]["confusion"]]
''', '''    reviews = {
        side: tested("after/classifier.jsonl", side=side)
        for side in ("linear", "learned")
    }
    images = {
        part: tested("after/vision.jsonl", part=part, images=55_000)
        for part in ("linear", "transformer", "convolution")
    }
    classes = [sum(row) for row in images["linear"][0]["confusion"]]
''')
swap('100 * max(half, 1 - half),', '50.0,')
for name, key in (("models", "linear"), ("models", "learned"), ("images", "convolution"), ("images", "transformer")):
    swap(f'100 * {name}["{key}"]["accuracy"]', f'percent({"reviews" if name == "models" else name}["{key}"])')
swap('''def scoreboard()''', '''def percent(runs: Iterable[dict[str, Any]]) -> float:
    """The mean share of right answers."""
    return 100 * mean(run["accuracy"] for run in runs)


def scoreboard()''')
path.write_text(text)

path = root / "nbs/after/family.ipynb"
book = json.loads(path.read_text())
cell = next(c for c in book["cells"] if c["id"] == "family-measured")
text = "".join(cell["source"])
swap('''everyday, text = record(''', '''def tested(study, **case):
    """The runs of a study that are of this case and read the test, at what won."""
    lines = Path(f"../../results/after/{study}.jsonl").read_text().splitlines()
    runs = [run for run in map(json.loads, lines) if case.items() <= run.items()]
    best = max(runs, key=lambda run: (run["valid_accuracy"], -run["valid_loss"]))
    won = {name: best[name] for name in ("rate", "dropout", "n", "C") if name in best}
    return [r for r in runs if "accuracy" in r and won.items() <= r.items()]


def right(runs):
    return sum(run["accuracy"] for run in runs) / len(runs)


everyday, text = record(''')
swap('''reviews, images = record("after/classifier")["models"], record("after/vision")["parts"]
''', '''reviews = {side: tested("classifier", side=side) for side in ("learned", "linear")}
images = {
    part: tested("vision", part=part, images=55_000)
    for part in ("transformer", "convolution")
}
''')
for group, ours_, key, clock, other, digits in (("reviews", "learned", "learned", "processor_seconds", "linear", 1), ("images", "transformer", "transformer", "seconds", "convolution", 2)):
    swap(f'{group}["{ours_}"]["parameters"]', f'{group}["{ours_}"][0]["parameters"]')
    swap(f'{group}["{ours_}"]["{clock}"]', f'{group}["{ours_}"][0]["seconds"]')
    swap(f"{{{group}['{ours_}']['accuracy']:.{digits}%}}", f"{{right({group}['{ours_}']):.{digits}%}}")
    swap(f"{{{group}['{other}']['accuracy']:.{digits}%}}", f"{{right({group}['{other}']):.{digits}%}}")
cell["source"] = text.splitlines(keepends=True)
path.write_text(json.dumps(book, ensure_ascii=False, indent=1) + "\n")
print("TODO: family says 'on a processor, without a GPU' and 'Minutes are of one core': say which were on a GPU")
