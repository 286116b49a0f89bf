"""Cells of nbs/after/series.ipynb for the new record; [[…]] is prose to decide."""
import json

P = "nbs/after/series.ipynb"
CELLS = {
"series-recorded": '''### The recorded run

`python -m benchmarks.after.series` measures all four forecasts at all four horizons, from the past 336 hours and from the past 512.
The Transformer now has the sizes that PatchTST's authors take for this series: three layers, vectors of 16 numbers, patches of 16 hours {cite}`nie2023time`.
For each context and horizon both sides make eight trials on the validation part: the linear model with eight penalties, the Transformer with four learning rates, each with patches that begin every 8 hours, and so overlap, and with patches side by side.
The winner is trained with three seeds, and a training keeps the weights that were best in validation.
The linear model has no seed, since its weights are the solution of a system of equations.
This is what each side tried at 96 hours from 336 and what won, with the test MSE: for the Transformer the mean over its seeds, ± half of a 95 % interval.''',
"series-record-grid": '''judged = json.loads(Path("../../results/after/fairness.json").read_text())
compared = judged["comparisons"]
Table(judged["header"], compared["ETTh1, 96 hours from 336"]["table"])''',
"series-record-fair": '''Is that a fair comparison?
`python -m benchmarks.comparisons` asks four things of every such record: does each winner lie inside its grid, were all sides tuned on one task with as many trials, did all that train make the same passes over the data, and with at least three seeds?
Here are all eight comparisons and what it objects to:''',
"series-record-reasons": '''rows = [
    [name, "; ".join(each["unfair"]) or "nothing"]
    for name, each in compared.items()
    if name.startswith("ETTh1")
]
Table(["comparison", "objections"], rows)''',
"series-record-mse": '''The next table has the MSE of each forecast by the hours forecast, and below ours what PatchTST's authors report from as many hours {cite}`nie2023time`.''',
"series-record-table": '''#| code-fold: true
record = json.loads(Path("../../results/after/series.json").read_text())
horizons, contexts = list(record["horizons"]), record["contexts"]
PUBLISHED = {
    "336": [0.375, 0.414, 0.431, 0.449],
    "512": [0.370, 0.413, 0.422, 0.447],
}
rows = [
    [name, *(f"{record['horizons'][h][name]['mse']:.3f}" for h in horizons)]
    for name in ("naive", "seasonal naive")
]
for back in contexts:
    found = [compared[f"ETTh1, {h} hours from {back}"]["table"] for h in horizons]
    for number, name in enumerate(("linear", "Transformer")):
        rows.append([f"{name}, {back} hours", *(each[number][-1] for each in found)])
    reported = [f"{each:.3f}" for each in PUBLISHED[back]]
    rows.append([f"PatchTST, {back} hours, reported", *reported])
Table(["MSE", *horizons], rows)''',
"series-record-mae": '''And the MAE, of both sides with the context that was better in validation:''',
"series-record-mae-table": '''#| code-fold: true
def over_seeds(horizon, name, score):
    """The mean of a score over seeds, if there are several."""
    part = record["horizons"][horizon][name]
    values = [each[score] for each in (part if isinstance(part, list) else [part])]
    return sum(values) / len(values)


NAMES = ("naive", "seasonal naive", "linear", "Transformer")
Table(
    ["MAE", *horizons],
    [[name, *(over_seeds(h, name, "mae") for h in horizons)] for name in NAMES],
    3,
)''',
"series-record-says": '''[[WHO WINS, at which horizons and contexts, against the intervals; the loss first. Beside PatchTST's reported numbers.]]

Do overlapping patches help?
The table has the lowest validation error of either form in the trials.''',
"series-record-figure": '''#| code-fold: true
#| label: fig-horizons
#| fig-cap: Test MSE by horizon, of both sides with the context that was better in validation. [[WHO IS LOWER WHERE]]
#| fig-alt: Test MSE over the four horizons. The naive forecast lies far above, the seasonal naive one in the middle, the linear model and the Transformer together at the foot.
figure, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
house_style(ax)
styles = {"naive": "s:", "seasonal naive": "^-.", "linear": "o--", "Transformer": "D-"}
for name, style in styles.items():
    heights = [over_seeds(ahead, name, "mse") for ahead in horizons]
    ax.plot([int(h) for h in horizons], heights, style, label=name, markersize=5)
ax.set(xlabel="hours to forecast", ylabel="test MSE", ylim=(0, None))
ax.set_xticks([96, 192, 336, 720])
ax.legend(frameon=False, ncols=2)
figure''',
"series-record-cost": '''What does each cost?
The table has the number of weights and the seconds at 96 hours: for the linear model with all the tuning, for the Transformer for one training.''',
"series-record-cost-table": '''#| code-fold: true
linear_part = record["horizons"]["96"]["linear"]
trained = record["horizons"]["96"]["Transformer"]
seconds = sum(each["seconds"] for each in trained) / len(trained)
back = next(c for c in contexts if contexts[c]["96"]["Transformer"] == trained)
device = {"cuda": "a GPU", "cpu": "one core"}[trained[0]["device"]]
Table(
    ["forecast", "context", "weights", "seconds", "of"],
    [
        ["linear", linear_part["context"], f"{linear_part['context'] * 96:,}"]
        + [linear_part["seconds"], "one core"],
        ["Transformer", back, f"{trained[0]['parameters']:,}", seconds, device],
    ],
    1,
)''',
}
NEW = ("series-record-figure", "series-record-overlap", '''#| code-fold: true
def lowest(group, stride):
    """The lowest validation error of the trials with this stride."""
    tries = [each for each in group["tries"] if each["stride"] == stride]
    return min(each["validation"] for each in tries)


groups = [(h, c, contexts[c][h]) for c in contexts for h in horizons]
rows = [[h, c, lowest(each, 8), lowest(each, 16)] for h, c, each in groups]
won = sum(overlapping < beside for *_, overlapping, beside in rows)
Table(["hours", "from", "overlapping", "side by side"], rows, 3)''')

nb = json.load(open(P))
for cell in nb["cells"]:
    if cell["id"] in CELLS:
        cell["source"] = CELLS[cell["id"]].splitlines(True)
at = next(i for i, c in enumerate(nb["cells"]) if c["id"] == NEW[0])
new = {"cell_type": "code", "execution_count": None, "id": NEW[1], "metadata": {}, "outputs": [], "source": NEW[2].splitlines(True)}
say = {"cell_type": "markdown", "id": "series-record-overlap-e", "metadata": {}, "source": ["[[Overlapping patches won in `won` of 8; no better / better.]] One seed a trial."]}
nb["cells"][at:at] = [new, say]
json.dump(nb, open(P, "w"), indent=1, ensure_ascii=False)
open(P, "a").write("\n")
