"""A run that learns from a teacher's translations: what it reads, and what it says."""

import json

import pytest
from tiny_run import losses, refused, train_arguments

from annotated_transformer import load
from annotated_transformer.after.distillation import DistilledPairs
from annotated_transformer.data.tokenized_pairs import TokenizedPairs

pytestmark = pytest.mark.filterwarnings("ignore:.*reached its limit")
TEACHER = "phrasebook-en-de"
FEW = "batch_tokens=256 log_every=1 save_every=2 keep=1"
MONTHS = [
    *(("March", "August"), ("the first of May", "?"), ("March", "April"), ("June", ""))
]
SPLITS = "train", "valid"
WRITTEN = {"March": "März", "the first of May": "der erste Mai", "June": "Juni"}


@pytest.fixture
def own(tmp_path):
    """Pairs whose German is wrong."""
    for split in ("train", "valid"):
        for side, language in enumerate(("en", "de")):
            lines = [pair[side] or "?" for pair in MONTHS] * 20
            text = "\n".join(lines) + "\n"
            (tmp_path / f"{split}.{language}").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_student_reads_what_the_teacher_writes(run, own):
    arguments = train_arguments(own, own / "run", f"{FEW} steps=2")
    assert run(*arguments, "--teacher", TEACHER)[0] == 0
    tokenizer = load(own / "run").tokenizer
    train, valid = (TokenizedPairs.open(own / "run" / "data" / each) for each in SPLITS)
    assert dict(texts(tokenizer, train)) == WRITTEN
    assert dict(texts(tokenizer, valid))["March"] != "März"  # it stays as it is
    about = json.loads((own / "run" / "run.json").read_text())["data"]
    assert about["teacher"]["model"] == TEACHER
    assert len(about["teacher"]["weights_sha256"]) == 64
    assert {"train.en", "train.de"} <= about["files"]["train"].keys()


def texts(tokenizer, pairs):
    """The pairs as text."""
    for source, target in (pairs[i] for i in range(len(pairs))):
        yield tuple(tokenizer.decode([row.tolist()])[0] for row in (source, target))


def test_it_resumes_with_its_teacher_and_not_without(run, own):
    def train(steps, *more):
        made = train_arguments(own, own / "run", f"{FEW} steps={steps}")
        return run(*made, *more)

    assert train(2, "--teacher", TEACHER)[0] == 0
    assert train(4, "--teacher", TEACHER)[0] == 0
    assert [row[1] for row in losses(own / "run") if row[0] == "update"] == [1, 2, 3, 4]
    refused(train(6), own / "run", "holds other data", "teacher")


def test_a_dry_run_asks_the_teacher_too(run, own):
    arguments = train_arguments(own, own / "run", FEW)
    status, out, _ = run(*arguments, "--teacher", TEACHER, "--dry-run")
    assert status == 0 and "perplexity" in out and not (own / "run").exists()


def test_a_teacher_of_another_direction_is_refused(run, own):
    arguments = train_arguments(own, own / "run", FEW)
    turned = [{"en": "de", "de": "en"}.get(each, each) for each in arguments]
    refused(run(*turned, "--teacher", TEACHER), TEACHER, "en to de", "de to en")
    refused(run(*arguments, "--teacher", "phrasebook-de"), "no such model")
    assert not (own / "run").exists()


def test_the_teachers_pairs_are_read_again_as_they_were():
    teacher = load(TEACHER, device="cpu", engine="plain")
    pairs = DistilledPairs(MONTHS, TEACHER, teacher)
    assert dict(pairs) == WRITTEN and list(pairs) == list(pairs)


def test_of_several_choices_the_nearest_to_peoples_is_taken(run, own):
    source, third = "the first of May", "der ererste Mai"
    german = own / "train.de"
    german.write_text(german.read_text("utf-8").replace("?", third), "utf-8")
    arguments = train_arguments(own, own / "run", f"{FEW} steps=2")
    chosen = "--teacher", TEACHER, "--teacher-choices", "4"
    assert run(*arguments, *chosen)[0] == 0
    tokenizer = load(own / "run").tokenizer
    train = TokenizedPairs.open(own / "run" / "data" / "train")
    assert dict(texts(tokenizer, train)) == WRITTEN | {source: third}
    about = json.loads((own / "run" / "run.json").read_text())["data"]
    assert about["teacher"]["choices"] == 4
    refused(run(*arguments, *chosen[:3], "0"), "--teacher-choices")
