"""What a reader can touch in the book: the numbers are Python's, and a hand, a keyboard
and a reader without script all get something.
"""

import json
import math
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
import torch
from browser import CHROMIUM, Browser
from small_page import small_page

from annotated_transformer.after.long_texts import rotate
from annotated_transformer.data.batching import cut_points, padding_share
from annotated_transformer.data.pairs import split_of
from annotated_transformer.data.phrasebook_grammar import LANGUAGES
from annotated_transformer.data.phrasebook_patterns import PATTERNS, Phrase
from annotated_transformer.data.tokenizer import apply_merges, learn_merges
from annotated_transformer.data.tokenizer_training import train_bpe
from annotated_transformer.decoding.search import sampling_distribution
from annotated_transformer.model.attention import attention, causal_mask
from annotated_transformer.model.config import preset
from annotated_transformer.model.costs import flops_by_part, parameters_by_part
from annotated_transformer.model.feed_forward import FeedForward
from annotated_transformer.model.layers import DecoderLayer
from annotated_transformer.model.position import sinusoids
from annotated_transformer.model_names import MODELS
from annotated_transformer.training.loss import smoothed_cross_entropy
from annotated_transformer.training.schedule import adam
from annotated_transformer.translation.bleu import bleu, tokenize_13a
from annotated_transformer.translation.repair import repair
from benchmarks.after import shuffled
from benchmarks.model import (
    attention_arcs,
    beam_steps,
    depth,
    figure_one,
    head_switch,
    nearest_rows,
    part_switch,
)
from benchmarks.record import load
from benchmarks.training import diary
from tools import touch

STILLS = dict(touch.parts())
PARTS = {name: values for name, values in STILLS.items() if "." not in name}
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="no node")
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")


def in_node(name: str, expression: str) -> Any:
    """The value of a piece of JavaScript that knows a script's functions as `it`."""
    script = f"const it = require({json.dumps(str(touch.TOUCH / name))});"
    show = f"process.stdout.write(JSON.stringify({expression}))"
    done = subprocess.run(
        ["node", "-e", script + show], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


# -- numbers ---------------------------------------------------------------------------


@needs_node
@pytest.mark.parametrize("d_k", [1, 4])
@pytest.mark.parametrize("masked", [True, False])
def test_attention_is_pythons(d_k, masked):
    torch.manual_seed(d_k)
    query, key, value = (
        torch.randn(5, size, dtype=torch.float64) for size in (d_k, d_k, 2)
    )
    mask = torch.rand(5, 5) > 0.4
    mask[:, 2], mask[4] = True, False  # the last row may attend nowhere
    given = {
        "query": query.tolist(),
        "key": key.tolist(),
        "value": value.tolist(),
    }
    if masked:
        given["mask"] = mask.tolist()
    found = in_node("attention-sheet.js", f"it.attention({json.dumps(given)})")
    output, weights = attention(query, key, value, mask if masked else None)
    for name, expected in (("weights", weights), ("output", output)):
        # JSON has null for NaN
        rows = [[float("nan") if x is None else x for x in row] for row in found[name]]
        assert torch.allclose(
            torch.tensor(rows, dtype=torch.float64), expected, equal_nan=True
        )


@needs_node
def test_without_the_scale_scores_are_the_products():
    given = json.dumps({**PARTS["attention-sheet"], "scale": False})
    found = in_node("attention-sheet.js", f"it.attention({given})")
    assert found["scores"][0] == [2, 4, 0]


@needs_node
def test_the_familys_masks_are_pythons():
    found = {
        name: torch.tensor(in_node("mask-tiles.js", f"it.mask('{name}', 7, 4)"))
        for name in ("encoder only", "decoder only", "encoder-decoder")
    }
    assert found["encoder only"].all()
    assert torch.equal(found["decoder only"], causal_mask(7))
    prefix = causal_mask(7)
    prefix[:, :4] = True
    assert torch.equal(found["encoder-decoder"], prefix)


@needs_node
@pytest.mark.parametrize("seed", range(3))
def test_byte_pairs_are_pythons(seed):
    """The cutting into words and signs, too; ties and umlauts included."""
    rng = random.Random(seed)
    lines = ["".join(rng.choices("abäß  12.,-e\u0301", k=60)) for _ in range(20)]
    cutter = train_bpe(lines, 60)
    counts = Counter(
        tuple(piece)
        for line in lines
        for piece, _ in cutter.pre_tokenizer.pre_tokenize_str(
            cutter.normalizer.normalize_str(line)
        )
    )
    merges = learn_merges(counts, 30)
    text = json.dumps("\n".join(lines))
    found = in_node("byte-pairs.js", f"it.learn({text}, 30)")
    assert [tuple(each["pair"]) for each in found] == merges
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    for word in list(counts)[:5]:
        asked = f"it.replay({json.dumps(''.join(word[1:]))}, {json.dumps(merges)})"
        if word[0] == "▁" and len(word) > 1:
            cut = in_node("byte-pairs.js", asked)[-1]["words"]
            assert tuple(cut[0]) == apply_merges(word, ranks)[-1]


BLEU_PAIRS = [
    ("She was born on March 24.", "She was born on the twenty-first of March."),
    ("the the the the", "the cat saw the dog"),
    ("a b c d e", "a x c y e"),
    ("a b a b a b", "a b c a b"),
    ("a", "a"),
    ("", "a b c d"),
    ("w x y z", "a b c d"),
    ("3,000.5-mal &quot;x&quot; (&amp;) „Ja“, <b>.5 3-4!", "3,000.5 mal x & ja. 3-4!"),
]


@needs_node
@pytest.mark.parametrize("pair", BLEU_PAIRS)
def test_bleu_is_pythons(pair):
    """The cut by 13a, clipping, smoothed zeros and the penalty included."""
    given = json.dumps(dict(zip(("output", "reference"), pair, strict=True)))
    found = in_node("bleu-bars.js", f"it.score({given})")
    cut = [tokenize_13a(text) for text in pair]
    assert [found["words"], found["others"]] == [text.split() for text in cut]
    assert found["bleu"] == pytest.approx(bleu(*([text] for text in cut)))


@needs_node
def test_repairs_are_pythons():
    rng = random.Random(1)
    known = ["(S", "(X", "(Y", ")S", ")X", ")Y", *"ABCD"]
    cases = [
        (
            rng.choices(known, k=rng.randrange(14)),
            rng.choices("ABC", k=rng.randint(1, 6)),
        )
        for _ in range(300)
    ]
    kept = "it.repair(...it0).filter((each) => each.fate !== 'dropped')"
    asked = f"{json.dumps(cases)}.map((it0) => {kept}.map(({{ token }}) => token))"
    assert in_node("tree-brackets.js", asked) == [repair(*case) for case in cases]
    asked = f"{json.dumps(cases)}.map((it0) => it.repair(...it0))"
    for (written, _), row in zip(
        cases, in_node("tree-brackets.js", asked), strict=True
    ):
        assert [each["token"] for each in row if each["fate"] != "added"] == written


@needs_node
@pytest.mark.parametrize("budget", [18, 60, 240])
@pytest.mark.parametrize("in_order", [True, False])
def test_batches_are_pythons(budget, in_order):
    lengths = np.array(PARTS["padding-sheet"]["lengths"])
    given = {"lengths": lengths.tolist(), "budget": budget, "sorted": in_order}
    found = in_node("padding-sheet.js", f"it.batches({json.dumps(given)})")
    lengths = np.sort(lengths) if in_order else lengths
    cuts = cut_points(lengths, budget, np.arange(len(lengths)))
    plan = np.split(np.arange(len(lengths)), cuts)
    assert found == [lengths[rows].tolist() for rows in plan]
    counted = in_node("padding-sheet.js", f"it.counts({json.dumps(found)})")
    share = padding_share(lengths, lengths, plan)
    assert counted["padding"] / counted["all"] == pytest.approx(share)


@needs_node
@pytest.mark.parametrize("d_model", [16, 128, 512])
def test_codes_are_pythons(d_model):
    codes = sinusoids(101, d_model)
    found = in_node(
        "position-clocks.js", f"[0, 7, 100].map((p) => it.code(p, {d_model}))"
    )
    assert torch.allclose(torch.tensor(found), codes[[0, 7, 100]], atol=1e-6)
    dot = in_node("position-clocks.js", f"it.product(30, 34, {d_model})")
    assert dot == pytest.approx((codes[30] @ codes[34]).item(), abs=1e-3)


@needs_node
@pytest.mark.parametrize("position", [0, 7, 33])
def test_turned_hands_are_pythons(position):
    state = {**PARTS["rotary-dials"], "position": position}
    apart, codes = state["distance"], sinusoids(60, 8)
    rows = (("query", position + apart), ("key", position))
    query, key = (
        rotate(torch.tensor([state[name]]), codes[at : at + 1])[0] for name, at in rows
    )
    turned = in_node("rotary-dials.js", f"it.rotate({state['key']}, {position})")
    assert torch.allclose(torch.tensor(turned), key, atol=1e-5)
    score = in_node("rotary-dials.js", f"it.score({json.dumps(state)})")
    assert score == pytest.approx((query @ key).item() / 8**0.5, abs=1e-5)


@needs_node
def test_hidden_units_are_pythons():
    state = {"units": [[1, 0.5, 2], [-1, 1, -1], [0.5, -1, 3]], "b_2": 0.5}
    network = FeedForward(1, 3)
    W_1, b_1, W_2 = torch.tensor(state["units"]).T
    with torch.no_grad():
        network.W_1.weight.copy_(W_1[:, None])
        network.W_1.bias.copy_(b_1)
        network.W_2.weight.copy_(W_2[None])
        network.W_2.bias.fill_(state["b_2"])
    inputs = [-3.0, -0.5, 0.0, 1.25, 3.0]
    given = f"{inputs}.map((x) => it.network({json.dumps(state)}, x))"
    found = torch.tensor(in_node("relu-units.js", given))
    assert torch.allclose(found, network(torch.tensor(inputs)[:, None])[:, 0])


@needs_node
@pytest.mark.parametrize("p", [0.01, 0.9, 0.999])
@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_prices_are_pythons(p, eps):
    """The wrong tokens share what the right one leaves."""
    logits = torch.full((1, 37), math.log((1 - p) / 36), dtype=torch.float64)
    logits[0, 5] = math.log(p)
    logits.requires_grad_()
    loss = smoothed_cross_entropy(logits, torch.tensor([5]), eps)
    loss.backward()
    found = in_node("loss-curve.js", f"it.loss({p}, {eps}, 37)")
    assert found == pytest.approx(loss.item())
    push = in_node("loss-curve.js", f"it.push({{p: {p}, eps: {eps}}})")
    assert push == pytest.approx(-logits.grad[0, 5].item())


@needs_node
@pytest.mark.parametrize(
    "knobs", [(1.0, None, 1.0), (0.4, 5, 1.0), (2.0, None, 0.5), (1.5, 12, 0.9)]
)
def test_what_is_drawn_from_is_pythons(knobs):
    """Of a real distribution, with temperature, top-k and top-p."""
    T, k, p = knobs
    logs = load("after/next-token.json")["prompts"][0]["log_probs"]
    asked = json.dumps({"T": T, "k": k or 0, "p": p})
    found = in_node("next-token.js", f"it.chances({logs}, {asked})")
    expected = sampling_distribution(torch.tensor([logs]).double(), T, k, p)[0]
    assert torch.allclose(torch.tensor(found).double(), expected, atol=1e-9)
    assert in_node("next-token.js", f"it.draw({found}, 0)") == 0
    last = int(expected.nonzero()[-1])
    assert in_node("next-token.js", f"it.draw({found}, 1)") == last


@needs_node
@pytest.mark.parametrize("walls", [25, 60])
def test_adam_in_the_valley_is_pythons(walls):
    w = torch.nn.Parameter(torch.tensor([-5.0, 1.5], dtype=torch.float64))
    valley = torch.nn.Module()
    valley.w = w
    optimizer, path = adam(valley), [w.tolist()]
    optimizer.param_groups[0]["lr"] = 0.3
    for _ in range(40):
        optimizer.zero_grad()
        ((w[0] ** 2 + walls * w[1] ** 2) / 2).backward()
        optimizer.step()
        path.append(w.tolist())
    found = in_node("valley-steps.js", f"it.adam({{adam: 0.3, walls: {walls}}})")
    assert torch.allclose(torch.tensor(found), torch.tensor(path), atol=1e-5)


@needs_node
@pytest.mark.parametrize("rate", [0.05, 0.085])
def test_descent_in_the_valley_is_pythons(rate):
    """Each direction shrinks or grows by a factor of its own."""
    found = in_node("valley-steps.js", f"it.plain({{rate: {rate}}})")
    last = [-5 * (1 - rate) ** 40, 1.5 * (1 - 25 * rate) ** 40]
    assert found[-1] == pytest.approx(last)


@needs_node
def test_a_steep_unit_is_drawn_as_it_is():
    """What leaves the frame is cut off there, and doesn't run along its edge."""
    state = {"units": [[4, 0, 2]], "b_2": 0, "goal": None}
    drawn = in_node("relu-units.js", f"it.still({json.dumps(state)})")
    heights = re.findall(r" (-?[\d.]+)", re.search(r'"curve" d="(.*?)"', drawn)[1])
    assert min(map(float, heights)) == pytest.approx(120 - 24 * 34)


@needs_node
@pytest.mark.parametrize("name", ["base", "big"])
def test_costs_are_pythons(name):
    config, length = preset(name), 31
    found = in_node("cost-sheet.js", f"it.costs({{...it.PRESETS.{name}, length: 31}})")
    parameters = parameters_by_part(config)
    assert parameters.pop("positions") == 0
    assert found["parameters"] == parameters
    assert found["flops"] == flops_by_part(config, length, length)
    memory = torch.empty(1, length, config.d_model, device="meta")
    with torch.device("meta"):
        _, source = DecoderLayer(config).start(memory)
    bytes_of = 4 * config.N * (source.key.numel() + source.value.numel())
    assert found["cache"] == {"of the target": bytes_of, "of the source": bytes_of}


@needs_node
@pytest.mark.parametrize("rows", [1, 8, 16, 512])
def test_the_roof_is_the_lower_of_two_bounds(rows):
    record = load("speed/roofline.json")
    found = in_node("roof-line.js", f"it.roof({json.dumps(record)}, {rows})")
    fetched = record["numbers"] * record["bytes_a_number"] / record["bandwidth"]
    at_memory_speed = 2 * rows * record["numbers"] / fetched
    assert found == pytest.approx(min(at_memory_speed, record["peak"]))


@pytest.mark.parametrize("way", depth.WAYS)
def test_recorded_depth_is_measured(way):
    """The record of two depths comes out again; other machines round otherwise."""
    recorded = load(depth.PLACE)["runs"][way]
    for N in (1, 4):
        for name, values in depth.run(way, N).items():
            assert recorded[N - 1][name] == pytest.approx(values, rel=0.02)


@needs_node
def test_patches_change_places_as_pythons():
    recorded = load(shuffled.PLACE)
    assert recorded["orders"] == shuffled.orders()
    assert sorted(recorded["orders"][-1]) == list(range(16))
    for digit, stroke in shuffled.STROKES.items():
        picture = shuffled.drawn(stroke)
        assert recorded["pictures"][str(digit)] == picture.tolist()
        for order in recorded["orders"]:
            moved = shuffled.reordered(picture[None], torch.tensor(order))[0]
            asked = f"it.shuffled({json.dumps(picture.tolist())}, {order})"
            assert in_node("patch-shuffle.js", asked) == moved.tolist()


def test_recorded_figure_is_what_the_model_does():
    recorded, found = load(figure_one.PLACE), figure_one.figure()
    assert [step["box"] for step in recorded["steps"]] == [
        step["box"] for step in found["steps"]
    ]
    for kept, step in zip(recorded["steps"], found["steps"], strict=True):
        if "weights" in step:
            pair = (torch.tensor(each["weights"]) for each in (kept, step))
            assert torch.allclose(*pair, atol=0.02)
        for before, now in zip(kept["likely"], step["likely"], strict=True):
            assert before[0][1] == pytest.approx(now[0][1], abs=0.02)
    for best, token in zip(
        found["steps"][-1]["likely"], [*found["target"][1:], "</s>"], strict=True
    ):
        assert best[0][0] == token  # each position names the token after it


def test_recorded_diary_begins_as_the_loop_does():
    recorded = load(diary.PLACE)["diary"]
    start, tenth = diary.learn(updates=10)
    assert recorded[0]["says"] == start["says"]
    assert recorded[1]["loss"] == pytest.approx(tenth["loss"], rel=0.01)
    assert recorded[-1]["says"][0] == "der einundzwanzigste März"


def test_recorded_arcs_are_where_the_model_looks():
    recorded, found = load(attention_arcs.PLACE), attention_arcs.arcs()
    assert recorded["target"] == found["target"]
    weights = (torch.tensor(each["weights"]) for each in (recorded, found))
    assert torch.allclose(*weights, atol=0.02)


def test_recorded_rows_are_the_models():
    recorded, found = load(nearest_rows.PLACE), nearest_rows.rows()
    assert recorded["chance"] == pytest.approx(found["chance"], abs=0.02)
    first, again = (
        {
            each["names"][n]: each["names"][row[0]]
            for n, row in enumerate(each["nearest"])
        }
        for each in (recorded, found)
    )
    assert first.keys() == again.keys()
    same = sum(first[name] == again[name] for name in first)
    assert same > 0.99 * len(first)  # two may be equally near


@needs_node
def test_a_words_share_is_what_it_adds():
    for review in PARTS["word-shares"]["reviews"]:
        words, everything = review["words"], 2 ** len(review["words"]) - 1
        assert len(review["shares"]) == everything + 1
        kept = [i for i in range(len(words)) if i != 1]
        given = f"it.read({json.dumps(review)}, {everything - 2})"
        found = in_node("word-shares.js", given)
        own = review["shares"][everything - 2]
        assert [found["own"][i] for i in kept] == [x / 100 for x in own[:-1]]
        assert found["own"][1] is None and found["rest"] == own[-1] / 100
        assert found["sum"] == pytest.approx(sum(own) / 100)
        assert found["positive"] == pytest.approx(1 / (1 + math.exp(-found["sum"])))


@needs_node
def test_recorded_translations_are_what_the_pages_model_writes():
    found = part_switch.answers()
    assert {name: load(part_switch.PLACE)[name] for name in found} == found
    d_k = json.loads((MODELS / "tatoeba-en-de" / "config.json").read_text())["d_k"]
    scale = in_node("part-switch.js", "it.PARTS.scale")
    assert scale.endswith(f"√d_k = {d_k**0.5:g}")


@needs_node
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_recorded_answers_without_heads_are_what_the_pages_model_writes(
    step, monkeypatch
):
    """The first and the last head of each layer, or every head."""
    assert "head++" in head_switch.RUN
    some = head_switch.RUN.replace("head++", f"head += {step}")
    monkeypatch.setattr(head_switch, "RUN", some)
    found, recorded = head_switch.answers(), load(head_switch.PLACE)
    assert len(found["answers"]) == 1 + {3: 2, 1: 4}[step] * 3 * 3
    assert found["answers"].items() <= recorded["answers"].items()
    assert found | {"answers": 0} == {it: recorded[it] for it in found} | {"answers": 0}


@needs_node
def test_recorded_beam_is_what_the_page_searches():
    found = beam_steps.search()
    assert {name: load(beam_steps.PLACE)[name] for name in found} == found
    ended = f"it.ended({json.dumps(found['nodes'])}, 8).map(({{ text }}) => text)"
    assert in_node("beam-steps.js", ended)[0] == "Er arbeitet nachts."
    assert in_node("beam-steps.js", ended.replace(", 8)", ", 4)")) == []


LLAMA = "Object.entries(it.LLAMA)"
WEIGH = """function attention(query, key, value, mask) {
  return query.map((q, i) => mix(WEIGHTS, value));
}"""
SCORES = "key.map((k, j) => SEE ? dot(q, k) / Math.sqrt(q.length) : -Infinity)"
RIGHT_WEIGHTS = f"softmax({SCORES.replace('SEE', '!mask || mask[i][j]')})"
PLAIN_WEIGHTS = f"softmax({SCORES.replace('SEE', 'true')})"
JUDGED = {
    RIGHT_WEIGHTS: "",
    RIGHT_WEIGHTS.replace(" / Math.sqrt(q.length)", ""): "aren’t divided by √d_k",
    RIGHT_WEIGHTS.replace("Math.sqrt(q.length)", "q.length"): "are divided by d_k",
    f"{RIGHT_WEIGHTS.replace(' / Math.sqrt(q.length)', '')}.map((x) => x / 2)": (
        "after the softmax"
    ),
    RIGHT_WEIGHTS.replace("mask[", "!mask["): "The mask is inverted",
    PLAIN_WEIGHTS: "The mask isn’t used yet",
    f"{PLAIN_WEIGHTS}.map((x, j) => (!mask || mask[i][j] ? x : 0))": "0’s sums to",
    "softmax(query.map((r) => dot(r, q)))": "over the keys that a query may see",
    f"[...{RIGHT_WEIGHTS}].reverse()": "should be softmax(query · key / √d_k)",
    "softmax(keys)": "It stops: keys is not defined.",
}


@needs_node
@pytest.mark.parametrize("weights", JUDGED)
def test_attention_on_lists_is_judged(weights):
    code = WEIGH.replace("WEIGHTS", weights)
    body = json.dumps(f"{code} return attention")
    made = f"new Function('dot', 'softmax', 'mix', {body})"
    judged = f"(({{ dot, softmax, mix, judge }}) => judge({made}(dot, softmax, mix)))"
    sentence = in_node("attention-check.js", f"{judged}(it.tools())")["sentence"]
    assert JUDGED[weights] in sentence and bool(JUDGED[weights]) == bool(sentence)


@needs_node
@pytest.mark.parametrize("name", STILLS)
def test_drawing_is_what_the_script_draws(name):
    """Else: python -m tools.touch."""
    still = (touch.TOUCH / f"{name}.svg").read_text(encoding="utf-8")
    assert still == touch.still(name, STILLS[name])


# -- in the page -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with all parts, far down."""
    text = '# Touch\n\n```{raw} html\n<div style="height: 4000px"></div>\n```\n\n'
    for name, values in PARTS.items():
        text += f":::{{touch}} {name}\n{json.dumps(values)}\n:::\n\n"
    return small_page(tmp_path_factory.mktemp("touch"), text, "touch")


@pytest.fixture
def near(browser: Browser, page: str) -> Callable[..., Browser]:
    """Go to one part of the page, in a window of some width."""

    def go(name: str, width: int = 1280) -> Browser:
        browser.resize(width, 800)
        browser.errors = []
        browser.open("about:blank")
        browser.open(page)
        shown(browser, name)
        return browser

    return go


def shown(window: Browser, name: str) -> None:
    """Go to one part of the page in view, and wait for it."""
    window.run(f"document.querySelector('{name}').scrollIntoView()")
    window.wait(f"!!document.querySelector('{name} .told')?.textContent", 20)
    window.wait("[...document.styleSheets].some((s) => /touch.css/.test(s.href))")


def told_of(name: str) -> str:
    """What a part says, in JavaScript."""
    return f"document.querySelector('{name} .told').textContent"


def told(window: Browser, name: str) -> str:
    """What a part says."""
    return window.run(told_of(name))


def press(window: Browser, key: str) -> None:
    """Up, Down, End or Space, or a key that `Browser.press` knows."""
    codes = {"ArrowUp": 38, "ArrowDown": 40, "End": 35, " ": 32}
    if key not in codes:
        window.press(key)
        return
    about = {"key": key, "code": key.strip() or "Space"}
    more = {"windowsVirtualKeyCode": codes[key]} | ({"text": " "} if key == " " else {})
    window.call("Input.dispatchKeyEvent", type="keyDown", **about, **more)
    window.call("Input.dispatchKeyEvent", type="keyUp", **about, **more)


@needs_chromium
def test_far_away_nothing_loads(browser, page):
    browser.resize(1280, 800)
    browser.open("about:blank")
    browser.requests = []
    browser.open(page)
    assert not [each for each in browser.requests if "/touch/" in each]
    still = "[...document.querySelectorAll('.touch:has(svg)')].length"
    assert browser.run(still) == len(PARTS)


def sheet(window: Browser) -> str:
    """What the attention grid says."""
    return told(window, "attention-sheet")


def task(window: Browser, name: str) -> None:
    """Press the button of a task, or of the beginning."""
    window.run(f"document.querySelector('[data-task=\"{name}\"]').click()")


@needs_chromium
def test_a_query_is_edited_and_a_word_masked(near):
    window = near("attention-sheet")
    assert sheet(window) == "After der it looks most at first (0.67)."
    window.run("document.querySelector('[data-part=query]').focus()")
    press(window, "ArrowUp")  # 2 to 2.5: a sharper question
    assert sheet(window) == "After der it looks most at first (0.77)."
    window.run("document.querySelector('attention-sheet td [aria-pressed]').focus()")
    window.press("ArrowRight")
    press(window, " ")
    assert sheet(window).startswith("After der it looks most at twenty")
    task(window, "")
    assert sheet(window) == "After der it looks most at first (0.67)."


@needs_chromium
def test_the_grids_tasks(near):
    window = near("attention-sheet")
    task(window, "double the query")
    assert sheet(window) == "After der it looks most at first (0.87)."
    task(window, "mask first")
    assert sheet(window) == "After der it looks most at twenty (0.73)."
    pressed = "[...document.querySelectorAll('[data-task][aria-pressed=true]')]"
    assert window.run(f"{pressed}.map((e) => e.textContent)") == ["mask first"]
    task(window, "both queries")
    assert sheet(window) == (
        "After der it looks most at first (0.67). "
        "After ein it looks most at twenty (0.86)."
    )


@needs_chromium
def test_ties_and_rows_that_may_look_nowhere_are_said(near):
    window = near("attention-sheet")
    fields = "[...document.querySelectorAll('[data-part=query]')]"
    change = "e.value = 0; e.dispatchEvent(new Event('input', {bubbles: true}))"
    window.run(f"{fields}.forEach((e) => {{ {change} }})")
    assert sheet(window) == (
        "After der it looks alike at twenty, first and March (0.33 each)."
    )
    buttons = "[...document.querySelectorAll('attention-sheet td button')]"
    window.run(f"{buttons}.forEach((e) => e.click())")
    assert sheet(window) == "After der it looks nowhere: its row is NaN."


@needs_chromium
def test_the_grid_fits_one_screen_of_a_telephone(near):
    window = near("attention-sheet", 390)
    task(window, "both queries")
    box = window.run(
        "(({ width, height }) => [width, height])("
        "document.querySelector('attention-sheet .part').getBoundingClientRect())"
    )
    wide = window.run(
        "document.querySelector('.touch:has(attention-sheet)').scrollWidth"
    )
    assert wide <= 390 and box[1] < 800


@needs_chromium
def test_each_grid_is_one_stop_of_the_tab_key(near):
    window = near("attention-sheet")
    window.run("document.querySelector('[data-part=query]').focus()")
    seen = "document.activeElement.ariaLabel"
    window.press("ArrowRight")
    assert window.run(seen) == "query of after der, month"
    window.press("Tab")
    assert window.run(seen) == "after der may look at twenty, score 1.00"


@needs_chromium
def test_print_has_the_drawing(near):
    """And a screen what answers to a hand."""
    window = near("cost-sheet")
    for media, shown in (("screen", ".part"), ("print", ".drawing")):
        window.call("Emulation.setEmulatedMedia", media=media)
        for part in (".part", ".drawing"):
            visible = f"document.querySelector('cost-sheet {part}').checkVisibility()"
            assert window.run(visible) == (part == shown)
    window.call("Emulation.setEmulatedMedia", media="")


@needs_chromium
def test_a_position_is_dragged_and_moved_by_keys(near):
    window = near("position-clocks")
    assert told(window, "position-clocks").startswith("The codes of 30 and 34 ")
    box = window.run(
        "(({ x, y, width, height }) => [x, y, width, height])(document"
        ".querySelector('position-clocks .part .grip').getBoundingClientRect())"
    )
    y = box[1] + box[3] / 2
    for kind, share in (
        ("mousePressed", 0.3),
        ("mouseMoved", 0.6),
        ("mouseReleased", 0.6),
    ):
        window.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=box[0] + share * box[2],
            y=y,
            button="left",
            buttons=1,
            clickCount=1,
        )
    assert told(window, "position-clocks").startswith("The codes of 60 and 64 ")
    angles = (
        "[...document.querySelectorAll('.part .turn')].map((each) => each.textContent)"
    )
    before = window.run(angles)
    window.run("document.querySelector('[name=position]').focus()")
    press(window, "ArrowRight")
    assert told(window, "position-clocks").startswith("The codes of 61 and 65 ")
    assert window.run(angles) == before  # a shift is a rotation, from anywhere
    at = "document.querySelector('position-clocks [name=position]')"
    move = f"{at}.dispatchEvent(new Event('input', {{bubbles: true}}))"
    window.run(f"{at}.value = 100; {move}")
    assert told(window, "position-clocks").startswith("The codes of 100 and 100 ")
    window.run(f"{at}.value = 30; {move}")
    assert told(window, "position-clocks").startswith("The codes of 30 and 34 ")


@needs_chromium
def test_batches_follow_the_budget_and_the_switch(near):
    window = near("padding-sheet")
    assert told(window, "padding-sheet").startswith("5 batches; 155 of 434 positions")
    window.run("document.querySelector('padding-sheet [name=sorted]').focus()")
    press(window, " ")
    assert told(window, "padding-sheet").startswith("4 batches; 56 of 335 positions")
    budget = "document.querySelector('padding-sheet [name=budget]')"
    change = f"{budget}.dispatchEvent(new Event('input', {{bubbles: true}}))"
    window.run(f"{budget}.value = 60; {change}")
    assert told(window, "padding-sheet").endswith("are padding, 9 %.")
    drawn = "document.querySelectorAll('padding-sheet .part .cells rect').length"
    assert window.run(drawn) == 30


@needs_chromium
def test_costs_follow_what_is_typed(near):
    window = near("cost-sheet")
    assert told(window, "cost-sheet").startswith("63")
    window.run("document.querySelector('[name=h]').select()")
    window.call("Input.insertText", text="7")
    assert "can't be cut into 7 heads" in told(window, "cost-sheet")
    stale = "document.querySelector('cost-sheet .grids').matches('.stale')"
    assert window.run(stale)
    window.run("document.querySelector('[name=h]').select()")
    window.call("Input.insertText", text="0")
    assert told(window, "cost-sheet") == "h is a whole number from 1 to 1024."
    window.run("document.querySelector('[data-preset=big]').click()")
    assert told(window, "cost-sheet").startswith("214 M parameters")
    assert not window.run(stale)


@needs_chromium
def test_a_word_is_crossed_out_and_comes_back(near):
    window = near("word-shares", 390)
    before = told(window, "word-shares")
    word = "document.querySelector('word-shares [value=\"1\"][aria-pressed]')"
    assert window.run(f"{word}.textContent") == "bad"
    assert before.endswith(": 2 % positive.")
    window.run(f"{word}.focus()")
    press(window, " ")
    assert told(window, "word-shares").endswith(": 88 % positive.")
    assert window.run(f"{word}.getAttribute('aria-label')") == "bad, crossed out"
    window.run("document.querySelector('word-shares [name=all]').click()")
    assert told(window, "word-shares") == before


@needs_chromium
def test_six_tiles_make_the_transformer_of_a_decoder(near):
    window = near("mask-tiles", 390)
    assert told(window, "mask-tiles").startswith("49 of 49 tiles. Every word sees")
    task(window, "decoder only")
    assert told(window, "mask-tiles").startswith("28 of 49 tiles. No word looks ahead")
    window.run("document.querySelector('mask-tiles td button').focus()")
    window.press("ArrowRight")
    press(window, " ")
    assert (
        told(window, "mask-tiles") == "29 of 49 tiles. 1 tile away from decoder only."
    )
    for i, j in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]:
        tile = f"mask-tiles [data-row='{i}'][data-column='{j}']"
        window.run(f'document.querySelector("{tile}").click()')
    assert told(window, "mask-tiles").endswith("the Transformer of 2017.")
    tile = "mask-tiles [data-row='4'][data-column='6']"
    window.run(f'document.querySelector("{tile}").click()')
    assert told(window, "mask-tiles").endswith(
        "der sees a word that it should predict."
    )


@needs_chromium
def test_nearest_rows_of_a_word_and_of_a_piece(near):
    window = near("nearest-rows")
    assert told(window, "nearest-rows").startswith("The nearest row to ▁day is ▁Day")
    assert "The nearest row to day is" in told(window, "nearest-rows")
    field = "document.querySelector('nearest-rows input')"
    change = f"{field}.dispatchEvent(new Event('input', {{bubbles: true}}))"
    window.run(f"{field}.value = '<b>'; {change}")
    assert told(window, "nearest-rows").startswith("“<b>” isn’t one of the ")
    window.run(f"{field}.value = 'March'; {change}")
    assert told(window, "nearest-rows").startswith(
        "The nearest row to ▁March is ▁march"
    )


@needs_chromium
def test_a_broken_import_is_told_by_its_scores(near):
    window = near("broken-import")
    assert "100 of 100" in told(window, "broken-import")
    assert told(window, "broken-import").endswith(
        "The scores say: equal. The translations say: equal."
    )
    choose = """((step) => {
      const list = document.querySelector("broken-import select");
      list.value = step;
      list.dispatchEvent(new Event("input", { bubbles: true }));
    })"""
    window.run(f"{choose}('activation')")
    assert told(window, "broken-import").endswith(
        "The scores say: broken. The translations say: equal."
    )
    window.run(f"{choose}('order')")
    assert "(nothing)" in window.run(
        "document.querySelector('broken-import .grids').textContent"
    )


@needs_chromium
def test_hidden_units_draw_what_is_asked_for(near):
    window = near("relu-units")
    assert told(window, "relu-units").startswith(
        "At x = −2 it gives 0, at 2 it gives 2"
    )
    goal = "document.querySelector('relu-units [name=goal]')"
    change = f"{goal}.dispatchEvent(new Event('input', {{bubbles: true}}))"
    window.run(f"{goal}.value = '|x|'; {change}")
    assert told(window, "relu-units").endswith("|x| is at most 3.0 away.")
    unit = "document.querySelectorAll('relu-units td input')[5]"
    window.run(f"{unit}.value = 1; {change}")
    assert told(window, "relu-units").endswith("That is |x|.")
    window.run("document.querySelector('relu-units td input').focus()")
    press(window, "ArrowUp")
    assert told(window, "relu-units").endswith("|x| is at most 1.5 away.")


@needs_chromium
def test_moving_both_keeps_the_score_and_moving_one_does_not(near):
    window = near("rotary-dials")
    before = told(window, "rotary-dials")
    window.run("document.querySelector('rotary-dials [name=position]').focus()")
    press(window, "ArrowRight")
    moved = told(window, "rotary-dials")
    assert moved.startswith("The query at 4 meets the key 2 places before it: score ")
    assert moved.partition(": ")[2] == before.partition(": ")[2]
    window.run("document.querySelector('rotary-dials [name=distance]').focus()")
    press(window, "ArrowRight")
    assert told(window, "rotary-dials").partition(": ")[2] != moved.partition(": ")[2]


@needs_chromium
def test_five_exchanges_make_a_layer_of_llama(near):
    window = near("part-exchange")
    assert told(window, "part-exchange").startswith("The paper’s encoder layer of 2017")
    label = "document.querySelector('part-exchange .part svg').ariaLabel"
    change = "dispatchEvent(new Event('input', { bubbles: true }))"
    for hits, (name, choice) in enumerate(in_node("part-exchange.js", LLAMA), start=1):
        part = f"document.querySelector('part-exchange [name={name}]')"
        window.run(f"{part}.value = {json.dumps(choice)}; {part}.{change}")
        assert told(window, "part-exchange").startswith(
            f"{hits} of the five" if hits < 5 else "All five are LLaMA’s."
        )
        assert choice in window.run(label)


@needs_chromium
def test_a_price_follows_the_probability_and_the_smoothing(near):
    window = near("loss-curve")
    assert told(window, "loss-curve").endswith("right token’s score goes up.")
    window.run("document.querySelector('loss-curve [name=p]').value = 0.899")
    window.run("document.querySelector('loss-curve [name=p]').focus()")
    press(window, "ArrowRight")
    assert told(window, "loss-curve") == (
        "At p = 0.900 the token costs 1.377 nats, 0.000 above the lowest price. "
        "Training: the right token’s score stays."
    )
    window.run("document.querySelector('loss-curve [name=eps]').focus()")
    press(window, "ArrowRight")
    assert told(window, "loss-curve").endswith("right token’s score goes down.")


@needs_chromium
def test_steeper_walls_throw_out_gradient_descent_alone(near):
    window = near("valley-steps")
    walls = "document.querySelector('valley-steps [name=walls]')"
    window.run(f"{walls}.value = 29")
    window.run(f"{walls}.focus()")
    press(window, "ArrowRight")
    assert told(window, "valley-steps") == (
        "After 40 steps the loss is more than 1,000 by gradient descent and 0.151 by "
        "Adam, from 46.25 at the start. Each step of gradient descent lands higher on "
        "the other side."
    )


@needs_chromium
def test_knobs_cut_and_a_token_is_drawn(near):
    window = near("next-token")
    before = told(window, "next-token")
    window.run("document.querySelector('next-token [name=k]').value = 2")
    window.run("document.querySelector('next-token [name=k]').focus()")
    press(window, "ArrowLeft")
    assert before.startswith("1000 tokens can be drawn.")
    assert told(window, "next-token").startswith("1 token can be drawn.")
    window.run("document.querySelector('next-token button').click()")
    drawn = window.run("document.querySelector('next-token .drawn').textContent")
    assert drawn.endswith("(0 of 20 are among the others).")
    press(window, "ArrowRight")
    assert window.run("document.querySelector('next-token .drawn').textContent") == ""


@needs_chromium
def test_a_gap_is_moved_and_the_updates_follow(near):
    window = near("word-gaps")
    window.run("document.querySelector('word-gaps [name=step]').value = 1")
    window.run("document.querySelector('word-gaps [name=step]').focus()")
    press(window, "ArrowLeft")
    assert told(window, "word-gaps").startswith(
        "“the twenty-first of [MASK]”, after 0 updates: “march”, which stood there, has"
    )
    gap = "document.querySelector('word-gaps [name=gap]')"
    window.run(f"{gap}.value = 2")
    window.run(f"{gap}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    assert told(window, "word-gaps").startswith("“the twenty[MASK]first of march”")


@needs_chromium
def test_depth_follows_the_slider(near):
    window = near("layer-depth")
    before = told(window, "layer-depth")
    window.run("document.querySelector('layer-depth [name=N]').focus()")
    press(window, "ArrowRight")
    assert before.startswith("On top of 12 post-norm")
    assert told(window, "layer-depth").startswith("On top of 13 post-norm")


@needs_chromium
def test_a_digit_falls_into_patches(near):
    window, read = near("patch-shuffle"), PARTS["patch-shuffle"]["read"]
    assert told(window, "patch-shuffle").startswith("A 3 after 0 of 15 swaps: ")
    window.run("document.querySelector('patch-shuffle [name=swaps]').focus()")
    for _ in range(15):
        press(window, "ArrowRight")
    (first, _), (second, _) = (read[way]["3"][15] for way in ("in order", "shuffled"))
    said = told(window, "patch-shuffle")
    assert said.startswith("A 3 after 15 of 15 swaps: ")
    assert f"learned in order reads a {first} (" in said
    assert f"learned shuffled reads a {second} (" in said


@needs_chromium
def test_a_row_gets_cheaper_as_rows_are_added(near):
    window = near("roof-line")
    assert told(window, "roof-line").startswith("1 row: memory allows 5 billion")
    window.run("document.querySelector('roof-line [name=rows]').focus()")
    for _ in range(6):
        press(window, "ArrowRight")
    assert told(window, "roof-line").startswith("64 rows: the arithmetic allows 50 ")
    assert told(window, "roof-line").endswith("4.6 ms a row.")


@needs_chromium
def test_letters_grow_into_tokens(near):
    window = near("byte-pairs")
    assert "No merge yet: 27 numbers" in told(window, "byte-pairs")
    window.run("document.querySelector('byte-pairs [name=at]').focus()")
    press(window, "ArrowRight")
    assert "Merge 1 of 19 joins e and n, number 3 of 915" in told(window, "byte-pairs")
    for _ in range(18):
        press(window, "ArrowRight")
    assert "7 numbers go into the model" in told(window, "byte-pairs")
    ids = "[...document.querySelectorAll('.chip small')].map((it) => it.textContent)"
    assert window.run(ids) == [*map(str, (152, 176, 8, 850, 160, 378, 2))]
    window.run("document.querySelector('byte-pairs [name=text]').select()")
    window.call("Input.insertText", text="<b>☃")
    assert "☃ isn’t in the vocabulary: id 3" in told(window, "byte-pairs")
    assert window.run("document.querySelectorAll('byte-pairs b').length") == 0


@needs_chromium
def test_merges_are_learned_from_a_readers_text(browser, tmp_path):
    values = json.dumps(STILLS["byte-pairs.learn"])
    page = small_page(
        tmp_path, f"# Touch\n\n:::{{touch}} byte-pairs\n{values}\n:::\n", "touch"
    )
    browser.resize(390, 800)
    browser.open(page)
    browser.wait("!!document.querySelector('byte-pairs .told')?.textContent", 20)
    assert told(browser, "byte-pairs").startswith("Merge 5 joins ")
    browser.run("document.querySelector('[name=corpus]').select()")
    browser.call("Input.insertText", text="banana\nbanana")
    listed = "[...document.querySelectorAll('.merges li')].map((it) => it.textContent)"
    grown = ["n + a 4×", "▁ + b 2×", "▁b + a 2×", "▁ba + na 2×", "▁bana + na 2×"]
    assert browser.run(listed) == grown
    assert "from 14 symbols" in told(browser, "byte-pairs")
    right = "document.querySelector('[name=text]').getBoundingClientRect().right"
    assert browser.run(right) <= 390
    assert browser.run("document.documentElement.scrollWidth") <= 390


@needs_chromium
def test_attention_is_written_in_the_page(near):
    window = near("attention-check", 390)
    check = "document.querySelector('attention-check [name=check]').click()"
    wrong = "aren’t divided by √d_k before the softmax"

    def write(code: str, answer: str) -> None:
        window.run("document.querySelector('attention-check textarea').select()")
        window.call("Input.insertText", text=code)
        window.run(check)
        window.wait(f"{found}.includes({json.dumps(answer)})", 20)

    found = "document.querySelector('attention-check .told').textContent"
    window.run(check)
    window.wait(f"{found}.includes('{wrong}')", 20)
    tables = "document.querySelectorAll('attention-check table').length"
    assert window.run(tables) == 2
    write("function attention() { for (;;); }", "doesn’t end")
    write("function attention( {", "doesn’t run: SyntaxError")
    write(WEIGH.replace("WEIGHTS", RIGHT_WEIGHTS), "✓ attention is right")
    assert window.run(tables) == 0


@needs_chromium
def test_a_translation_is_edited_and_scored(near):
    window = near("bleu-bars", 390)
    assert told(window, "bleu-bars").endswith("BLEU is 34.2.")

    def write(text: str) -> str:
        window.run("document.querySelector('bleu-bars [name=output]').select()")
        window.call("Input.insertText", text=text)
        return told(window, "bleu-bars")

    assert write("She was born on March 21.").endswith("BLEU is 34.2.")
    assert "BLEU is 70.7" in write("She was not born on the twenty-first of March.")
    filled = "document.querySelectorAll('bleu-bars .part .boxes rect').length"
    assert window.run(filled) == 9 + 9 + 7 + 5 + 4  # reference, words, and longer runs
    label = "document.querySelector('bleu-bars .part svg').ariaLabel"
    assert "9 of 10 words, 7 of 9 pairs" in window.run(label)
    assert "no run of four" in write("<b>")
    assert window.run("document.querySelectorAll('bleu-bars b').length") == 0
    assert write(" ") == "Nothing is written yet: BLEU is 0."


@needs_chromium
def test_brackets_draw_a_tree_and_are_repaired(near):
    window = near("tree-brackets", 390)
    whole = "A tree, nothing to repair. 22 tokens over 8 words. The elephant wears the"
    assert told(window, "tree-brackets").startswith(whole)
    field = "document.querySelector('tree-brackets textarea')"

    def write(text: str) -> str:
        window.run(f"{field}.select()")
        window.call("Input.insertText", text=text)
        return told(window, "tree-brackets")

    row = PARTS["tree-brackets"]["sentences"][0]["row"]
    assert "Repaired: 0 added" in write(row.replace("(NP (NP DT", "(NP DT"))
    assert told(window, "tree-brackets").endswith("The hunter wears the pajamas.")
    unclosed = write(row.replace(")PP )NP", ")PP"))
    assert unclosed.startswith("Repaired: 1 added") and "The elephant" in unclosed
    assert write("<b> (<i>").startswith("Repaired: 8 added")
    assert (
        window.run("document.querySelectorAll('tree-brackets :is(b, i)').length") == 0
    )
    select = "document.querySelector('tree-brackets select')"
    change = f"{select}.dispatchEvent(new Event('input', {{bubbles: true}}))"
    window.run(f"{select}.value = 1; {change}")
    assert told(window, "tree-brackets").startswith("Repaired: 0 added")
    label = "document.querySelector('tree-brackets .part svg').ariaLabel"
    assert window.run(label).startswith("A tree. NP of NP of the, twenty-first (end of")


@needs_chromium
def test_a_beam_is_stepped_through(near):
    window = near("beam-steps")
    assert told(window, "beam-steps") == "Step 3 of 8. Nothing has ended yet."
    rows = (
        "[...document.querySelectorAll('beam-steps .grows tr')].map((r) => r.innerText)"
    )
    assert [row.split("\t")[::2] for row in window.run(rows)[1:3]] == [
        ["Er arbeitet Nacht", "lives on"],
        ["Er arbeitet nachts", "lives on"],
    ]
    window.run("document.querySelector('beam-steps [name=step]').focus()")
    for _ in range(2):
        press(window, "ArrowRight")
    best = "The best that has ended: Er arbeitet nachts."
    assert told(window, "beam-steps") == f"Step 5 of 8. {best}"


@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
def test_a_suspect_is_accused(near, width):
    window = near("bug-gallery", width)
    first = PARTS["bug-gallery"]["cases"][0]
    shown = "document.querySelector('bug-gallery .reveal').textContent"
    assert window.run(shown) == ""
    press = "document.querySelector('bug-gallery form button').click()"
    window.run(press)
    assert told(window, "bug-gallery") == "Choose a suspect first."
    wrong = next(each for each in first["suspects"] if each != first["name"])
    radio = f"document.querySelector('bug-gallery [value={wrong}]')"
    window.run(f"{radio}.click()")
    window.run(press)
    assert told(window, "bug-gallery").startswith("✗ Innocent.")
    assert first["why"][:40] in window.run(shown)
    window.run("document.querySelector('bug-gallery [name=next]').click()")
    assert told(window, "bug-gallery").startswith("Case 2 of ")
    assert window.run(shown) == ""


@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
def test_the_race_is_read_by_updates_and_by_seconds(near, width):
    window, runs = near("race-curves", width), PARTS["race-curves"]["runs"]
    finish = min(run["curve"][-1]["step"] for run in runs)
    window.run("document.querySelector('race-curves [name=at]').focus()")
    press(window, "End")
    said = told(window, "race-curves")
    assert said.startswith(f"After {finish} updates: recurrent ")
    window.run(
        "const axis = document.querySelector('race-curves [name=axis]');"
        "axis.value = 'seconds';"
        "axis.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    ends = {
        side: mean(r["curve"][-1]["accuracy"] for r in runs if r["side"] == side)
        for side in ("recurrent", "Transformer")
    }
    said = told(window, "race-curves")
    assert said.startswith("After 90 seconds: recurrent ")
    shares = [float(each) / 100 for each in re.findall(r"([\d.]+) %", said)]
    for share, expected in zip(shares, ends.values(), strict=True):
        assert share == pytest.approx(expected, abs=0.01)


@needs_chromium
def test_heads_are_turned_off(near):
    window = near("head-switch", 390)
    whole = "All heads: Sie nahm ihren Mantel ab, weil es nass war."
    assert told(window, "head-switch") == whole
    box = "document.querySelector('head-switch [value=\"encoder.2.2\"]')"
    assert window.run(f"{box}.ariaLabel") == "encoder, layer 3, head 3"
    window.run("document.querySelector('head-switch [type=checkbox]').focus()")
    for key in ("ArrowDown", "ArrowRight", "ArrowDown", "ArrowRight"):
        press(window, key)
    assert window.run("document.activeElement.value") == "encoder.2.2"
    press(window, " ")
    mended = "Without encoder 3.3: Sie nahm ihren Mantel ab, weil er nass war."
    window.wait(f"{told_of('head-switch')}.includes({json.dumps(mended)})")
    window.run("document.querySelector('head-switch [name=all]').click()")
    window.wait(f"{told_of('head-switch')} === {json.dumps(whole)}")
    assert window.run("document.documentElement.scrollWidth") <= 390


@needs_chromium
def test_parts_that_translate_open_one_model(near):
    """None lies beside this page, so each gets the error that the opener gives."""
    window = near("head-switch")
    window.run("openModel = () => Promise.reject(new Error('no model here'))")
    boxes = "document.querySelectorAll('head-switch [type=checkbox]')"
    window.run(f"{boxes}[0].click(); {boxes}[1].click()")
    window.wait(f"{told_of('head-switch')} === 'no model here'")


@needs_chromium
def test_the_diary_is_leafed_through(near):
    window = near("training-diary")
    assert told(window, "training-diary").startswith("After 150 updates, “the twenty-")
    slider = "document.querySelector('training-diary [name=at]')"
    window.run(f"{slider}.focus()")
    press(window, "ArrowRight")
    assert told(window, "training-diary").startswith("After 160 updates")
    assert window.run(f"{slider}.ariaValueText") == "160 updates"
    change = f"{slider}.dispatchEvent(new Event('input', {{bubbles: true}}))"
    window.run(f"{slider}.value = 60; {change}")
    assert told(window, "training-diary").endswith("is “der einundzwanzigste März”.")


@needs_chromium
def test_a_translation_is_written_and_walked_through(near):
    window = near("attention-arcs")
    window.wait("document.querySelectorAll('.part .joint[style]').length > 2")
    window.wait(
        "!document.querySelector('.part .joint[style]')"
        " && /wohnt/.test(document.querySelector('attention-arcs .told').textContent)"
    )
    window.run("document.querySelector('attention-arcs .part').focus()")
    window.press("ArrowRight")
    assert told(window, "attention-arcs").startswith("To write “.”, it looks most at")
    joint = "document.querySelector('attention-arcs .part [data-at=\\'2\\']')"
    window.run(f"{joint}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert told(window, "attention-arcs").startswith("To write “nicht”, it looks most")


@needs_chromium
def test_arcs_follow_what_the_page_translates(near):
    """With the mean of the last layer's heads; their words are read aloud, too."""
    window = near("attention-arcs")
    found = {
        "source": ["▁Good", '▁"', "</s>"],
        "target": ["▁Gut", "</s>"],
        "looks": {
            "cross.0": {"weights": [[[0, 1, 0], [0, 1, 0]]]},
            "cross.1": {
                "weights": [[[1, 0, 0], [0, 0, 1]], [[0.5, 0.5, 0], [0, 0, 1]]]
            },
        },
    }
    event = f"new CustomEvent('translated', {{ detail: {json.dumps(found)} }})"
    window.run(f"document.dispatchEvent({event})")
    assert told(window, "attention-arcs") == (
        "To write “Gut”, it looks most at “Good” (0.75)."
    )
    label = "document.querySelector('attention-arcs .part svg').ariaLabel"
    assert window.run(label) == (
        'Above: Good " end. Below: Gut end. '
        "It looks most, for Gut, at Good; for end, at end."
    )


@needs_chromium
def test_figure_one_is_walked_through(near):
    window = near("figure-one")
    assert told(window, "figure-one").startswith("embedding: 7 × 128")
    window.run("document.querySelector('figure-one [data-by=\\'1\\']').click()")
    assert told(window, "figure-one").startswith("+ positions: 7 × 128")
    tap = "document.querySelector('figure-one [data-box=cross-attention] rect')"
    for layer in (1, 2, 1):  # a second tap goes to the next layer
        window.run(f"{tap}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
        assert told(window, "figure-one").startswith(f"cross-attention, layer {layer}:")
    cells = "document.querySelector('figure-one .part .cells').innerHTML"
    first = window.run(cells)
    head = "document.querySelector('figure-one [name=head]')"
    change = "dispatchEvent(new Event('input', { bubbles: true }))"
    window.run(f"{head}.value = 3; {head}.{change}")
    assert window.run(cells) != first
    label = "document.querySelector('figure-one .part .what svg').ariaLabel"
    assert "März: " in window.run(label)


@pytest.fixture(scope="module")
def telephone(page: str) -> Iterator[Browser]:
    """The page on a telephone, opened once."""
    with Browser(390, 800) as window:
        window.open(page)
        yield window


@needs_chromium
@pytest.mark.parametrize("name", PARTS)
def test_controls_have_names_and_room(telephone, name):
    """Each control is named, 24 px or more, and the page fits a telephone."""
    window = telephone
    shown(window, name)
    assert window.run("document.documentElement.scrollWidth") <= 390
    small = window.run(
        f"[...document.querySelectorAll('{name} :is(input, button, select)')]"
        ".map((each) => [each.outerHTML, each.getBoundingClientRect()])"
        ".filter(([, box]) => box.width < 24 || box.height < 24).map(([it]) => it)"
    )
    assert small == []
    unnamed = window.run(
        f"[...document.querySelectorAll('{name} :is(input, select, button)')].filter("
        "(each) => !each.labels?.length && !each.ariaLabel && !each.textContent.trim())"
        ".length"
    )
    assert unnamed == 0 and window.errors == []


def test_a_chapters_part_names_its_data():
    """A file that a part names lies where it says."""
    for chapter in sorted((touch.ROOT / "nbs").rglob("*.ipynb")):
        for file in re.findall(r":data: (\S+?)\\n", chapter.read_text()):
            assert Path(touch.ROOT, file).is_file()


def test_the_cards_are_the_records_examples_and_mean_four_kinds():
    state = STILLS["error-cards"]
    kinds = in_node("error-cards.js", "it.KINDS")
    lines = [card["line"] for card in state["cards"]]
    assert set(lines) <= {each["line"] for each in state["examples"]}
    assert len(set(lines)) == 12
    said = {kind for card in state["cards"] for kind in card["kinds"]}
    assert said == set(range(len(kinds)))


@needs_chromium
def test_who_looks_for_the_mistake_is_told_and_counted(near):
    window = near("error-cards")
    press_button = "document.querySelector('error-cards [value=\"{}\"]').click()"
    assert told(window, "error-cards") == "Card 1 of 12."
    window.run(press_button.format(0))
    assert told(window, "error-cards").startswith("Yes: The reference says")
    assert told(window, "error-cards").endswith("BLEU gives 74. (1 of 1 found.)")
    window.run(press_button.format(0))  # a second answer doesn't count
    assert told(window, "error-cards").endswith("(1 of 1 found.)")
    window.run("document.querySelector('error-cards [name=next]').click()")
    window.run(press_button.format(2))
    assert told(window, "error-cards").startswith("No, a fact: black became white.")
    assert told(window, "error-cards").endswith("(1 of 2 found.)")
    for _ in range(10):
        window.run("document.querySelector('error-cards [name=next]').click()")
        window.run(press_button.format(0))
    assert told(window, "error-cards").endswith(" of 12 found.)")
    window.run("document.querySelector('error-cards [name=next]').click()")
    assert told(window, "error-cards") == "Card 1 of 12."


# -- a lost line, and the days that are held out ---------------------------------------


@needs_node
def test_a_lost_line_shifts_the_pairs_below_it():
    lines = [{"english": str(i), "german": str(i)} for i in range(8)]
    one = {"lines": lines, "lost": {"german": [1]}}
    both = {"lines": lines, "lost": {"german": [1], "english": [5]}}
    found = in_node("lost-line.js", f"it.pairs({json.dumps(one)})")
    assert found == [[0, 0], *([i, i + 1] for i in range(1, 7)), [7, None]]
    assert in_node("lost-line.js", f"it.told({json.dumps(one)})") == (
        "8 English lines, 7 German lines; 1 of 7 pairs is right."
    )
    found = in_node("lost-line.js", f"it.pairs({json.dumps(both)})")
    assert [a == b for a, b in found] == [True] + 4 * [False] + 2 * [True]


@needs_chromium
def test_lines_are_lost_on_the_open_side_and_put_back(near):
    window = near("lost-line")
    whole = "8 English lines, 8 German lines; 8 of 8 pairs are right."
    assert told(window, "lost-line") == whole
    buttons = "[...document.querySelectorAll('lost-line [data-side]')]"
    sides = window.run(f"{buttons}.map((e) => e.dataset.side)")
    assert sides == 8 * ["german"]
    window.run(f"{buttons}[1].click()")
    assert told(window, "lost-line").endswith("; 1 of 7 pairs is right.")
    assert window.run("document.activeElement.name") == "back"
    press(window, " ")
    assert told(window, "lost-line") == whole


@needs_node
def test_the_days_are_the_phrasebooks():
    """Each day's words in six languages, and its split."""
    state = PARTS["held-out-days"]
    pattern = next(each for each in PATTERNS if each.texts["en"] == "{day_in_words}")
    days = [date(2000, 1, 1) + timedelta(days=n) for n in range(366)]
    asked = ", ".join(
        f"[it.said(s, {day.month - 1}, {day.day - 1}),"
        f" it.split(s, {day.month - 1}, {day.day - 1})]"
        for day in days
    )
    given = json.dumps(state)
    found = in_node("held-out-days.js", f"((s) => [{asked}])({given})")
    for day, (said, letter) in zip(days, found, strict=True):
        phrase = Phrase(pattern, (day,))
        assert said == {each: phrase.say(each) for each in LANGUAGES}
        assert letter == {"test": "t", "val": "v", "train": "."}[split_of(phrase)]


@needs_chromium
def test_a_day_is_chosen_by_its_name_and_by_its_square(near):
    window = near("held-out-days", 390)
    assert told(window, "held-out-days").startswith(
        "“the twenty-first of March” is in the test"
    )
    month = "document.querySelector('held-out-days [name=month]')"
    change = f"{month}.dispatchEvent(new Event('change', {{bubbles: true}}))"
    window.run(f"{month}.value = 11; {change}")
    assert "twenty-first of December” is in training" in told(window, "held-out-days")
    square = "document.querySelector('held-out-days .part [data-at=\"11 23\"]')"
    click = "dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    window.run(f"{square}.{click}")
    assert "twenty-fourth of December” is in validation" in told(
        window, "held-out-days"
    )
    wide = window.run("document.querySelector('.touch:has(held-out-days)').scrollWidth")
    assert wide <= 390
