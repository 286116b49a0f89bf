"""Cells of nbs/after/masked_language_model.ipynb for the new record; [[…]] is prose to decide."""
import json

P = "nbs/after/masked_language_model.ipynb"
CELLS = {
"mlm-imdb-t": '''## Film reviews, without labels

The full runs read nine tenths of IMDb's 25,000 training reviews {cite}`maas2011learning` and never look at their labels; the other tenth is held out, and no test review is read.
The model has two layers, $d_{\\text{model}} = 128$ and a vocabulary of 8,000.
It is pretrained for 500, 2,000 and 8,000 updates of 128 rows, each with three seeds.
`python -m benchmarks.after.masked_language_model` does it all.''',
"mlm-record": '''#| code-fold: true
record = json.loads(Path("../../results/after/masked-language-model.json").read_text())
run, budgets = record["pretraining"], record["budgets"]
curve, batch = run["curve"], run["training"]["batch"]
UPDATES = sorted({each["updates"] for each in budgets})


def mean_of(updates, name):
    """The mean over the seeds of a budget."""
    values = [each[name] for each in budgets if each["updates"] == updates]
    return sum(values) / len(values)


Table(
    ["updates", "passes", "held-out loss", "right", "seconds"],
    [
        [
            f"{updates:,}",
            # short rows come first, so many more of them at once
            f"{updates * batch / run['rows']:.1f}",
            f"{mean_of(updates, 'valid'):.2f}",
            f"{mean_of(updates, 'right'):.0%}",
            f"{mean_of(updates, 'seconds'):.0f}",
        ]
        for updates in UPDATES
    ],
)''',
"mlm-record-curve": '''#| code-fold: true
#| label: fig-mlm-pretraining
#| fig-cap: The longest pretraining on reviews, recorded. Held-out rows have 128 tokens; rows in training have 32 until update 6,000. [[WHAT IT SHOWS]]
#| fig-alt: Two curves over 8,000 updates, of the training loss and the held-out loss. [[SHAPE]]
named = {
    name: {p["step"]: p[key] for p in curve}
    for name, key in (("learned from", "train"), ("held out", "valid"))
}
curves({"update": named}, "nats for each hidden token")''',
"mlm-record-curve-e": '''[[At the end a held-out loss of … nats and … % of hidden tokens named: from the table.]]
(The two losses aren't the same thing: one of five tokens that it is asked for in training isn't behind `[MASK]`.)
What does it put into a gap?''',
"mlm-record-fills": '''#| code-fold: true
fills = {text: dict(gap[0]) for text, gap in record["fills"].items()}
Table(
    ["text", "likeliest"],
    [
        [f"`{text}`", ", ".join(f"{t.strip('▁')} {p:.0%}" for t, p in best.items())]
        for text, best in fills.items()
    ],
)''',
"mlm-record-fills-e": '''[[Phrases of reviewers; and the two sentences on acting: same guesses or not?]]''',
"mlm-imdb-few-t": '''## Film reviews, with a few labels

Now the test: is a review for or against the film?
From the training reviews we draw 100, 1,000 and 10,000 *with* their labels, and train on the same ones:

- **pretrained**: begins with the embedding and layers from above;
- **from nothing**: the same architecture, drawn at random, with as many passes;
- **linear**: scikit-learn's logistic regression on TF-IDF, the reference of [the classifier's chapter](classifier.ipynb);
- a **probe**: a logistic regression on the mean of the encoder's vectors, while the encoder stays as it is.

Each is run with three seeds; a seed draws the labelled reviews, and the pretrained model has its own, too.
The first three were tuned with twelve trials each, at 1,000 labels of another draw, by the same 1,000 held-out reviews; the probe chose its penalty by them each time.
(With 100 labels that is a luxury, for the choices then rest on ten times as many labels as the training does; all sides have it.)
Pretraining's own settings weren't searched.
Both networks make ten passes of at least 1,000 reviews, with 10,000 labels four, and the best pass of each run counts.
A review of more than 128 tokens is read in pieces, and the mean goes over the places of all of them, as in the classifier's chapter.
The score is the share of right answers on 5,000 of the test reviews, a fixed draw.''',
"mlm-few-curve": '''#| code-fold: true
#| label: fig-mlm-few
#| fig-cap: Film reviews: right answers by the number of updates of pretraining, for 100, 1,000 and 10,000 labelled reviews; the mean of three seeds and their range. No updates are training from nothing. [[WHERE IT PAYS]]
#| fig-alt: Three panels, one for each number of labels, each with a curve of fine-tuning, one of the probe, and a level line of the linear model. [[SHAPE]]
NUMBERS = sorted({point["labels"] for point in record["points"]})
SHOWN = [0, *UPDATES]


def fine_tuned(labels, updates):
    """The test scores of the seeds; with no updates those from nothing."""
    side = {"side": "pretrained", "updates": updates} if updates else {"side": "nothing"}
    wanted = side | {"labels": labels}
    points = [p for p in record["points"] if wanted.items() <= p.items()]
    return [point["test"] for point in points]


def probed(labels, updates):
    """The test scores of the probe."""
    probes = [each for each in record["probes"] if each["updates"] == updates]
    return [each["labels"][str(labels)]["test"] for each in probes]


def linear(labels):
    """The mean test score of the linear model."""
    wanted = {"side": "linear", "labels": labels}
    scores = [p["test"] for p in record["points"] if wanted.items() <= p.items()]
    return sum(scores) / len(scores)


figure, panels = plt.subplots(
    1, len(NUMBERS), figsize=(9, 3.2), layout="constrained", sharey=True
)
for ax, labels in zip(panels, NUMBERS, strict=True):
    house_style(ax)
    for name, scores, style in (
        ("fine-tuned", fine_tuned, "o-"),
        ("probe", probed, "s--"),
    ):
        runs = [scores(labels, updates) for updates in SHOWN]
        means = [sum(each) / len(each) for each in runs]
        reach = [
            [mean - min(each), max(each) - mean]
            for mean, each in zip(means, runs, strict=True)
        ]
        bars = list(zip(*reach, strict=True))
        ax.errorbar(range(len(SHOWN)), means, bars, fmt=style, label=name, capsize=3)
    ax.axhline(linear(labels), color=COLOURS["grey"], linestyle=":", label="linear")
    ax.set_xticks(range(len(SHOWN)), [f"{n:,}" for n in SHOWN])
    ax.set(title=f"{labels:,} labels", xlabel="updates of pretraining")
panels[0].set(ylabel="right")
panels[0].legend(frameon=False)
figure''',
"mlm-few-table": '''#| code-fold: true
judged = json.loads(Path("../../results/after/fairness.json").read_text())
compared = {n: c for n, c in judged["comparisons"].items() if n.endswith("labels")}
compared = {n: c for n, c in compared.items() if "all" not in n}
Table(
    ["labels", *(row[0] for row in next(iter(compared.values()))["table"]), "unfair"],
    [
        [name.removeprefix("IMDb, ").removesuffix(" labels")]
        + [row[-1] for row in each["table"]]
        + ["; ".join(each["unfair"]) or "nothing"]
        for name, each in compared.items()
    ],
)''',
"mlm-few-read": '''[[WHO LEADS at each number of labels (the loss first), and where the curve of pretraining crosses training from nothing and the linear model; the probe beside fine-tuning.]]
The score of each is a mean over three seeds, ± half of a 95 % interval, after the longest pretraining; the last column says what `python -m benchmarks.comparisons` objects to.
This is what each side tried, and what won:''',
"mlm-few-why": '''[[Heading and text by the outcome: "Why doesn't it help here?" if it doesn't; else "What did it learn that helps?"]]
Which tokens have vectors that point in similar directions?''',
"mlm-near": '''#| code-fold: true
near = record["neighbours"]
Table(["token", "nearest"], [[word, ", ".join(each)] for word, each in near.items()])''',
}
GRID = '''#| code-fold: true
some = compared["IMDb, 1,000 labels"]
Table(judged["header"], some["table"])'''

nb = json.load(open(P))
for cell in nb["cells"]:
    if cell["id"] in CELLS:
        cell["source"] = CELLS[cell["id"]].splitlines(True)
at = next(i for i, c in enumerate(nb["cells"]) if c["id"] == "mlm-few-why")
nb["cells"].insert(at, {"cell_type": "code", "execution_count": None, "id": "mlm-few-grid", "metadata": {}, "outputs": [], "source": GRID.splitlines(True)})
tools = next(c for c in nb["cells"] if c["id"] == "mlm-tools")
text = "".join(tools["source"]).replace("from pathlib import Path\n\n\n", "from pathlib import Path\n\nimport matplotlib.pyplot as plt\n\n")
text = text.replace("from annotated_transformer.plots import Table, axes, curves", "from annotated_transformer.plots import COLOURS, Table, axes, curves, house_style")
tools["source"] = text.splitlines(True)
json.dump(nb, open(P, "w"), indent=1, ensure_ascii=False)
open(P, "a").write("\n")
