"""The package as one uses it in Python: the pages' examples, ids, texts and runs of any
form, and one clear error for what makes no sense.
"""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from annotated_transformer import (
    UserError,
    fine_tune,
    fit,
    load,
)

ROOT = Path(__file__).resolve().parent.parent
NAME, FEW = "phrasebook-en-de", {"steps": 2, "log_every": 1, "save_every": 1}
PAIRS = [("March 3", "3. März"), ("May 4", "4. Mai")] * 5
QUIET = {"report": None, "device": "cpu"}


@pytest.fixture(scope="module", params=["torch", "plain", "ctranslate2"])
def translator(request):
    if request.param == "ctranslate2":
        pytest.importorskip("ctranslate2")
    return load(NAME, device="cpu", engine=request.param)


# -- the pages -------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["training", "decoding", "public"])
def test_the_example_of_an_api_page_runs(page, tmp_path, monkeypatch):
    """And its last line has the value that stands behind it."""
    text = (ROOT / "nbs" / "api" / f"{page}.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    *lines, last = code.splitlines()
    value, _, wanted = last.partition("  # ")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec("\n".join(lines), names)  # noqa: S102
    assert str(eval(value, names)) == str(eval(wanted))  # noqa: S307


# -- ids -------------------------------------------------------------------------------


def test_ids_may_come_in_any_form(translator):
    texts = ["March", "the twenty-first of March"]
    batch = translator.tokenizer(texts, return_tensors="pt")
    ids = batch["input_ids"]
    forms = [translator.tokenizer(texts), batch, ids, ids.numpy(), [*ids], ids.tolist()]
    for rows in forms:
        found = translator.engine.search(rows)
        tokens = [best.tokens for best, *_ in found]
        assert translator.tokenizer.decode(tokens) == translator.translate(texts)


# -- texts -----------------------------------------------------------------------------


def test_a_blank_text_has_a_blank_translation(translator):
    assert translator.translate(["", "March", " \n"]) == ["", "März", ""]
    assert translator.translate("") == ""
    assert [each.text for each in translator.n_best("")] == [""]


def test_a_tokenizer_is_shown_in_a_line():
    assert repr(load(NAME).tokenizer) == "PairTokenizer(en to de, 1,000 shared tokens)"


# -- runs ------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["name", "folder", "translator"])
def test_a_run_goes_on_from_a_model_however_it_is_named(tmp_path, by):
    opened = load(NAME, device="cpu")
    opened.save_pretrained(tmp_path / "model")
    start = {"name": NAME, "folder": tmp_path / "model", "translator": opened}[by]
    table = pd.DataFrame(PAIRS, columns=["en", "de"])
    run = fine_tune(start, tmp_path / "run", table, PAIRS, **QUIET, **FEW)
    assert run.task.fine_tunes and run.config.peak == 3e-4 and fit(run) == "finished"
    assert load(tmp_path / "run", device="cpu").translate("March 3") == "3. März"


def test_the_reverse_direction_is_asked_for_by_its_languages(tmp_path):
    turned = [pair[::-1] for pair in PAIRS]
    sides = {"src": "de", "tgt": "en"}
    run = fine_tune(NAME, tmp_path / "run", turned, turned, **QUIET, **FEW, **sides)
    assert repr(run.task.tokenizer) == "PairTokenizer(de to en, 1,000 shared tokens)"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"d_model": 32}, "d_model follows from the data or the model"),
        ({"joint": False}, "joint follows from"),
        ({"stpes": 3}, "unknown setting 'stpes': did you mean 'steps'"),
        ({"epochs": 2}, "epochs is 2: it must be 0: give the steps"),
        ({"src": "fr"}, "phrasebook-en-de translates en to de"),
    ],
)
def test_settings_that_make_no_sense_are_named_before_a_folder_is_made(
    tmp_path, settings, words
):
    with pytest.raises(UserError, match=words):
        fine_tune(NAME, tmp_path / "run", PAIRS, PAIRS, **QUIET, **settings)
    assert not (tmp_path / "run").exists()


def test_another_list_of_pairs_or_setting_is_another_run(tmp_path):
    where = NAME, tmp_path / "run"
    assert fit(fine_tune(*where, PAIRS, PAIRS, **QUIET, **FEW)) == "finished"
    assert fit(fine_tune(*where, PAIRS, PAIRS, **QUIET, **FEW)) == "finished"
    with pytest.raises(UserError, match="list has other content.*overwrite=True"):
        fine_tune(*where, PAIRS[:4], PAIRS, **QUIET, **FEW)
    with pytest.raises(UserError, match="seed is 1 there .*overwrite=True"):
        fit(fine_tune(*where, PAIRS, PAIRS, **QUIET, **FEW, seed=2))
    assert fit(fine_tune(*where, PAIRS[:4], PAIRS, overwrite=True, **QUIET, **FEW))


# -- what makes no sense ---------------------------------------------------------------

# In a fresh Python, since in this one the signatures are checked first.
BEGIN = """
import numpy as np, pandas as pd, torch
from annotated_transformer import *
from annotated_transformer import UserError, TrainingConfig, doctor, fine_tune, fit
from annotated_transformer import load, make_task, start_run
from annotated_transformer.data.pictures import as_images
translator = load("phrasebook-en-de", device="cpu")
search, decode = translator.engine.search, translator.tokenizer.decode
translate, pairs = translator.translate, [("March", "März")]
column = pd.Series(["March", "May"], index=[7, 8])
for texts in (column, column.to_numpy(), tuple(column)):
    assert translate(texts) == ["März", "Mai"]
for call in CALLS:
    try:
        print(call, "is accepted and returns", eval(call))
    except UserError as error:
        print(error)
"""
ROWS = [[5, 2], [[5, 10**6]], [[-1, 2]], [[1.5]], ["March"], None, {"a": [[5]]}]
WRONG = {
    **{f"search({rows})": f"the ids are {rows}: give rows of ids" for rows in ROWS[:6]},
    "search({'a': [[5]]})": "the ids are None: give rows of ids below 1000",
    "search([[]])": "source row 0 h",
    "decode([5, 6])": "the ids are [5, 6]: give rows",
    "translate({'a': 'b'})": "expected a text or a list of texts and got dict",
    "translate(translator.tokenizer(['a']))": "expected a text or a list of texts and",
    "translate(pd.DataFrame({'en': ['a']}))": "expected a text or a list of texts and",
    "translate(np.array('a'))": "expected a text or a list of texts and got ndarray",
    "translate(['a', 3])": "line 2 is 3: give a text, of type str",
    "translate('a', alpha='x')": "alpha is 'x': give a number",
    "translate('a', temperature='hot')": "temperature is 'hot': give a number",
    "translate('a', 'b')": "options is 'b': give SearchOptions, or keywords",
    "translator.tokenizer('\\ud800')": "a text is not valid UTF-8: convert it",
    "translator.tokenizer(3)": "texts is 3: give a text, or a list of them",
    "translator.check('March ' * 300)": "line 1 has 301 tokens",
    "translator.check(None)": "lines is None: give lines",
    "translator.to(torch.float16)": "device 'torch.float16' is not there",
    "as_images([[0, 1], [1, 0]], 2, 2)": "expected an image and got int",
    "start_run('vision', 'run')": "task is 'vision': give a task, such as make_task",
    "fit('x')": "run is 'x': give what prepare, fine_tune or start_run returned",
    "make_task('vision', column)": "data is 7    March",
    "doctor(3)": "what is 3: give a run, a translator, or pairs",
    "doctor(pairs)": "pairs need both languages: src and tgt",
    "TrainingConfig(label_smoothing='x')": "label_smoothing is 'x': give a number",
    "fine_tune(translator, 'run', pairs, pairs, peak='x')": "peak is 'x': give a nu",
    "fine_tune(translator, 'run', pairs, pairs, max_tokens='x')": "max_tokens is 'x'",
    "fine_tune(translator, 'run', pairs, pairs, bpe_dropout='x')": "bpe_dropout is 'x'",
    "fine_tune(None, 'run', pairs, pairs)": "None: there is no such model",
}


def test_what_makes_no_sense_is_one_clear_error(tmp_path):
    code = f"CALLS = {[*WRONG]!r}\n{BEGIN}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if not line.startswith("8 ")]
    said = [line for line in said if not line.startswith("dtype")]
    for words, line in zip(WRONG.values(), said, strict=True):
        assert line.startswith(words), line
    assert not [*tmp_path.iterdir()]
