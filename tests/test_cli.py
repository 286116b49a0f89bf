"""The command line as a user meets it: what it prints, and one clear line with status 2
for each kind of bad input.
"""

import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
import torch
from tiny_run import train_arguments

import annotated_transformer
from annotated_transformer import cli, verify
from annotated_transformer.cli import options
from annotated_transformer.data.phrasebook import phrasebook
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.loading import PRETRAINED, SHIPPED, load
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training.checkpoint import save_model
from annotated_transformer.training.recipes import recipes
from annotated_transformer.translation.search import SearchOptions
from annotated_transformer.translation.translator import Translator

ROOT = Path(__file__).resolve().parents[1]
# A model with random weights seldom ends a sentence, which the command line says in a
# warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*reached its limit")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model folder with random weights: enough but for good translations."""
    torch.manual_seed(0)
    tokenizer = train_tokenizer(phrasebook("en", "de", "train", 300), "en", "de", 300)
    size = tokenizer.src_vocab_size
    config = TransformerConfig(
        size, size, N=1, d_model=16, d_ff=32, h=2, d_k=8, d_v=8, max_length=64
    )
    folder = tmp_path_factory.mktemp("models") / "random"
    save_model(folder, Transformer(config), tokenizer)
    return folder


def refused(result, *words):
    """One line on standard error that holds the words, status 2, and no traceback."""
    status, _, err = result
    assert status == 2, result
    assert (
        err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err
    ), err
    for word in words:
        assert str(word) in err, f"{word!r} is missing from {err!r}"


def lines(path, *texts):
    path.write_bytes("".join(f"{text}\n" for text in texts).encode())
    return path


# --- what works


def test_every_command_has_help_with_an_example(run):
    commands = (
        "train translate evaluate score attend average info corpora export import "
        "reproduce"
    )
    for command in commands.split():
        status, out, _ = run(command, "--help")
        assert status == 0 and f"annotated-transformer {command}" in out, command


def test_translate_gives_one_line_for_each_line(run, model, tmp_path):
    source = lines(tmp_path / "in.en", "March 3", "five kilometers", "March 3")
    status, out, _ = run("translate", "--model", model, "--input", source)
    assert status == 0 and len(out.splitlines()) == 3
    assert out.splitlines()[0] == out.splitlines()[2]


def test_translate_reads_gzip_and_a_single_text_alike(run, model, tmp_path):
    path = tmp_path / "in.en.gz"
    path.write_bytes(gzip.compress(b"March 3\n"))
    assert (
        run("translate", "-m", model, "-i", path)[1]
        == run("translate", "-m", model, "March 3")[1]
    )


def test_translate_reads_a_pipe_whole(run, model):
    reading, writing = os.pipe()
    os.write(writing, b"March 3\nfive kilometers\n")
    os.close(writing)
    status, out, _ = run("translate", "-m", model, "-i", f"/dev/fd/{reading}")
    assert status == 0 and len(out.splitlines()) == 2


def test_a_byte_order_mark_is_no_character(run, model, monkeypatch):
    outputs = []
    for mark in (b"", b"\xef\xbb\xbf"):
        monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.BytesIO(mark + b"March 3\n"))
        )
        outputs.append(run("translate", "-m", model)[:2])
    assert outputs[0] == outputs[1] and outputs[0][0] == 0


def test_n_best_lists_candidates_best_first(run, model):
    _, out, _ = run("translate", "-m", model, "--n-best", 3, "March 3")
    scores = [float(line.split("\t")[0]) for line in out.splitlines()]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(("interrupt", "status"), [(False, 0), (True, 130)])
def test_translate_answers_a_line_before_the_next_arrives(model, interrupt, status):
    command = [
        sys.executable,
        "-m",
        "annotated_transformer",
        "translate",
        "-m",
        str(model),
    ]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    # What runs in the background of a shell without a terminal ignores SIGINT, and so
    # do its children.
    heed = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, **pipes, **heed) as process:
        process.stdin.write(b"March 3\n")
        process.stdin.flush()
        assert process.stdout.readline().endswith(b"\n")
        process.send_signal(signal.SIGINT) if interrupt else process.stdin.close()
        assert (
            process.wait(timeout=60) == status
            and b"Traceback" not in process.stderr.read()
        )


def test_score_prints_total_and_mean(run, model):
    status, out, _ = run("score", "-m", model, "March 3", "3. März")
    total, mean, source, target = out.rstrip("\n").split("\t")
    assert (
        status == 0
        and float(total) < float(mean) < 0
        and (source, target) == ("March 3", "3. März")
    )


def test_evaluate_writes_scores_and_translations(run, model, tmp_path):
    record, saved = tmp_path / "scores.json", tmp_path / "out.de"
    arguments = [
        "evaluate",
        "-m",
        model,
        "--corpus",
        "phrasebook",
        "--split",
        "test",
        "--limit",
        5,
        "--beam-size",
        1,
    ]
    status, out, _ = run(*arguments, "--record", record, "--save", saved)
    assert status == 0 and "exactly right" in out and "nrefs:1|case:mixed" in out
    assert (
        json.loads(record.read_text())["sentences"]
        == len(saved.read_text().splitlines())
        == 5
    )


def test_evaluate_scores_an_output_file_alone(run, tmp_path):
    file = lines(
        tmp_path / "a.de",
        "ein kleiner Hund läuft über die Wiese",
        "drei Männer stehen vor dem Haus",
    )
    status, out, _ = run(
        "evaluate", "--hypothesis", file, "--reference", file, "--language", "de"
    )
    assert status == 0 and "100" in out and "exactly right: 100.0%" in out


def test_evaluate_takes_the_first_of_every_source(run, model, tmp_path):
    two, three = (
        lines(tmp_path / name, *["March 3"] * count)
        for name, count in (("a", 2), ("b", 3))
    )
    status, out, _ = run(
        "evaluate",
        "--hypothesis",
        three,
        "--reference",
        two,
        "--language",
        "en",
        "--limit",
        2,
    )
    assert status == 0 and "of 2" in out
    both = ["--source", two, "--reference", two]
    status, out, _ = run(
        "evaluate", "-m", model, *both, "--limit", 1, "--save", "/dev/null"
    )
    assert status == 0 and "of 1" in out and Path("/dev/null").is_char_device()


def test_attend_writes_one_page_with_every_head(run, model, tmp_path):
    page = tmp_path / "page[v2].html"
    status, out, _ = run("attend", "-m", model, "March 3", "--out", page)
    assert str(page) in out.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    data = text.split("panels='")[1].split("'>")[0]
    assert status == 0 and "https://" not in text
    for panel in json.loads(unescape(data)):
        weights = torch.tensor(panel["weights"])
        assert weights.shape == (1, 2, len(panel["queries"]), len(panel["keys"]))
        assert torch.allclose(weights.sum(-1), torch.ones(()), atol=0.01)


def test_average_of_one_model_is_that_model(run, model, tmp_path):
    status, _, _ = run("average", model, model, "--out", tmp_path / "mean")
    same = run("translate", "-m", tmp_path / "mean", "March 3") == run(
        "translate", "-m", model, "March 3"
    )
    assert status == 0 and same


def test_info_counts_the_base_model(run):
    status, out, _ = run("info", "base")
    assert status == 0 and "63,045,632" in out


def test_info_prints_the_card_of_a_shipped_model(run):
    status, out, _ = run("info", "phrasebook-en-de")
    assert status == 0 and "**Licence.**" in out and "98.5 %" in out
    assert "**Licence.**" not in run("info", "base")[1]


def test_without_a_model_the_one_for_everyday_sentences_answers(run):
    record = json.loads((ROOT / "results/runs/tatoeba-en-de/record.json").read_text())
    sentences = [row["source"] for row in record["ordinary"]]
    expected = [row["output"] for row in record["ordinary"]]
    status, out, _ = run("translate", "--alpha", "1.0", *sentences[:1])
    assert (status, out.strip()) == (0, expected[0])
    options = SearchOptions(beam_size=4, alpha=record["chosen"]["alpha"])
    assert load(SHIPPED, device="cpu").translate(sentences, options) == expected
    phrase = "the twenty-first of March"
    assert load(device="cpu").translate(phrase) == "der einundzwanzigste März"


def test_the_card_of_the_everyday_model_has_the_scores_of_its_record(run):
    record = json.loads((ROOT / "results/runs/tatoeba-en-de/record.json").read_text())
    _, out, _ = run("info", SHIPPED)
    for row in [*record["tests"].values(), record["float32"]]:
        score = f"{row['bleu']:g}" if row["bleu"] < 99 else f"{row['exact']:.1%}"
        assert score.replace("%", " %") in out
    folder = PRETRAINED / SHIPPED
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert size < 16e6 and size == pytest.approx(record["bytes"], rel=1e-3)


def test_corpora_lists_them(run):
    status, out, _ = run("corpora")
    assert status == 0 and all(
        f"\n{name}\n" in f"\n{out}" for name in ["phrasebook", "multi30k", "wmt14"]
    )
    assert (
        "test_2017_mscoco 461" in out
        and "source: https://github.com/multi30k/dataset\n" in out
    )
    assert out.count("prepare yourself: train\n") == 1


def test_train_then_go_on(run, tmp_path):
    """Ten updates on own files, then five more by the same command; the log holds each
    step once.
    """
    for split, count in {"train": 60, "valid": 10}.items():
        pairs = phrasebook("en", "de", "train" if split == "train" else "val", count)
        for side, language in enumerate(["en", "de"]):
            lines(tmp_path / f"{split}.{language}", *(pair[side] for pair in pairs))
    small = """N=1 d_model=16 d_ff=32 h=2 d_k=8 d_v=8 vocab_size=200 batch_tokens=256
        log_every=5 save_every=5 precision=fp32"""
    common = train_arguments(tmp_path, tmp_path / "run", small)
    assert run(*common, "--set", "steps=10")[0] == 0
    assert run(*common, "--set", "steps=15")[0] == 0
    log = [
        json.loads(line)
        for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    ]
    assert [record["step"] for record in log if record["event"] == "update"] == [
        5,
        10,
        15,
    ]
    assert run("translate", "-m", tmp_path / "run" / "model", "March 3")[0] == 0
    refused(
        run(*common, "--set", "steps=15", "--set", "seed=2"),
        tmp_path / "run",
        "another run",
    )
    other = [
        tmp_path / "train" if each == tmp_path / "valid" else each for each in common
    ]
    refused(run(*other), tmp_path / "run", "data of another recipe")


# --- what is refused


def test_missing_and_empty_files(run, model, tmp_path):
    refused(run("translate", "-m", model, "-i", tmp_path / "none.en"), "none.en")
    empty = lines(tmp_path / "empty.en")
    refused(run("score", "-m", model, "--files", empty, empty), "empty")


def test_sides_of_different_length(run, model, tmp_path):
    two, one = (
        lines(tmp_path / "a.en", "March 3", "March 4"),
        lines(tmp_path / "a.de", "3. März"),
    )
    refused(run("score", "-m", model, "--files", two, one), "a.en", "a.de")
    refused(run("evaluate", "-m", model, "--source", two, "--reference", one), "a.de")
    refused(
        run("evaluate", "--hypothesis", two, "--reference", one, "--language", "de"),
        "2",
        "1",
    )


def test_bytes_that_are_not_utf8(run, model, tmp_path):
    path = tmp_path / "latin.en"
    path.write_bytes("fine\nmärz\n".encode("latin-1"))
    refused(run("translate", "-m", model, "-i", path), "latin.en", "2", "UTF-8")


def test_an_argument_that_is_not_utf8(run, model):
    refused(run("translate", "-m", model, "M\udce4rz"), "not valid UTF-8")


def test_memory_that_runs_out(run, model, monkeypatch):
    def full(*_, **__):
        raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")

    monkeypatch.setattr(Transformer, "encode", full)
    refused(
        run("score", "-m", model, "March 3", "3. März"), "out of memory", "--device"
    )


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: …")],
)
def test_memory_that_runs_out_on_a_cpu(run, model, monkeypatch, error):
    def full(*_, **__):
        raise error

    monkeypatch.setattr(Transformer, "encode", full)
    refused(run("score", "-m", model, "March 3", "3. März"), "out of memory", "smaller")


@pytest.fixture
def overflowing(model, tmp_path):
    """A copy of the model whose weights are finite, and too large to compute with."""
    translator, folder = Translator.from_pretrained(model), tmp_path / "overflowing"
    with torch.no_grad():
        for parameter in translator.model.parameters():
            parameter.mul_(1e30)
    save_model(folder, translator.model, translator.tokenizer)
    return folder


def test_scores_that_are_no_numbers(run, overflowing, tmp_path):
    for command in (
        ["score", "March 3", "3. März"],
        ["attend", "March 3", "3. März", "-o", tmp_path / "a.html"],
    ):
        refused(run(*command, "-m", overflowing), "not numbers (NaN)")
    assert not (tmp_path / "a.html").exists()


def test_a_file_where_a_sentence_should_be(run, model, tmp_path):
    source = lines(tmp_path / "a.en", "March 3")
    refused(run("score", "-m", model, "March 3", source), source, "--files")
    for words in ([source], ["March 3", source]):
        refused(
            run("attend", "-m", model, *words, "-o", tmp_path / "a.html"),
            source,
            "is a file",
        )


def test_the_model_in_use_is_not_written_over(run, model, tmp_path):
    own = shutil.copytree(model, tmp_path / "own")
    before = {path.name: path.read_bytes() for path in own.iterdir()}
    sides = [
        "--source",
        lines(tmp_path / "a.en", "March 3"),
        "--reference",
        lines(tmp_path / "a.de", "3. März"),
    ]
    refused(
        run("evaluate", "-m", own, *sides, "--save", own / "tokenizer.json"),
        "is read by this command",
    )
    refused(
        run("attend", "-m", own, "March 3", "-o", own / "config.json"),
        "is read by this command",
    )
    assert {path.name: path.read_bytes() for path in own.iterdir()} == before


def test_a_read_only_file_is_refused_before_any_work(run, model, tmp_path):
    sides = [
        "--source",
        lines(tmp_path / "a.en", "March 3"),
        "--reference",
        lines(tmp_path / "a.de", "3. März"),
    ]
    out = lines(tmp_path / "out.de", "old")
    out.chmod(0o444)
    result = run("evaluate", "-m", model, *sides, "--save", out)
    refused(result, out, "read-only")
    assert result[1] == "" and out.read_text() == "old\n"


def test_a_file_is_looked_at_before_it_is_translated(run, model, tmp_path):
    source = lines(tmp_path / "a.en", *["March 3"] * 600, "☃")
    result = run("translate", "-m", model, "--strict", "--beam-size", "1", "-i", source)
    refused(result, f"{source}, line 601", "☃")
    assert result[1] == ""


def test_a_dash_is_standard_input_and_an_argument_may_have_lines(
    run, model, monkeypatch
):
    expected = run("translate", "-m", model, "March 3")[1]
    for arguments in (["-"], ["-i", "-"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"March 3\n")))
        assert run("translate", "-m", model, *arguments)[:2] == (0, expected)
    assert run("translate", "-m", model, "March 3\nMarch 3\n")[1] == 2 * expected
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"March 3\n")))
    )
    refused(run("translate", "-m", model), "packed by gzip")


def test_characters_that_may_pass(run, model, tmp_path):
    refused(run("score", "-m", model, "March ☃", "3. März", "--strict"), "☃")
    assert run("score", "-m", model, "March ☃", "3. März")[0] == 0
    assert (
        run(
            "attend",
            "-m",
            model,
            "March ☃",
            "-o",
            tmp_path / "a.html",
        )[0]
        == 0
    )


def test_spaces_do_not_count_and_blank_references_are_refused(run, tmp_path):
    hypothesis, blank = (
        lines(tmp_path / "h.de", "3. März"),
        lines(tmp_path / "b.de", " "),
    )
    reference = lines(tmp_path / "r.de", "3.  März ")
    common = ["evaluate", "--hypothesis", hypothesis, "--language", "de", "--reference"]
    assert "exactly right: 100.0% of 1" in run(*common, reference)[1]
    refused(run(*common, blank), f"{blank}, line 1 is blank")
    refused(run(*common, reference, "--beam-size", "8"), "leave out")
    refused(run(*common, reference, "--limit", "9" * 30), "--limit")


def test_a_config_that_asks_for_far_more_than_there_is(run, model, tmp_path):
    own = shutil.copytree(model, tmp_path / "own")
    about = json.loads((own / "config.json").read_text())
    about["architecture"]["N"] = 10**9
    (own / "config.json").write_text(json.dumps(about))
    verify(own, accept=True)
    refused(
        run("translate", "-m", own, "March 3"),
        "config.json asks for",
        "don't belong together",
    )


def test_a_folder_that_is_not_there_is_no_preset(run):
    refused(
        run("info", "runs/nowhere/model"),
        "runs/nowhere/model",
        "there is no such model",
    )


def test_the_root_is_no_place_for_a_model(run, model):
    refused(run("average", model, "--out", "/"), "name a folder in it")


def test_a_translation_loads_no_library_that_it_does_not_need(model):
    code = (
        "import sys; from annotated_transformer.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = 'accelerate babel matplotlib num2words sacrebleu sacremoses "
        "transformers'.split()\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "translate", "-m", str(model), "March 3"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.count("\n") == 1 and done.stderr.splitlines()[-1] == "[]", (
        done.stderr
    )


def test_pytorch_is_imported_without_a_collection():
    code = (
        "import gc; from annotated_transformer.cli import opening\n"
        "collections = []; gc.callbacks.append(lambda phase, about: "
        "collections.append(about))\n"
        "opening.import_torch()\n"
        "assert not collections and gc.isenabled() and gc.get_freeze_count() > "
        "100_000\n"
        "frozen = gc.get_freeze_count(); opening.import_torch(); assert "
        "gc.get_freeze_count() == frozen"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_closed_streams(model):
    command = (
        f"{sys.executable} -m annotated_transformer translate -m {model} 'March 3'"
    )
    closed = subprocess.run(
        ["sh", "-c", f"{command} >&-"], capture_output=True, text=True
    )
    assert closed.returncode == 2 and closed.stderr.startswith(
        "error: standard output is closed"
    )
    full = subprocess.run(
        ["sh", "-c", f"{command} >/dev/full"], capture_output=True, text=True
    )
    assert (
        full.returncode == 2
        and "output can't be written: no space" in full.stderr.splitlines()[-1]
    )
    silent = subprocess.run(
        ["sh", "-c", f"{command} 2>&-"], capture_output=True, text=True
    )
    assert silent.returncode == 0 and len(silent.stdout.splitlines()) == 1


def test_one_file_for_two_things(run, model, tmp_path):
    two = lines(tmp_path / "two.en", "March 3", "March 4")
    both = [
        "--source",
        two,
        "--reference",
        two,
        "--save",
        tmp_path / "s",
        "--record",
        tmp_path / "." / "s",
    ]
    refused(run("evaluate", "-m", model, *both), "named twice")
    assert not (tmp_path / "s").exists()


def test_blank_lines_stay_where_they_are(run, model, tmp_path):
    text = lines(tmp_path / "b.en", "March 3", "  ", "March 3")
    status, printed, _ = run("translate", "-m", model, "-i", text)
    first, second, third, rest = printed.split("\n")
    assert status == 0 and first == third != "" and second == rest == ""
    refused(run("score", "-m", model, "", "3. März"), "source line 1 is blank")


def test_source_longer_than_the_model_allows(run, model):
    refused(run("translate", "-m", model, "March 3 " * 100), "64", "split")
    refused(run("score", "-m", model, "March 3", "3. März " * 100), "64")


def test_characters_the_tokenizer_never_saw(run, model):
    refused(run("translate", "-m", model, "--strict", "March 漢"), "漢")
    assert run("translate", "-m", model, "March 漢")[0] == 0


def test_misspelt_names_get_the_nearest(run, model, tmp_path):
    refused(run("train", "phrasebok"), "phrasebook")
    refused(run("info", "bigg"), "'big'")
    refused(
        run("train", "phrasebook", "--set", "warmpu=3", "--out", tmp_path / "x"),
        "warmup",
    )
    refused(run("evaluate", "-m", model, "--corpus", "multi3k"), "multi30k")


def test_options_that_contradict_each_other(run, model, tmp_path):
    refused(
        run("translate", "-m", model, "--n-best", 2, "--split", "March 3"),
        "--n-best",
        "--split",
    )
    refused(run("train", "phrasebook", "--recipe", "iwslt14-de-en"), "--recipe")
    both = [
        "--hypothesis",
        "a",
        "--reference",
        "b",
        "--language",
        "de",
        "--corpus",
        "phrasebook",
    ]
    refused(run("evaluate", *both), "--corpus")
    refused(
        run("evaluate", "-m", model, "--corpus", "phrasebook", "--source", "a"),
        "--corpus",
        "--source",
    )


def test_settings_that_the_tokenizer_decides_are_none(run, tmp_path):
    for setting in ("bos_id=3", "src_vocab_size=9", "shared_vocab=false"):
        refused(
            run("train", "phrasebook", "--set", setting, "--out", tmp_path / "x"),
            "unknown setting",
        )


def test_settings_out_of_range(run, tmp_path):
    refused(
        run("train", "phrasebook", "--set", "steps=-1", "--out", tmp_path / "x"),
        "steps",
    )
    refused(
        run("train", "phrasebook", "--set", "dropout=1.5", "--out", tmp_path / "x"),
        "dropout",
    )
    refused(
        run("train", "phrasebook", "--set", "steps=many", "--out", tmp_path / "x"),
        "steps",
        "whole number",
    )
    assert not (tmp_path / "x").exists()


def test_languages_the_phrasebook_lacks(run, tmp_path):
    refused(
        run("train", "phrasebook", "--set", "tgt=pt", "--out", tmp_path / "x"),
        "pt",
        "de",
    )


def test_beam_and_limits_out_of_range(run, model, tmp_path):
    out = tmp_path / "x"
    refused(run("translate", "-m", model, "--beam-size", 0, "March 3"), "beam_size")
    refused(
        run("translate", "-m", model, "--beam-size", 0, "--n-best", 2, "March 3"),
        "beam_size",
    )
    refused(run("translate", "-m", model, "--alpha", 11, "March 3"), "alpha")
    refused(
        run("translate", "-m", model, "--beam-size", 10**20, "March 3"), "beam_size"
    )
    refused(
        run("evaluate", "-m", model, "--corpus", "phrasebook", "--limit", -5), "--limit"
    )
    refused(run("info", "base", "--length", 0), "--length")
    refused(run("info", "base", "--length", 10**170), "--length")
    refused(
        run(
            "train",
            "phrasebook",
            "--device",
            "cpu",
            "--out",
            out,
            "--set",
            f"vocab_size={10**23}",
        ),
        "vocab_size",
    )
    assert not out.exists()


def test_checkpoints_that_are_missing_foreign_damaged_or_newer(run, model, tmp_path):
    refused(run("translate", "-m", tmp_path / "nowhere", "March 3"), "nowhere")
    for name, spoil in {
        "cut": cut_weights,
        "bit": flip_a_byte,
        "foreign": foreign_config,
        "newer": newer_format,
    }.items():
        copy = tmp_path / name
        copy.mkdir()
        for file in model.iterdir():
            (copy / file.name).write_bytes(file.read_bytes())
        complaint = spoil(copy)
        refused(run("translate", "-m", copy, "March 3"), name, complaint)


def cut_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    return "model.safetensors"


def flip_a_byte(folder):
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    return "model.safetensors"


def foreign_config(folder):
    (folder / "config.json").write_text('{"model_type": "t5"}')
    verify(folder, accept=True)
    return "no model folder of this package"


def newer_format(folder):
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(about | {"format": 99}))
    verify(folder, accept=True)
    return "99"


def test_a_device_that_is_not_there(run, model):
    if not torch.cuda.is_available():
        refused(run("translate", "-m", model, "--device", "cuda", "March 3"), "cuda")
    refused(run("translate", "-m", model, "--device", "abacus", "March 3"), "abacus")


def test_a_place_that_cannot_be_written(run, model, tmp_path):
    file = lines(tmp_path / "file", "x")
    refused(run("attend", "-m", model, "March 3", "--out", file / "page.html"), "file")
    refused(run("attend", "-m", model, "March 3", "--out", tmp_path), "is a folder")
    refused(run("average", model, "--out", file / "mean"), "file")
    refused(run("train", "phrasebook", "--out", file / "run"), "file")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["translate", "five", "kilometers"], ["kilometers", "in quotes"]),
        (["translate", "--bean-size", "2", "x"], ["--bean-size", "translate --help"]),
        (["translate", "--beam-size", "nan", "x"], ["--beam-size", "translate --help"]),
        (["trian", "phrasebook"], ["trian", "train"]),
        (["translate", "- five kilometers"], ["write -- before"]),
        (["translate", "--n-best", "0", "x"], ["n_best is 0"]),
        (["translate", "--n-best", "2", "--split", "x"], ["--split"]),
        (
            [
                "evaluate",
                "--hypothesis",
                "a",
                "--reference",
                "b",
                "--language",
                "klingon",
            ],
            ["klingon", "such as en"],
        ),
        (["average", "a", "b", "--last", "1", "--out", "c"], ["--last"]),
        (["info", ""], ["unknown preset ''"]),
        (
            [
                "evaluate",
                "--corpus",
                "multi30k",
                "--split",
                "val",
                "--root",
                "/nowhere",
            ],
            ["/nowhere is no directory"],
        ),
    ],
)
def test_each_misuse_is_one_line(run, arguments, words):
    refused(run(*arguments), *words)


def test_the_version(run):
    assert run("--version")[:2] == (0, f"{annotated_transformer.__version__}\n")


def test_examples_fit_a_narrow_terminal():
    """A wrapped example, pasted, would be two commands, and `> file` on the second
    empties the file.
    """
    examples = [
        line.strip()
        for path in Path(cli.__file__).parent.glob("*.py")
        for line in path.read_text().splitlines()
        if line.strip().startswith("`")
    ]
    assert len(examples) > 15 and all(len(each) <= 80 for each in examples)


def test_what_is_read_is_not_written_over(run, model, tmp_path):
    source, reference = (
        lines(tmp_path / "s.en", "March 3"),
        lines(tmp_path / "r.de", "3. März"),
    )
    own = ["evaluate", "-m", model, "--source", source, "--reference", reference]
    refused(run(*own, "--save", reference), "read by this command")
    refused(run(*own, "--record", source), "read by this command")
    refused(run(*own, "--save", source / "x"), "no folder")
    refused(run("average", model, "--out", model), "would be replaced")
    refused(run("translate", "-m", model, source), "--input reads its lines")
    refused(run("score", "-m", model, source, reference), "--files reads its lines")
    assert (source.read_text(), reference.read_text()) == ("March 3\n", "3. März\n")


def test_a_read_only_page_stays(run, model, tmp_path):
    page = lines(tmp_path / "page.html", "mine")
    page.chmod(0o444)
    refused(run("attend", "-m", model, "March 3", "--out", page), "read-only")
    assert page.read_text() == "mine\n"


def test_a_long_line_of_a_file_is_named_with_its_file(run, model, tmp_path):
    text = lines(tmp_path / "in.en", "March 3", "March 3 " * 100)
    refused(run("translate", "-m", model, "-i", text), "in.en, line 2 has")


def test_invisible_characters_are_named_by_their_number(run, model):
    refused(run("translate", "-m", model, "--strict", "March\u200b 3"), "U+200B")


def test_a_config_that_only_nests(run, model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "deep")
    (folder / "config.json").write_text("[" * 200_000)
    verify(folder, accept=True)
    refused(run("translate", "-m", folder, "March 3"), "config.json can't be read")


def test_own_files_without_languages(run, tmp_path):
    lines(tmp_path / "train.en", "x")
    refused(run("train", tmp_path / "train"), "--src, --tgt and --valid")


def test_standard_output_that_is_the_file_to_write(model, tmp_path):
    command = [
        sys.executable,
        "-m",
        "annotated_transformer",
        "attend",
        "-m",
        model,
        "March 3",
        "-o",
        "/dev/stdout",
    ]
    with (tmp_path / "page.html").open("w") as page:
        found = subprocess.run(
            list(map(str, command)), stdout=page, stderr=subprocess.PIPE, text=True
        )
    assert (
        found.returncode == 2
        and "standard output" in found.stderr
        and (tmp_path / "page.html").read_text() == ""
    )


def test_an_output_that_cannot_hold_the_letters(tmp_path):
    command = [
        sys.executable,
        "-m",
        "annotated_transformer",
        "translate",
        "March 3",
    ]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 2 and found.stderr.startswith(
        "error: standard output can't hold '\\xe4' (ascii)"
    )


def test_training_goes_on_when_nobody_reads(tmp_path):
    for name in ("train", "valid"):
        for side in ("en", "de"):
            lines(tmp_path / f"{name}.{side}", *["one two three"] * 30)
    tiny = """N=1 d_model=16 d_ff=32 h=2 d_k=8 d_v=8 vocab_size=50 max_tokens=64
        batch_tokens=64 precision=fp32 steps=6 log_every=1"""
    command = train_arguments(tmp_path, tmp_path / "run", tiny)
    reading, writing = os.pipe()
    os.close(reading)
    found = subprocess.run(
        [sys.executable, "-m", "annotated_transformer", *map(str, command)],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (
        found.returncode == 0
        and found.stderr == ""
        and (tmp_path / "run" / "model").is_dir()
    ), found
    assert len((tmp_path / "run" / "log.jsonl").read_text().splitlines()) >= 6


def test_a_data_folder_of_the_users_own_is_left_alone(run, tmp_path):
    (tmp_path / "data" / ".git").mkdir(parents=True)
    for name in ("train", "valid"):
        for side in ("en", "de"):
            lines(tmp_path / "data" / f"{name}.{side}", "one two three")
    refused(run(*train_arguments(tmp_path / "data", tmp_path)), "was not made by a run")
    assert (tmp_path / "data" / ".git").is_dir() and not (
        tmp_path / "data" / "recipe.json"
    ).exists()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("tra", {"train", "translate"}),
        ("train mul", {"multi30k-en-de-tiny"}),
        ("train own/tr", set()),
        ("evaluate --corpus wm", {"wmt14"}),
        ("info bi", {"big"}),
        ("export o", {"onnx"}),
        ("translate --precision b", {"bfloat16"}),
        ("evaluate --engine pl", {"plain"}),
    ],
)
def test_the_shell_completes_names(line, found):
    words = f"annotated-transformer {line}"
    asked = {
        "_ANNOTATED_TRANSFORMER_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    command = [str(Path(sys.executable).parent / "annotated-transformer")]
    done = subprocess.run(
        command, env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert set(done.stdout.split()) == found and "Traceback" not in done.stderr


def test_the_completed_recipes_are_all():
    assert list(options.RECIPES) == list(recipes())


# --- how a command ends


@pytest.fixture
def tiny_training(tmp_path):
    """Arguments of `train` for a model so small that an update takes milliseconds."""
    for name in ("train", "valid"):
        for side in ("en", "de"):
            lines(tmp_path / f"{name}.{side}", *["one two three"] * 30)
    settings = (
        "N=1 d_model=16 d_ff=32 h=2 d_k=8 d_v=8 vocab_size=50 max_tokens=64 "
        "batch_tokens=64 precision=fp32 log_every=1 save_every=100000"
    )
    own = ["--src", "en", "--tgt", "de", "--valid", tmp_path / "valid"]
    where = ["--device", "cpu", "--out", tmp_path / "run"]
    changes = [word for each in settings.split() for word in ("--set", each)]
    return list(map(str, ["train", tmp_path / "train", *own, *where, *changes]))


def started(*arguments, **more):
    """The command line in a process of its own, which heeds SIGINT.

    What runs in the background of a shell without a terminal ignores SIGINT, and so do
    its children.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "annotated_transformer", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **more,
    )


def wait_for_line(process, start):
    """Read standard output up to a line that starts so."""
    while line := process.stdout.readline():
        if line.startswith(start):
            return line
    raise AssertionError(f"no line starts with {start!r}: {process.stderr.read()}")


def test_an_interrupted_training_saves_and_ends_with_130(tiny_training, tmp_path):
    with started(*tiny_training, "--set", "steps=100000") as process:
        wait_for_line(process, "step")
        process.send_signal(signal.SIGINT)
        said = wait_for_line(process, "interrupted at step")
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == ""
    assert "the same command goes on" in said and str(tmp_path / "run") in said
    step = int(said.split()[3].replace(",", ""))
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == [
        f"step-{step:08d}"
    ]
    with started(*tiny_training, "--set", f"steps={step + 5}") as process:
        first = wait_for_line(process, "step")
        assert int(first.split()[1].replace(",", "")) == step + 1
        assert process.wait(timeout=60) == 0


def test_a_second_interruption_ends_at_once_and_cleanly():
    code = (
        "import time; from annotated_transformer import cli\n"
        "cli.end_at_second_interrupt()\n"
        "try:\n    print('ready', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    try:\n        print('first', flush=True); time.sleep(60)\n"
        "    finally:\n        print('second', flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        for word in ("ready", "first"):
            assert process.stdout.readline() == f"{word}\n"
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
        assert process.stdout.read() + process.stderr.read() == ""


def test_an_interruption_that_no_exception_can_carry_ends_at_once():
    code = (
        "import signal, sys, weakref; from annotated_transformer import cli\n"
        "class Thing: pass\n"
        "thing = Thing()\n"
        "def interrupt(*_): signal.raise_signal(signal.SIGINT)\n"
        "def command(**_): weakref.finalize(thing, interrupt)\n"
        "cli.app = command\n"
        "cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interruption_while_the_command_line_is_imported(tmp_path):
    module = "import signal; signal.raise_signal(signal.SIGINT)"
    (tmp_path / "typer.py").write_text(module)
    done = subprocess.run(
        [sys.executable, "-m", "annotated_transformer", "info"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_nobody_reads_any_more(model, tmp_path):
    source = lines(tmp_path / "in.en", *["March 3"] * 2000)
    command = (
        f"set -o pipefail; {sys.executable} -m annotated_transformer translate "
        f"-m {model} --beam-size 1 --max-length 3 -i {source} | head -n 1"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 141 and "Traceback" not in done.stderr
    assert "error" not in done.stderr


class Panic(BaseException):
    """No Exception, as what a panic of a library in Rust raises."""


FAULTS = [ValueError, TypeError, RuntimeError, KeyError, RecursionError, Panic]


@pytest.mark.parametrize("error", FAULTS)
def test_a_fault_of_the_package_is_one_line_that_says_how_to_report_it(
    run, monkeypatch, error
):
    def faulty(*_, **__):
        raise error("a bug\nin two lines")

    monkeypatch.setattr("annotated_transformer.loading.load", faulty)
    status, out, err = run("translate", "March 3")
    assert status == 70 and out == "" and err.count("\n") == 1
    assert err.startswith(f"error: unforeseen {error.__name__}: ")
    assert "a bug" in err and "(test_cli.py, line" in err
    assert "--traceback" in err and cli.ISSUES in err
    status, _, err = run("--traceback", "translate", "March 3")
    assert status == 70 and err.startswith("Traceback") and "in faulty" in err
    assert err.splitlines()[-1].startswith("error: unforeseen")


def test_the_traceback_of_a_users_mistake(run):
    status, _, err = run("--traceback", "translate", "-m", "nowhere", "March 3")
    assert status == 2 and "Traceback" in err and "find_model" in err
    assert err.splitlines()[-1].startswith("error: nowhere: there is no such model")


def test_a_panic_of_the_tokenizers_is_one_line(run, monkeypatch):
    from tokenizers import Tokenizer
    from tokenizers.models import BPE

    tokenizer = Tokenizer(BPE({"a": 0}, []))
    tokenizer.enable_truncation(2, stride=2)
    monkeypatch.setattr(
        "annotated_transformer.loading.load", lambda *_, **__: tokenizer.encode("aaa")
    )
    status, _, err = run("translate", "March 3")
    assert status == 70 and err.count("\n") == 1
    assert err.startswith("error: unforeseen PanicException: `stride` must be ")


def test_what_the_system_refuses_is_one_line(run, monkeypatch):
    errors = {
        "no space is left": OSError(28, "No space left on device"),
        "x.bin can't be used: Permission denied": PermissionError(
            13, "Permission denied", "x.bin"
        ),
        "spaceship is not installed": ModuleNotFoundError(
            "No module named 'spaceship'", name="spaceship"
        ),
    }
    for words, error in errors.items():

        def faulty(*_, error=error, **__):
            raise error

        monkeypatch.setattr("annotated_transformer.loading.load", faulty)
        refused(run("translate", "March 3"), words)


def test_help_names_the_shipped_model_by_its_name(run):
    for command in ("translate", "evaluate", "score", "attend", "export", "info"):
        _, out, _ = run(command, "--help")
        assert SHIPPED in out and "/pretrained" not in out, command


def test_samples_and_lengths(run, model):
    drawn = ["translate", "-m", model, "March 3", "--temperature", 1, "--seed", 7]
    first, second = run(*drawn, "--n-best", 3), run(*drawn, "--n-best", 3)
    assert first[0] == 0 and first == second and len(first[1].splitlines()) == 3
    refused(run("translate", "March 3", "--top-k", 2), "give a temperature")
    short = run("translate", "-m", model, "March 3", "--max-length", 2)[1]
    assert len(short) < len(run("translate", "-m", model, "March 3")[1])
    refused(run("translate", "March 3", "--max-length", 0), "max_length is 0")


def test_unknown_characters_pass_with_one_warning(model, tmp_path):
    source = lines(tmp_path / "in.en", "March ☃", "March 3", "☃ March 漢")
    with started("translate", "-m", str(model), "-i", str(source)) as process:
        out, err = process.communicate(timeout=60)
    said = [line for line in err.splitlines() if "limit" not in line]
    assert process.returncode == 0 and len(out.splitlines()) == 3
    assert len(said) == 1 and said[0].startswith("warning: ")
    assert "☃ (2)" in said[0] and "漢 (1)" in said[0]


@pytest.mark.parametrize("engine", ["torch", "plain"])
def test_the_engines_agree(run, model, engine):
    asked = ["translate", "-m", model, "March 3", "--device", "cpu"]
    assert run(*asked, "--engine", engine) == run(*asked)
    refused(run(*asked, "--engine", "plane"), "did you mean 'plain'")
    refused(run(*asked, "--engine", engine, "--precision", "float17"), "float17")
