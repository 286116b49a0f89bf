md("dist-title", r'''
# Distillation: a small model learns from a large one

> From a year before the paper, by Kim and Rush: a large translator writes the text that a small one learns from.

The [everyday translator](../training/recipes.ipynb) has eight million weights.
Suppose your device has room for a sixth of them.
A smaller model can be trained on the same sentences, and will be worse.
After this chapter you can let a large model write a small one's lessons, say why they are easier than those that people wrote, and tell what that was worth in BLEU.

```{raw} html
<svg class="drawing" style="max-width:29rem" viewBox="0 0 460 214" role="img" aria-label="Above, the usual way: pairs by people, English and German, go to a model. Below, distillation: the English alone goes to a large model, the teacher, which writes the German anew; a small model, the student, learns from the English and the teacher's German.">
<defs><marker id="distil" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>
<g class="boxes"><rect x="8" y="26" width="170" height="44" rx="7"/><rect x="8" y="138" width="86" height="44" rx="7"/><rect x="252" y="138" width="92" height="44" rx="7"/></g>
<g class="boxes second"><rect x="360" y="26" width="92" height="44" rx="7"/><rect x="128" y="126" width="92" height="68" rx="7"/><rect x="378" y="138" width="74" height="44" rx="7"/></g>
<g class="arrows"><path d="M178 48 H356" marker-end="url(#distil)"/><path d="M94 160 H124" marker-end="url(#distil)"/><path d="M220 160 H248" marker-end="url(#distil)"/><path d="M344 160 H374" marker-end="url(#distil)"/><path d="M51 182 V206 H415 V186" marker-end="url(#distil)"/></g>
<g class="words"><text x="93" y="45">English, and</text><text x="93" y="62">people's German</text><text x="406" y="53">model</text><text x="51" y="165">English</text><text x="174" y="155">teacher,</text><text x="174" y="173">large</text><text x="298" y="155">the teacher's</text><text x="298" y="172">German</text><text x="415" y="165">student</text><text x="230" y="16">the usual way</text><text x="230" y="112">distillation</text></g>
</svg>
```
''')
code("dist-exp","#| default_exp after.distillation")
code("dist-imports", r'''
#| export
#| code-fold: true
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from annotated_transformer.data.augmentation import VariedPairs
from annotated_transformer.translation.prepared_data import InitFrom
from annotated_transformer.translation.translator import Translator
''')
code("dist-record", r'''
#| code-fold: true
# Imports, the recorded runs, and a large model
import json
from pathlib import Path
from statistics import mean

from annotated_transformer import load
from annotated_transformer.plots import Table
from annotated_transformer.translation.table3 import Spread

results = Path("../../results/after")
about = json.loads((results / "distillation.json").read_text("utf-8"))
lines = (results / "distillation.jsonl").read_text("utf-8").splitlines()
recorded = [json.loads(line) for line in lines]
teacher = load("tatoeba-en-de", device="cpu", engine="torch")
''')
md("dist-people-t", r'''
## People translate one sentence in many ways

Both models learn from Tatoeba, where thousands of people have left their translations.
One in six of its English sentences has more than one, and some have dozens.
Here are three, with five of the translations that people gave them, and with what the large model writes:
''')
code("dist-people", r'''
#| code-fold: true
rows = []
for source, each in about["examples"].items():
    more = each["in all"] - len(each["people"])
    shown = " ".join(each["people"])
    rows.append([source, shown, f"{more} more", each["the teacher"]])
Table(["English", "people", "and", "the large model"], rows)
''')
code("dist-people-check", r'''
#| hide
share = about["with several"] / about["sources"]
assert 0.17 < share < 0.19
assert about["pairs"] == {"people": 163_957, "the teacher": about["sources"]}
''')
md("dist-several", r'''
Nearly all that people wrote is right, so whoever reads such pairs can't predict which one comes next.
So a model that learns from them has to spread its probability over all, and must remember, word after word, which of them it has begun: after "hast" comes "du", after "haben" it's "Sie".
A large model has room for that.
A small one spends on the style of thousands of people what it needs for the language.
(Even the large one gets the third sentence wrong, though it was trained on it: *Bereich* is an area.)

:::{predict} The large model has learned from all those people. How does it choose which of their translations to write?
:right: 2
- by chance, each as often as people wrote it
- the one it finds most probable
- in turn, another one each time that the sentence occurs

[Beam search](../translation/search.ipynb) looks for the most probable sentence (apart from its length penalty), mostly finds one near it, and the same one each time. Whatever the model knows about the others, they are gone from its text.
:::

## Its own text is easier to predict

How easy, the large model says itself.
Here are eight sentences with our own translations.
`score` gives the log-probability of a translation, and divided by the number of tokens it is the model's loss on it.
''')
code("dist-own", r'''
#| code-fold: true
# Eight sentences, and our translations
sources = """I have to go to work now.|Can you help me, please?|The soup is too hot.
My brother is older than me.|We have no milk left.|What are you doing tonight?
She has never been there.|I forgot my umbrella.""".replace("\n", "|").split("|")
ours = """Ich muss jetzt zur Arbeit.|Könnten Sie mir bitte behilflich sein?
Die Suppe ist zu heiß.|Mein Bruder ist älter als ich.|Die Milch ist alle.
Was hast du heute Abend vor?|Sie war noch nie dort.
Ich habe meinen Schirm vergessen.""".replace("\n", "|").split("|")
''')
code("dist-predict", r'''
def loss(targets):
    scores = teacher.score(sources, targets)
    tokens = sum(len(score.tokens) for score in scores)
    return -sum(score.total for score in scores) / tokens


own = teacher.translate(sources)
losses = {"us": loss(ours), "itself": loss(own)}
Table(["translations by", "the large model's loss, nats a token"], losses.items(), 2)
''')
code("dist-predict-check", r'''
#| hide
assert len(sources) == len(ours) == 8
assert losses["us"] > 3 * losses["itself"]
assert sum(a == b for a, b in zip(own, ours, strict=True)) == 5
''')
md("dist-formula", r'''
That is no feat, since it wrote what it finds most probable.
And the whole difference comes from three sentences, since it agrees with us about the other five:
''')
code("dist-differ", r'''
#| code-fold: true
each = zip(sources, ours, own, strict=True)
Table(["English", "we wrote", "it wrote"], [row for row in each if row[1] != row[2]])
''')
md("dist-more", r'''
So let's ask it about more: 500 sentences of the validation split, which it wasn't trained on, each with a person's translation, with its own by beam search, and with one that it draws, every token as often as it finds it probable.

:::{predict} Beam search writes what is easiest to predict. And the translations that it draws?
:right: 3
- nearly as easy
- harder than beam search's, easier than people's
- harder than people's

What beam search took away comes back, and more: [label smoothing](../training/loss.ipynb) taught the model to keep about a tenth of its belief for all other tokens, and now and then it draws one of them.
:::
''')
code("dist-three", r'''
#| code-fold: true
three = about["teacher's losses"]
Table(["written by", "the large model's loss, nats a token"], three.items(), 2)
''')
code("dist-three-check", r'''
#| hide
assert 3 * three["beam search"] < three["people"] < three["sampling"] / 2
''')
md("dist-formula-2", r'''
So a model's text isn't easy as such: it is the choice of one probable wording that makes it so.

Written down, the student $p$ should come near the teacher's distribution $q$ over all translations $y$ of a source $x$:

$$L = -\sum_y q(y \mid x)\, \log p(y \mid x) \quad\longrightarrow\quad -\log p(\hat y \mid x), \qquad \hat y = \text{the teacher's best by beam search}$$

The sum has a term for every German sentence, so Kim and Rush {cite}`kim2016sequence` let a single one stand for all, the one that beam search finds: the student then comes near the teacher's favourite wording, not near all that it believes.
What is left is the [cross-entropy](../training/loss.ipynb) that we always had.
Nothing about training changes but the text, and the method is called *sequence-level distillation*.
(The older form, for classifiers, matches the teacher's whole distribution over the classes {cite}`hinton2015distilling`. Matched at each token, it can be combined with this one.)
Their small recurrent student gained 4.2 BLEU by it with greedy search, and 1.7 with a beam.

::::{admonition} Write it: `distilled`
:class: exercises

```python
def distilled(sources, translate): ...
```

It gets a list of sources, some of them more than once, and a function that translates a list, one text for each, and returns the pairs to learn from: each different source once, in the order of its first appearance, and none whose translation is empty.
A teacher is slow, so ask it only once, and for no source twice.
The folded test below tells you whether yours does.

:::{dropdown} Solution
```python
def distilled(sources, translate):
    different = list(dict.fromkeys(sources))
    pairs = zip(different, translate(different), strict=True)
    return [(source, output) for source, output in pairs if output]
```
:::
::::
''')
code("dist-check", r'''
#| code-fold: true
# test, of the solution; put yours in its place
def distilled(sources, translate):
    different = list(dict.fromkeys(sources))
    pairs = zip(different, translate(different), strict=True)
    return [(source, output) for source, output in pairs if output]


asked = []


def shout(texts):
    asked.extend(texts)
    return [text.upper() if text != "mute" else "" for text in texts]


made = distilled(["b", "a", "mute", "b"], shout)
assert made == [("b", "B"), ("a", "A")], f"these pairs are wrong: {made}"
assert asked == ["b", "a", "mute"], f"the teacher was asked too often: {asked}"
''')
md("dist-package", r'''
The package's form does the same when its pairs are first read, and says in a run's record who the teacher was.
''')
code("dist-pairs", r'''
#| export
@dataclass(frozen=True)
class DistilledPairs:
    """The sources of pairs, with a teacher's translations (Kim and Rush, 2016).

    The teacher, of that name, translates when the pairs are first read.
    """

    pairs: Iterable[tuple[str, str]]
    name: str
    teacher: Translator

    @cached_property
    def distilled(self) -> list[tuple[str, str]]:
        """Each different source with its translation, those without one left out."""
        sources = list(dict.fromkeys(source for source, _ in self.pairs))
        outputs = self.teacher.translate(sources, batch_tokens=16_384)
        both = zip(sources, outputs, strict=True)
        return [(source, output) for source, output in both if output]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.distilled)

    def origin(self) -> dict[str, Any]:
        """What a run's record says of them: the teacher's name and a hash of it."""
        model, tokenizer = self.teacher.model, self.teacher.tokenizer
        return {"teacher": InitFrom(self.name, model, tokenizer).describe()}
''')
code("dist-pairs-check", r'''
#| hide
few = DistilledPairs(list(zip(sources, ours, strict=True)) * 2, "", teacher)
assert list(few) == list(few) == list(zip(sources, own, strict=True))
assert few.origin()["teacher"]["weights_sha256"]
''')
md("dist-varied-t", r'''
The everyday recipe [varies its pairs](../training/recipes.ipynb): names, numbers, case.
The teacher translates before that, so a new name goes into its translation too: where it wrote "Tom schläft", the student may read "Priya schläft".
''')
code("dist-varied", r'''
#| export
def with_teacher(
    pairs: Iterable[tuple[str, str]], name: str, teacher: Translator
) -> VariedPairs | DistilledPairs:
    """A corpus's training pairs with a teacher's translations, varied as before."""
    if isinstance(pairs, VariedPairs):
        return replace(pairs, pairs=DistilledPairs(pairs.pairs, name, teacher))
    return DistilledPairs(pairs, name, teacher)
''')
md("dist-study-t", r'''
## The student does better on its teacher's text

Two students are alike but for their text.
Each has 2 + 2 layers with $d_{\text{model}} = 128$, a sixth of the teacher's weights, and makes 2,000 updates of 4,096 tokens, one on people's German and the other on the teacher's, for the same English.
Both are asked to translate the test split, and compared with what *people* wrote there.
Each learning rate was tried on both sides; the best by the validation split then had three seeds.

:::{predict} One is trained on just such translations as the test asks for, the other on copies. What is the difference in BLEU?
:right: 3
- the student of people is ahead
- none that three seeds could show
- the student of the teacher is ahead

It never saw what people wrote there, and comes nearer to it: the teacher's text has one way to say each thing, and a small model can get that right.
:::
''')
code("dist-study", r'''
#| code-fold: true
SIDES = {"people": "people", "the teacher": "its teacher"}
tried = [run for run in recorded if run["seed"] == 0]
final = {
    side: [run for run in recorded if run["seed"] and run["side"] == side]
    for side in SIDES
}


def told(side, key, digits):
    "Mean over the seeds, and half of its 95 % interval."
    found = [run[key] for run in final[side]]
    half = Spread.of({side: found}).half_width(len(found))
    return f"{mean(found):.{digits}f} ± {half:.{digits}f}"


scores = {"bleu": 1, "greedy_bleu": 1, "test_loss": 2}
rows = [
    [name, *(told(side, key, digits) for key, digits in scores.items())]
    for side, name in SIDES.items()
]
Table(
    ["learned from", "BLEU, beam of 4", "BLEU, greedy", "loss on people's, nats"], rows
)
''')
md("dist-study-read", r'''
TODO
''')
code("dist-grid", r'''
#| code-fold: true
rates = sorted({run["rate"] for run in tried})
bleus = {(run["side"], run["rate"]): run["validation_bleu"] for run in tried}
rows = [
    [name, *(bleus[side, rate] for rate in rates), final[side][0]["rate"]]
    for side, name in SIDES.items()
]
Table(["learned from", *map(str, rates), "chosen"], rows, 1)
''')
md("dist-command", r'''
## In one command

A run on the teacher's text, with pairs that are varied as before, is one command:

```bash
annotated-transformer train tatoeba-en-de --teacher tatoeba-en-de \
    --set vocab_size=4000 --set N=2 --set d_model=128 --set d_ff=512 \
    --set d_k=32 --set d_v=32
```

`--teacher` names any model that `translate` opens, in the right direction.
It translates the training text first, and then the run is like any other: it resumes, and its record names the teacher.
The validation split stays what people wrote.

The teacher may well be a model that learned from far more text than you have, and the text needs no translation by people: English like what the student will meet is enough.
The translators in Firefox [were made in a similar way](https://github.com/browsermt/students).
Where a teacher is wrong, the student learns that, too.

## What to remember

- People translate the same sentence in many ways, and a model that learns from them has to carry all of them.
- A teacher's beam search writes one of them, so its text is easier to predict; what it draws at random isn't. Nothing but the text changes: the loss is the usual cross-entropy.
TODO

::::{admonition} Exercises
:class: exercises
**1.** Predict, then run: the teacher searches greedily, `beam_size=1`. Does its text become harder to predict?

:::{dropdown} Answer
Hardly: `loss(teacher.translate(sources, beam_size=1))` is within a twentieth of a nat of the beam's. It's the choice of one wording that makes the text easy, and greedy search makes one too.
:::

**2.** Explain: why does the student's *loss* on people's translations say little about which student translates better?

:::{dropdown} Answer
The loss asks for the probability of the very words that people chose. A student of the teacher gives nearly all of it to one wording, so that each other good one is expensive; BLEU asks only what it would write itself.
:::

**3.** Build it: keep a teacher's translation only where it shares at least half of its words with a person's. What does this guard against, and what does it cost?

:::{dropdown} Answer
With `people`, a dictionary from each source to the list of its translations:

```python
def kept(source, output):
    mine = set(output.lower().split())
    return any(
        len(mine & set(each.lower().split())) * 2 >= len(mine)
        for each in people[source]
    )
```

It leaves out what has gone wrong altogether, and not one wrong word: "Bereich wartete sie …" above would stay. It also leaves out good translations that nobody had written.
:::
::::
''')
code("dist-answers", r'''
#| hide
greedy = loss(teacher.translate(sources, beam_size=1))
assert abs(greedy - losses["itself"]) < 0.05
people = {s: [t] for s, t in zip(sources, ours, strict=True)}
people |= {each: both["people"] for each, both in about["examples"].items()}


def kept(source, output):
    mine = set(output.lower().split())
    return any(
        len(mine & set(each.lower().split())) * 2 >= len(mine)
        for each in people[source]
    )


assert all(kept(each, both["the teacher"]) for each, both in about["examples"].items())
assert not kept("We have no milk left.", "Wir haben keine Milch mehr.")
''')
code("dist-export", r'''
#| hide
import nbdev

nbdev.nbdev_export()
''')
