"""python apply_vision.py ROOT: the cells of the new record of vision; then read "TODO"."""
import json, sys
from pathlib import Path
path = Path(sys.argv[1], "nbs/after/vision.ipynb")
book = json.loads(path.read_text())
cells = {c["id"]: c for c in book["cells"]}
def put(name, text): cells[name]["source"] = text.strip("\n").splitlines(keepends=True)
def swap(name, old, new):
    text = "".join(cells[name]["source"]); assert old in text, (name, old); put(name, text.replace(old, new))

put("vision-mnist-run", '''
### How much does it need to see?

`python -m benchmarks.after.vision` trains the model of the command above beside references: a small network with two convolutions in the manner of LeNet {cite}`lecun1998gradient`, and a linear model on the pixels.
All go through the same loop and see moved images; a linear model can't follow a digit that moves, so it is trained without moves as well.

Each is trained on 1,000, 5,000, 20,000 and 55,000 images; the other 5,000 are for validation.
Every run makes 3,000 updates of 128 images, so a small set is seen more often: 55,000 images are passed 7 times, 1,000 images 384 times.
At each size the learning rate of each model is the best of five on the validation images, and is then run with three seeds.

**Predict**: with a thousand images, will the Transformer lie nearer to the convolutions or to the linear model? And with 55,000?
''')
put("vision-mnist-table", '''
#| code-fold: true
lines = Path("../../results/after/vision.jsonl").read_text().splitlines()
runs = [json.loads(line) for line in lines]
sizes = sorted({run["images"] for run in runs})
names = {
    "linear-moved": "linear model, moved images",
    "linear": "linear model",
    "transformer": "vision Transformer",
    "convolution": "two convolutions",
}


def tested(part, images):
    """The runs of three seeds, at the rate that won."""
    own = [r for r in runs if (r["part"], r["images"]) == (part, images)]
    (rate,) = {run["rate"] for run in own if run["seed"] != 1}
    return [run for run in own if run["rate"] == rate]


def wrong(part, images):
    """The mean of wrong test images, in percent, and half its 95 % interval."""
    shares = [run["wrong"] / 100 for run in tested(part, images)]
    return mean(shares), Spread.of({"": shares}).half_width(len(shares))


found = {part: {images: wrong(part, images) for images in sizes} for part in names}
parameters = {part: tested(part, sizes[0])[0]["parameters"] for part in names}
Table(
    ["wrong of the test images, %", "parameters", *(f"{n:,}" for n in sizes)],
    [
        [name, f"{parameters[part]:,}"]
        + [f"{middle:.1f} ± {half:.1f}" for middle, half in found[part].values()]
        for part, name in names.items()
    ],
)
''')
put("vision-mnist-says", '''
TODO, from the table: what is won by whom at 1,000 and at 55,000, and by what factor the
Transformer has more mistakes than the convolutions at each size (`ratios`); whether the
ratio shrinks with more images; that moved images make the linear model worse.
(The intervals are those of three seeds on the same test images and the same subsets.)
''')
put("vision-mnist-figure", '''
#| code-fold: true
#| label: fig-mnist
#| fig-cap: "Mistakes on the test images by the number of training images, at the same number of updates; bars are 95 % intervals of three seeds. TODO: one sentence on what it shows."
#| fig-alt: The share of test images read wrong over the number of training images, both on logarithmic scales, a curve for each of four models. TODO
figure, ax = axes(6.0, 3.4)
styles = ("s:", "s-.", "o-", "^--")
for (part, name), style in zip(names.items(), styles, strict=True):
    means, halves = zip(*found[part].values(), strict=True)
    ax.errorbar(sizes, means, halves, fmt=style, label=name, markersize=4, capsize=2)
ax.set(xlabel="training images", ylabel="test images wrong, %", xscale="log", yscale="log")
ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
ax.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
ax.minorticks_off()
ax.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
figure
''')
grid = json.loads(json.dumps(cells["vision-mnist-figure"])) | {"id": "vision-mnist-grid"}
text = {"cell_type": "markdown", "id": "vision-mnist-grid-says", "metadata": {}, "source": []}
cells |= {"vision-mnist-grid": grid, "vision-mnist-grid-says": text}
put("vision-mnist-grid-says", '''
What was tried, and what won on the validation images, is on record too:
''')
put("vision-mnist-grid", '''
#| code-fold: true
judged = json.loads(Path("../../results/after/fairness.json").read_text())
judged = [judged["comparisons"][f"MNIST, {n:,} images"] for n in sizes]
assert not any(each["unfair"] for each in judged)
Table(
    ["", "rates tried", *(f"won at {n:,}" for n in sizes)],
    [
        [rows[0][0], *(row.removeprefix("rate ") for row in (rows[0][1], *won))]
        for rows in zip(*(each["table"] for each in judged), strict=True)
        for won in [[row[2] for row in rows]]
    ],
)
''')
swap("vision-confusions", 'confusion = torch.tensor(found["vision Transformer"]["confusion"])',
     'confusions = [run["confusion"] for run in tested("transformer", sizes[-1])]\nconfusion = torch.tensor(confusions).sum(0)')
swap("vision-confusions", 'assert mistakes.sum() == found["vision Transformer"]["wrong"]\n', "")
swap("vision-prior", "The five most frequent confusions of the recorded run:", "The five most frequent confusions of its three runs on 55,000 images, together:")
swap("vision-demo-imports", "from pathlib import Path\n", "from pathlib import Path\nfrom statistics import mean\n")
swap("vision-demo-imports", "from annotated_transformer.training.task import train_task\n", "from annotated_transformer.training.task import train_task\nfrom annotated_transformer.translation.table3 import Spread\n") if "train_task\n" in "".join(cells["vision-demo-imports"]["source"]) else swap("vision-demo-imports", "from annotated_transformer.training.task import train_task", "from annotated_transformer.training.task import train_task\nfrom annotated_transformer.translation.table3 import Spread")
where = [c["id"] for c in book["cells"]].index("vision-mnist-figure") + 1
book["cells"][where:where] = [text, grid]
path.write_text(json.dumps(book, ensure_ascii=False, indent=1) + "\n")
