"""Arguments of the wrong kind get one error that says what is wanted.

They are tried in a fresh Python: in this one the signatures are checked first.
"""

import subprocess
import sys

SCRIPT = """
from annotated_transformer import SearchOptions, UserError, load
translator = load("phrasebook-en-de", device="cpu")
word = "March"
for call in (
    lambda: translator.translate([None]),
    lambda: translator.translate(None),
    lambda: translator.translate(b"x"),
    lambda: translator.translate([b"x"]),
    lambda: translator.translate(word for _ in range(3)),
    lambda: translator.translate({word}),
    lambda: translator.translate(7),
    lambda: translator.n_best([None], SearchOptions()),
    lambda: translator.score([word], None),
    lambda: translator.score(b"x", word),
    lambda: translator.attention(None),
    lambda: translator.attention(word, b"x"),
    lambda: list(translator.translate_stream([None])),
    lambda: list(translator.translate_stream([word], lines_at_once=float("nan"))),
    lambda: translator.check([None]),
    lambda: translator.tokenizer([word, None]),
    *(lambda n=n: translator.score(word, word, batch_tokens=n) for n in BUDGETS),
    *(lambda n=n: SearchOptions(batch_tokens=n) for n in BUDGETS),
    lambda: SearchOptions(beam_size=10**6),
    lambda: SearchOptions(n_best=10**6, temperature=1.0),
):
    try:
        call()
        print("accepted")
    except UserError as error:
        print(error)
print(list(translator.translate_stream(word for _ in range(2))))
"""


def test_each_call_that_makes_no_sense_is_one_user_error():
    script = SCRIPT.replace("BUDGETS", '(0, -5, float("nan"), 2.5)')
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    *said, last = done.stdout.splitlines()
    assert last == "['März', 'März']" and len(said) == 26
    wanted = ["line 1 is None", "got NoneType", "got bytes", "line 1 is b'x'"]
    wanted += ["put them in a list", "got set", "got int", "line 1 is None"]
    wanted += ["got NoneType", "got bytes", "source line 1 is None", "target line 1"]
    wanted += ["line 1 is None", "lines_at_once is nan", "line 1 is None"]
    wanted += ["texts is ['March', None]: give a text"]
    wanted += 2 * [f"batch_tokens is {n}" for n in ("0", "-5", "nan", "2.5")]
    wanted += ["beam_size is 1000000", "n_best is 1000000"]
    for words, line in zip(wanted, said, strict=True):
        assert words in line, line


PREPARE = """
from pathlib import Path
from annotated_transformer import UserError, prepare, recipe
from annotated_transformer.translation.task import FirstPairs
plan, good = recipe("phrasebook"), [("one house", "ein Haus")] * 9
Path("file").write_text("x")
wrong = [[], [("a", "b", "c")], [("a",)], ["a house"], ["ab"], [("a", None)], [(1, 2)]]
wrong += [[(b"a", b"b")], [*good, ("a", "b", "c")], "ab", b"ab", None, 7, {"a": "b"}]
wrong += [Path("x"), iter(good), FirstPairs(iter(good), 3), lambda: None]
calls = [(plan, "run", each, good) for each in wrong]
calls += [(plan, "run", good, each) for each in wrong]
calls += [(each, "run", good, good) for each in ("phrasebook", None, plan.training)]
calls += [(plan, each, good, good) for each in (None, 3, "file")]
calls += [(plan, "run", good, good, 3), (plan, "run", good, good, None, "cpuu")]
calls += [(plan, "run", good, good, None, "cpu", "phrasebook-en-de")]
for call in calls:
    try:
        prepare(*call)
        print("accepted")
    except UserError as error:
        print(error)
    assert [each.name for each in Path().iterdir()] == ["file"]
"""


def test_wrong_arguments_of_prepare_are_named_before_a_folder_is_made(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PREPARE], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    said = iter(done.stdout.splitlines())
    places = ["{} is empty", *["{}[0] is "] * 7, "{}[9] is ('a', 'b', 'c')"]
    places += [*["{} is "] * 6, *["{} is an iterator"] * 2, "{}() is None"]
    wanted = [place.format(name) for name in ("train", "valid") for place in places]
    wanted += ["plan is 'phrasebook': give a recipe", "plan is None", "plan is Tr"]
    wanted += ["folder is None", "folder is 3", "file can't be written"]
    wanted += ["report is 3", "device 'cpuu' is not there", "init_from is 'phrase"]
    for words, line in zip(wanted, said, strict=True):
        assert line.startswith(words) and (": give " in line or ": choose " in line)
