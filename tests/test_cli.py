"""The command line as a user meets it: what it prints, and one clear line with status 2
for each kind of bad input.
"""

import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
from html import unescape
from pathlib import Path

import pytest
import torch
from tiny_run import random_model, refused, train_arguments, write_pairs

import annotated_transformer
from annotated_transformer import cli
from annotated_transformer.cli import exit_status
from annotated_transformer.model_names import SHIPPED
from annotated_transformer.pretrained import load

SHIPPED_MODELS = ("phrasebook-en-de", "tatoeba-en-de", "hf:owner/name", "base or big")
ROOT = Path(__file__).resolve().parents[1]
# A model with random weights seldom ends a sentence, which the command line says in a
# warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*reached its limit")
TRANSLATOR = "annotated_transformer.translation.translator.Translator"
US = [sys.executable, "-m", "annotated_transformer"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return random_model(tmp_path_factory.mktemp("models") / "random")


def lines(path, *texts):
    path.write_bytes("".join(f"{text}\n" for text in texts).encode())
    return path


def started(*arguments, command=US, **more):
    """The command line in a process of its own, which heeds SIGINT.

    What runs in the background of a shell without a terminal ignores SIGINT, and so do
    its children.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | more
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **pipes,
    )


def ended(*arguments, command=US, **more):
    """Status, standard output and error of the command line in its own process."""
    with started(*arguments, command=command, **more) as process:
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


# --- translation


def walk(command, path=()):
    """Every command with its words."""
    if not hasattr(command, "commands"):
        yield path
        return
    for name in command.list_commands(None):
        yield from walk(command.get_command(None, name), (*path, name))


def test_every_command_has_help_with_an_example(run):
    from typer.main import get_command

    found = list(walk(get_command(cli.app)))
    assert len(found) > 24
    for words in found:
        status, out, _ = run(*words, "--help")
        text = " ".join(out.split())
        assert status == 0 and f"annotated-transformer {' '.join(words)}" in text, words
    assert "peak=0.002" in run("classifier", "train", "--help")[1]


def test_translate_reads_files_pipes_and_arguments_alike(run, model, tmp_path):
    expected = run("translate", "-m", model, "March 3")[1]
    plain, packed = lines(tmp_path / "a", "March 3", "  ", "March 3"), tmp_path / "b.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbfMarch 3\n"))
    assert run("translate", "-m", model, "-i", plain)[1] == f"{expected}\n{expected}"
    assert run("translate", "-m", model, "-i", packed)[1] == expected
    assert run("translate", "-m", model, "March 3\nMarch 3\n")[1] == 2 * expected
    reading, writing = os.pipe()
    os.write(writing, b"March 3\n")
    os.close(writing)
    assert run("translate", "-m", model, "-i", f"/dev/fd/{reading}")[1] == expected


@pytest.mark.parametrize("arguments", [[], ["-"], ["-i", "-"]])
def test_translate_reads_standard_input(run, model, monkeypatch, arguments):
    expected = run("translate", "-m", model, "March 3")[1]
    for given in (b"March 3\n", b"\xef\xbb\xbfMarch 3\n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        assert run("translate", "-m", model, *arguments)[:2] == (0, expected)
    packed = io.BytesIO(gzip.compress(b"March 3\n"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(packed))
    refused(run("translate", "-m", model), "packed by gzip")
    endless = io.TextIOWrapper(io.BytesIO(b"a" * 2**24))
    monkeypatch.setattr(sys, "stdin", endless)
    refused(run("translate", "-m", model), "line 1 is longer than 1,048,576 bytes")
    assert endless.buffer.tell() < 2**22


@pytest.mark.parametrize(("interrupt", "status"), [(False, 0), (True, 130)])
def test_translate_answers_a_line_before_the_next_arrives(model, interrupt, status):
    with started("translate", "-m", model, stdin=subprocess.PIPE) as process:
        process.stdin.write("March 3\n")
        process.stdin.flush()
        assert process.stdout.readline().endswith("\n")
        process.send_signal(signal.SIGINT) if interrupt else process.stdin.close()
        assert process.wait(timeout=60) == status
        assert "Traceback" not in process.stderr.read()


def test_n_best_samples_and_lengths(run, model):
    _, out, _ = run("translate", "-m", model, "--n-best", 3, "March 3")
    scores = [float(line.split("\t")[0]) for line in out.splitlines()]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True)
    drawn = ["translate", "-m", model, "March 3", "--temperature", 1, "--seed", 7]
    first, second = (run(*drawn, "--n-best", 3) for _ in "12")
    assert first[0] == 0 and first == second and len(first[1].splitlines()) == 3
    short = run("translate", "-m", model, "March 3", "--max-length", 2)[1]
    assert len(short) < len(run("translate", "-m", model, "March 3")[1])


def test_score_prints_total_and_mean(run, model):
    status, out, _ = run("score", "-m", model, "March 3", "3. März")
    total, mean, *sides = out.rstrip("\n").split("\t")
    assert status == 0 and sides == ["March 3", "3. März"]
    assert float(total) < float(mean) < 0
    assert run("score", "-m", model, "March ☃", "3. März")[0] == 0


def test_evaluate_writes_scores_and_translations(run, model, tmp_path):
    record, saved = tmp_path / "scores.json", tmp_path / "out.de"
    asked = ["--corpus", "phrasebook", "--limit", 5, "--beam-size", 1]
    files = ["--record", record, "--save", saved]
    status, out, told = run("evaluate", "-m", model, *asked, *files)
    assert status == 0 and "exactly right" in out and "nrefs:1|case:mixed" in out
    assert "phrasebook's split test" in told
    assert json.loads(record.read_text())["sentences"] == 5
    assert len(saved.read_text().splitlines()) == 5


def test_attend_writes_one_page_with_every_head(run, model, tmp_path):
    page = tmp_path / "page[v2].html"
    status, out, _ = run("attend", "-m", model, "March ☃", "--out", page)
    text = page.read_text(encoding="utf-8")
    assert status == 0 and str(page) in out and "https://" not in text
    for panel in json.loads(unescape(text.split("panels='")[1].split("'>")[0])):
        weights = torch.tensor(panel["weights"])
        assert weights.shape == (1, 2, len(panel["queries"]), len(panel["keys"]))
        assert torch.allclose(weights.sum(-1), torch.ones(()), atol=0.01)
    status, _, err = run("attend", "-m", model, "March", "--out", tmp_path / "page.pdf")
    assert status == 2 and "page.pdf: attend writes a page" in err


def test_average_of_one_model_is_that_model(run, model, tmp_path):
    mean = tmp_path / "mean"
    assert run("average", model, model, "--out", mean)[0] == 0
    asked = ("translate", "March 3", "-m")
    assert run(*asked, mean) == run(*asked, model)


def test_info_and_corpora(run):
    status, out, _ = run("info", "base")
    assert status == 0 and "63,045,632" in out and "Licence" not in out
    status, out, _ = run("info", "phrasebook-en-de")
    assert status == 0 and "**Licence.**" in out and "98.5 %" in out
    status, out, _ = run("corpora")
    assert status == 0 and "\nmulti30k\n" in out and "test_2017_mscoco 461" in out
    assert "source: https://github.com/multi30k/dataset\n" in out
    assert out.count("prepare yourself: train\n") == 1


def test_info_names_models_first_where_there_is_nothing(run):
    refused(run("info", "nonexistent"), "neither a model nor a preset", *SHIPPED_MODELS)
    refused(run("info", "tatoeba"), "did you mean 'tatoeba-en-de'?")
    refused(run("info", "bas"), "did you mean 'base'?")


def test_without_a_model_the_one_for_everyday_sentences_answers(run):
    record = ROOT / "results/runs/tatoeba-en-de/robustness.json"
    first = json.loads(record.read_text("utf-8"))["sixty"]["outputs"][0]
    status, out, _ = run("translate", first["source"])
    assert (status, out.strip()) == (0, first["output"])
    phrase = "the twenty-first of March"
    assert load(device="cpu").translate(phrase) == "der einundzwanzigste März"


SMALL = "N=1 d_model=16 d_ff=32 h=2 d_k=8 d_v=8 precision=fp32 log_every=5 save_every=5"


@pytest.fixture
def own(tmp_path):
    """Arguments of `train` for pairs of one's own and a model of milliseconds."""
    sizes = f"{SMALL} vocab_size=200 batch_tokens=256"
    return train_arguments(write_pairs(tmp_path), tmp_path / "run", sizes)


def test_train_then_go_on(run, own, tmp_path):
    """Ten updates, then five more by the same command; the log has each step once."""
    assert run(*own, "--set", "steps=10")[0] == 0
    assert run(*own, "--set", "steps=15")[0] == 0
    log = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in log]
    steps = [record["step"] for record in records if record["event"] == "update"]
    assert steps == [5, 10, 15]
    assert run("translate", "-m", tmp_path / "run", "March 3")[0] == 0
    status, out, _ = run("plot", tmp_path / "run", "-o", tmp_path / "curves.svg")
    assert status == 0 and (tmp_path / "curves.svg").exists()
    assert (
        "languages                       en to de" in run("info", tmp_path / "run")[1]
    )
    seed = ["--set", "steps=15", "--set", "seed=2"]
    refused(run(*own, *seed), tmp_path / "run", "another run", "--overwrite")
    assert run(*own, *seed, "--overwrite")[0] == 0


def test_a_run_of_few_updates_has_no_curve_yet(run, own, tmp_path):
    assert run(*own, "--set", "steps=2", "--set", "log_every=5")[0] == 0
    refused(run("plot", tmp_path / "run"), "no logged update", "--set log_every=1")


def test_bleu_is_drawn_where_it_was_measured(run, own, tmp_path):
    picture = tmp_path / "curves.svg"
    for pairs, shown in ((0, False), (2, True)):
        more = ["--set", "steps=5", "--set", f"translate={pairs}", "--overwrite"]
        assert run(*own, *more)[0] == 0
        assert run("plot", tmp_path / "run", "-o", picture)[0] == 0
        assert ("<!-- BLEU -->" in picture.read_text()) == shown


def test_other_files_in_a_run_s_folder_are_named(run, own, tmp_path):
    assert run(*own, "--set", "steps=2")[0] == 0
    for name in ("en", "de"):
        with open(tmp_path / f"train.{name}", "a") as file:
            file.write("March 3\n")
    refused(run(*own, "--set", "steps=2"), "train.en has other content", "--overwrite")


# --- the other tasks


def write_examples(folder):
    rows = [
        f"{('bad', 'good')[i % 2]}\tthe film was {('dull', 'fun')[i % 2]} {i % 9}"
        for i in range(80)
    ]
    return lines(folder / "own.tsv", *rows)


def write_texts(folder):
    rows = [f"the cat number {i % 17} sat on the mat {i}" for i in range(200)]
    return lines(folder / "own.txt", *rows)


def write_images(folder):
    def idx(name, kind, *sizes):
        count = torch.tensor(sizes).prod().item()
        head = bytes([0, 0, 8, kind]) + b"".join(s.to_bytes(4, "big") for s in sizes)
        (folder / "own" / name).write_bytes(head + bytes(i % 3 for i in range(count)))

    (folder / "own").mkdir()
    for part, count in {"train": 36, "t10k": 12}.items():
        idx(f"{part}-images-idx3-ubyte", 3, count, 6, 8)
        idx(f"{part}-labels-idx1-ubyte", 1, count)
    return folder / "own"


def write_series(folder):
    rows = [f"2020-01-{1 + i // 24:02} {i % 24:02}:00,{i % 24}" for i in range(400)]
    return lines(folder / "own.csv", "date,load", *rows)


TINY = "N=1 d_model=16 d_ff=32 h=2"
# task: its data, settings for a tiny model, how long, and then longer; what uses it,
# with a part of its output.
CASES = {
    "classifier": (
        *(write_examples, "vocab_size=120 epochs=1"),
        *(["predict", "-i", "DATA"], "\t"),
    ),
    "language-model": (
        *(write_texts, "max_length=8 steps=4 save_every=2"),
        *(["generate", "the cat", "--length", 5, "--seed", 1], "the cat"),
    ),
    "masked-language-model": (
        *(write_texts, "vocab_size=70 max_length=16 steps=4 save_every=2"),
        *(["fill", "the [MASK] sat"], "1\t"),
    ),
    "vision": (write_images, "patch=2 epochs=1 shift=1", ["predict", "IMAGES"], "0."),
    "series": (
        *(write_series, "context=24 patch=6 horizon=6 steps=4 save_every=2"),
        *(["forecast", "DATA"], "date,load\n2020-01-17 16:00:00,"),
    ),
}


@pytest.mark.parametrize("task", CASES)
def test_a_task_is_trained_resumed_measured_and_used(run, tmp_path, task):
    write, sizes, use, shown = CASES[task]
    data, out = write(tmp_path), tmp_path / "run"
    sets = [word for each in f"{TINY} {sizes}".split() for word in ("--set", each)]
    train = [task, "train", data, "-o", out, *sets, "--device", "cpu"]
    status, told, err = run(*train)
    assert err == ""
    assert status == 0 and told.endswith(f"{out / 'model'}\n"), told
    assert run(*train)[0] == 0  # resumed where nothing is left to do
    refused(run(*train, "--set", "seed=2"), "another run", "--overwrite")
    assert run(*train, "--set", "seed=2", "--overwrite")[0] == 0
    status, told, _ = run(task, "evaluate", out, data, "--device", "cpu")
    names = [name.replace("_", " ") for name in load(out).evaluate(data)]
    assert status == 0 and told.startswith(f"{names[0]} ")
    places = {"DATA": data, "IMAGES": data / "t10k-images-idx3-ubyte"}
    verb, *rest = (places.get(str(word), word) for word in use)
    status, told, _ = run(task, verb, out, *rest, "--device", "cpu")
    assert status == 0 and shown in told
    assert run("info", out)[0] == 0
    refused(run("translate", "-m", out, "x"), f"or by the command '{task} {verb}'")
    for arguments, words in [
        (["train", data, "-o", out, "--set", "d_modle=8"], "d_model"),
        (["train", data, "-o", out, "--set", "peak"], "NAME=VALUE"),
        (["train", tmp_path / "none", "-o", out], "no such file"),
        (["evaluate", tmp_path / "none", data], "no such model"),
        (["evaluate", out, data, "--device", "tpu"], "tpu"),
        (["evaluate", SHIPPED, data], "or by the command 'translate'"),
    ]:
        refused(run(task, *arguments), words)


def test_a_masked_language_model_becomes_a_classifier(run, tmp_path):
    data, out = write_texts(tmp_path), tmp_path / "run"
    sizes = f"{TINY} vocab_size=70 max_length=16 steps=2".split()
    sets = [word for each in sizes for word in ("--set", each)]
    assert run("masked-language-model", "train", data, "-o", out, *sets)[0] == 0
    tune = ["masked-language-model", "fine-tune", out, write_examples(tmp_path)]
    tuned = ["-o", tmp_path / "tuned", "--set", "epochs=1"]
    assert run(*tune, *tuned, "--labels", 60)[0] == 0
    status, told, _ = run("classifier", "predict", tmp_path / "tuned", "fun")
    assert status == 0 and told.split("\t")[0] in ("good", "bad")


# --- what is refused

BOTH = ["--source", "TWO", "--reference", "TWO"]
PHRASES = ["train", "phrasebook", "--device", "cpu", "--out", "NEW", "--set"]
# Capital words name files of the test: ONE and TWO lines, none in EMPTY, LATIN,
# MODEL, NEW.
REFUSED = [
    ("translate five kilometers", ["kilometers", "in quotes"]),
    ("translate --bean-size 2 x", ["--bean-size", "translate --help"]),
    ("translate --beam-size nan x", ["--beam-size", "translate --help"]),
    ("trian phrasebook", ["trian", "train"]),
    (["translate", "- five kilometers"], ["write -- before"]),
    ("translate --n-best 0 x", ["n_best is 0"]),
    ("translate --n-best 2 --split x", ["--n-best", "--split"]),
    ("translate -i NONE", ["NONE"]),
    ("translate -i LATIN", ["LATIN", "2", "UTF-8"]),
    ("translate -i LONG", ["LONG, line 2 has"]),
    (["translate", "M\udce4rz"], ["not valid UTF-8"]),
    ("translate ONE", ["--input reads its lines"]),
    ("translate --strict ☃", ["☃"]),
    ("translate --strict March\u200b", ["U+200B"]),
    (["translate", "March 3 " * 100], ["64", "split"]),
    ("translate --top-k 2 x", ["give a temperature"]),
    (["translate", "x", "-m", "x" * 5000], ["xxx…"]),
    ("score --files EMPTY EMPTY", ["empty"]),
    ("score --files TWO ONE", ["TWO", "ONE"]),
    ("score ONE TWO", ["--files reads its lines"]),
    (["score", "", "3. März"], ["source line 1 is blank"]),
    ("attend x ONE -o NEW", ["ONE", "is a file"]),
    ("attend x -o ONE/page", ["folder that may be written"]),
    ("attend x -o MODEL/config.json", ["read or written by"]),
    (["evaluate", "--source", "TWO", "--reference", "ONE"], ["ONE"]),
    (["evaluate", *BOTH, "--save", "NEW", "--record", "NEW"], ["read or written by"]),
    (["evaluate", *BOTH, "--save", "LOCKED"], ["LOCKED", "can't be written"]),
    ("evaluate --corpus phrasebook --source a", ["--corpus", "--source"]),
    ("evaluate --corpus multi3k", ["multi30k"]),
    (
        "evaluate --corpus multi30k --split val --root /nowhere",
        ["/nowhere is no directory"],
    ),
    (["evaluate", *BOTH, "--language", "klingon"], ["klingon", "such as en"]),
    ("average MODEL -o MODEL", ["exists already"]),
    ("average a b --last 1 -o c", ["--last"]),
    ("info bigg", ["'big'"]),
    ("train phrasebok", ["phrasebook"]),
    ("train phrasebook --recipe iwslt14-de-en", ["--recipe"]),
    ("train phrasebook -o ONE/run", ["ONE"]),
    ("train ONE", ["--src, --tgt and --valid"]),
    ([*PHRASES, "warmpu=3"], ["warmup"]),
    ([*PHRASES, "bos_id=3"], ["bos_id follows from"]),
    ([*PHRASES, "steps=many"], ["steps", "whole number"]),
    ([*PHRASES, "tgt=pt"], ["pt", "de"]),
    ("plot MODEL", ["holds no run"]),
]


@pytest.fixture
def places(model, tmp_path):
    """The paths that capital words in REFUSED stand for."""
    (tmp_path / "LATIN").write_bytes("fine\nmärz\n".encode("latin-1"))
    texts = {"EMPTY": [], "LONG": ["x", "March 3 " * 100]}
    texts |= {"TWO": ["March 3", "March 4"], "ONE": ["3. März"], "ONE.en": ["x"]}
    texts |= {"LOCKED": ["old"]}
    for name, content in texts.items():
        lines(tmp_path / name, *content)
    (tmp_path / "LOCKED").chmod(0o444)
    shutil.copytree(model, tmp_path / "MODEL")
    return {name: tmp_path / name for name in [*texts, "LATIN", "NEW", "MODEL"]}


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_bad_input_is_one_line(run, places, tmp_path, arguments, words):
    given = arguments.split() if isinstance(arguments, str) else arguments
    command = given[0]
    if command in ("translate", "score", "attend", "evaluate") and "-m" not in given:
        given = [*given[:1], "-m", "MODEL", *given[1:]]
    first = [word.partition("/") for word in given]
    known = [str(places.get(a, a)) + slash + b for a, slash, b in first]
    before = {p: p.read_bytes() for p in sorted(tmp_path.rglob("*")) if p.is_file()}
    refused(run(*known), *words)
    after = {p: p.read_bytes() for p in sorted(tmp_path.rglob("*")) if p.is_file()}
    assert before == after


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), ["out of memory", "smaller"]),
        (RuntimeError("CUDA out of memory. Tried …"), ["out of memory", "--device"]),
        (
            RuntimeError("I/O error: No space left on device (os error 28)"),
            ["no space"],
        ),
        (PermissionError(13, "Permission denied", "x.bin"), ["x.bin can't be used"]),
        (ModuleNotFoundError("No module named 'a'", name="a"), ["'a': pip install"]),
    ],
)
def test_what_the_system_refuses_is_one_line(run, monkeypatch, error, words):
    def faulty(*_, **__):
        raise error

    monkeypatch.setattr(f"{TRANSLATOR}.from_pretrained", faulty)
    refused(run("translate", "March 3"), *words)


def test_a_file_is_inspected_before_it_is_translated(run, model, tmp_path):
    source = lines(tmp_path / "a.en", *["March 3"] * 600, "☃")
    result = run("translate", "-m", model, "--strict", "--beam-size", "1", "-i", source)
    refused(result, f"{source}, line 601", "☃")
    assert result[1] == ""


# --- how a command starts


def test_a_translation_loads_no_library_that_it_does_not_need(model):
    code = (
        "import sys; from annotated_transformer.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = 'babel matplotlib num2words sacrebleu transformers'.split()\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    program = [sys.executable, "-c", code]
    _, out, err = ended("translate", "-m", model, "March 3", command=program)
    assert out.count("\n") == 1 and err.splitlines()[-1] == "[]", err


def test_the_version(run):
    assert run("--version")[:2] == (0, f"{annotated_transformer.__version__}\n")


def test_examples_fit_a_narrow_terminal():
    """A wrapped example, pasted, would be two commands, and `> file` on the second
    empties the file.
    """
    package = Path(cli.__file__).parent.parent
    paths = [*package.glob("cli/*.py"), *package.glob("after/*.py")]
    texts = (path.read_text() for path in paths)
    found = [line.strip() for text in texts for line in text.splitlines()]
    examples = [line for line in found if re.fullmatch("`[^`]*`", line)]
    assert len(examples) > 15 and all(len(each) <= 80 for each in examples)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("train mul", {"multi30k-en-de-tiny"}),
        ("train own/tr", set()),
        ("evaluate --corpus wm", {"wmt14"}),
        ("translate --dtype b", {"bfloat16"}),
    ],
)
def test_the_shell_completes_names(line, found):
    words = f"annotated-transformer {line}"
    asked = {"_ANNOTATED_TRANSFORMER_COMPLETE": "complete_bash", "COMP_WORDS": words}
    asked["COMP_CWORD"] = str(len(words.split()) - 1)
    program = [str(Path(sys.executable).parent / "annotated-transformer")]
    _, out, err = ended(command=program, env=os.environ | asked)
    assert set(out.split()) == found and "Traceback" not in err


# --- how a command ends


def wait_for_line(process, start):
    """Read standard output up to a line that starts so."""
    while line := process.stdout.readline():
        if line.startswith(start):
            return line
    raise AssertionError(f"no line starts with {start!r}: {process.stderr.read()}")


def test_an_interrupted_training_saves_and_ends_with_130(own, tmp_path):
    train, saved = [*own, "--device", "cpu"], tmp_path / "run" / "checkpoints"
    for name in ("steps=100000", "log_every=1", "save_every=9999"):
        train += ["--set", name]
    with started(*train) as process:
        wait_for_line(process, "step")
        process.send_signal(signal.SIGINT)
        said = wait_for_line(process, "interrupted at step")
        assert process.wait(timeout=60) == 130
        told = process.stderr.read().splitlines()
    assert all(line.startswith("doctor: ") for line in told)  # of sixty pairs
    assert "the same command goes on" in said and str(saved.parent) in said
    step = int(said.split()[3].replace(",", ""))
    assert f"step-{step:08d}" in [path.name for path in saved.iterdir()]


@pytest.mark.parametrize(
    ("code", "out"),
    [
        # A second one ends at once and cleanly.
        ("try: hit()\nexcept KeyboardInterrupt:\n try: hit()\n finally: print(1)", ""),
        # One where no exception can be raised.
        ("weakref.finalize(thing, hit)", ""),
        # One in a module that would swallow it, as PyTorch's import of NumPy does.
        ("try: import swallowed\nexcept BaseException: print(1)", ""),
    ],
)
def test_an_interruption_ends_the_command(tmp_path, code, out):
    (tmp_path / "swallowed.py").write_text("import signal; signal.raise_signal(2)")
    lines(tmp_path / "command.py", code)
    program = (
        "import signal, sys, weakref; from annotated_transformer import cli\n"
        "class Thing: pass\n"
        "thing, hit = Thing(), lambda *_: signal.raise_signal(signal.SIGINT)\n"
        f"cli.app = lambda **_: exec({code!r}, globals())\n"
        "cli.main()"
    )
    path = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    assert ended(command=[sys.executable, "-c", program], env=path) == (130, out, "")


INTERRUPT = """
import signal, sys
class Interrupt:
    def find_spec(name, path=None, target=None):
        if name == {!r}: signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupt)
"""
IMPORTED = ["errors", "model_types", "__main__", "cli", "cli.exit_status"]


@pytest.mark.parametrize(
    "module", [*(f"annotated_transformer.{each}" for each in IMPORTED), "typer"]
)
@pytest.mark.parametrize("command", ["module", "script"])
def test_an_interruption_while_the_package_is_imported(tmp_path, module, command):
    script = Path(sys.executable).with_name("annotated-transformer")
    if command == "script" and not script.exists():
        pytest.skip("the package is not installed as a command")
    (tmp_path / "sitecustomize.py").write_text(INTERRUPT.format(module))
    path = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    start = US if command == "module" else [script]
    assert ended("info", command=start, env=path) == (130, "", "")


@pytest.mark.parametrize(
    ("shell", "status", "words"),
    [
        ("{} corpora >&-", 2, "standard output is closed"),
        ("{} corpora >/dev/full", 2, "no space is left"),
        ("{} corpora 2>&-", 0, ""),
        ("set -o pipefail; yes | {} translate -m MODEL | head -n 1", 141, ""),
    ],
)
def test_streams_that_are_closed_or_full(model, shell, status, words):
    shell = shell.format(" ".join(US)).replace("MODEL", f"{model} --beam-size 1")
    found, _, err = ended(command=["bash", "-c", shell])
    assert found == status and words in err and "Traceback" not in err
    assert status == 2 or "error" not in err


@pytest.mark.slow
def test_training_goes_on_when_nobody_reads(own, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    status, _, err = ended(*own, "--set", "steps=5", stdout=writing)
    os.close(writing)
    assert status == 0 and (tmp_path / "run" / "model").is_dir()
    assert all(line.startswith("doctor: ") for line in err.splitlines())  # of 60 pairs


class Panic(BaseException):
    """No Exception, as what a panic of a library in Rust raises."""


@pytest.mark.parametrize("error", [ValueError, KeyError, RecursionError, Panic])
def test_a_fault_of_the_package_is_one_line_that_says_how_to_report_it(
    run, monkeypatch, error
):
    def faulty(*_, **__):
        raise error("a bug\nin two lines")

    monkeypatch.setattr(f"{TRANSLATOR}.from_pretrained", faulty)
    status, out, err = run("translate", "March 3")
    assert status == 70 and out == "" and err.count("\n") == 1
    assert err.startswith(f"error: unforeseen {error.__name__}: ")
    assert (
        "(test_cli.py, line" in err
        and "--traceback" in err
        and exit_status.ISSUES in err
    )
    status, _, err = run("--traceback", "translate", "March 3")
    assert status == 70 and err.startswith("Traceback") and "in faulty" in err
    assert err.splitlines()[-1].startswith("error: unforeseen")


def test_unknown_characters_pass_with_one_warning(run, model, tmp_path):
    source = lines(tmp_path / "in.en", "March ☃", "March 3", "☃ March 漢")
    with warnings.catch_warnings():
        status, out, err = run("translate", "-m", model, "-i", source)
    said = [line for line in err.splitlines() if "unknown" in line]
    assert status == 0 and len(out.splitlines()) == 3
    assert len(said) == 1 and said[0].startswith("warning: ")
    assert "☃ (2)" in said[0] and "漢 (1)" in said[0]


def test_an_interrupted_run_opens_by_its_name(run, own, tmp_path):
    assert run(*own, "--set", "steps=15")[0] == 0
    folder = tmp_path / "run"
    asked = ["translate", "March 3", "-m"]
    status, wanted, _ = run(*asked, folder / "checkpoints/step-00000015")
    shutil.rmtree(folder / "model")
    assert status == 0 and run(*asked, folder)[:2] == (0, wanted)
    status, _, err = run("info", folder)
    latest = folder / "checkpoints/step-00000015"
    assert (status, err) == (0, f"warning: {folder} isn't finished: opening {latest}\n")
    shutil.rmtree(folder / "checkpoints")
    refused(run(*asked, folder), folder, "no checkpoint yet")


# --- number format and threads


def test_train_takes_the_faster_number_format_and_says_so(run, own, tmp_path):
    words = [str(each).replace("precision=fp32", "precision=auto") for each in own]
    status, out, _ = run(*words, "--set", "steps=5")
    assert status == 0 and "in bfloat16 as in float32 here: training in " in out
    log = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert json.loads(log[0])["event"] == "precision"


def test_threads_are_used_and_a_busy_machine_is_named(run, own, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("psutil.getloadavg", lambda: (3.1, 0.0, 0.0))
    before, steps = torch.get_num_threads(), ["--set", "steps=5"]
    try:
        status, out, _ = run(*own, *steps, "--threads", 2)
        assert status == 0 and torch.get_num_threads() == 2
        assert "3.1 of 4 cores are busy" in out and "such as --threads 1" in out
        status, out, _ = run(*own, *steps, "--threads", 1, "--overwrite")
        assert torch.get_num_threads() == 1 and "busy" not in out
        assert run("translate", "-m", SHIPPED, "March 3", "--threads", 2)[0] == 0
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
