"""The command line: train, translate, evaluate, score, look inside and export.

Heavy imports wait inside the commands.
"""

import errno
import gc
import json
import os
import shutil
import stat
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from annotated_transformer.errors import UserError, nearest

if TYPE_CHECKING:
    from annotated_transformer.training.recipes import Recipe
    from annotated_transformer.engine.runs import Run
    from annotated_transformer.translation.translator import Translator

SHIPPED = Path(__file__).parents[1] / "pretrained" / "phrasebook-en-de"

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown"
)
console = Console(
    highlight=False, markup=False, emoji=False
)  # what is printed is text, also "[unk]"

# What the shell completes at once; the room that makes the recipes has to import torch
# first.
RECIPES = (
    "phrasebook",
    "multi30k-en-de-tiny",
    "iwslt14-de-en",
    "wmt14-en-de-base",
    "wmt14-en-de-big",
    "wmt14-en-fr-big",
)


def corpus_names() -> list[str]:
    """For the shell to complete."""
    from annotated_transformer.data.corpus import corpora

    return list(corpora())


def preset_names() -> list[str]:
    """For the shell to complete."""
    from annotated_transformer.model.config import table_3

    return list(table_3())


Model = Annotated[
    Path,
    typer.Option(
        "--model",
        "-m",
        help="A model folder; the shipped English-German phrasebook if none is named.",
    ),
]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, …")]
Precision = Annotated[
    str,
    typer.Option(
        help="Of the matrix products: float32, bfloat16, or on a CPU int8.",
        autocompletion=lambda: ("float32", "bfloat16", "int8"),
    ),
]
Beam = Annotated[int, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")]
Unknown = Annotated[
    str,
    typer.Option(
        help="Characters the model never saw: 'error' refuses them, 'keep' lets them "
        "pass as unknown.",
        autocompletion=lambda: ("error", "keep"),
    ),
]
Alpha = Annotated[
    float,
    typer.Option(help="Strength of the length penalty, α in ((5 + length) / 6)^α."),
]
Root = Annotated[
    Path | None,
    typer.Option(
        help="Where corpora are kept; else $ANNOTATED_TRANSFORMER_DATA, else a cache."
    ),
]


def show_version(wanted: bool) -> bool:
    """Print the package's version and end, if that is what was asked for."""
    if wanted:
        from annotated_transformer import __version__

        print(__version__)
        raise typer.Exit
    return wanted


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """The Transformer of "Attention Is All You Need": train it, translate with it,
    measure it, look inside.
    """


@app.command()
def train(
    source: Annotated[
        str,
        typer.Argument(
            help="A recipe, or the common prefix of your own files: own/train for "
            "own/train.en and own/train.de.",
            autocompletion=lambda: RECIPES,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; runs/NAME if none is named.")
    ] = None,
    src: Annotated[
        str | None, typer.Option(help="Source language, as in the file's name.")
    ] = None,
    tgt: Annotated[
        str | None, typer.Option(help="Target language, as in the file's name.")
    ] = None,
    valid: Annotated[
        str | None, typer.Option(help="Prefix of your own validation files.")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="The recipe whose settings your own files are trained with, text as "
            "it is: multi30k-en-de-tiny if none is "
            "named.",
            autocompletion=lambda: RECIPES,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE for any setting of the recipe, its architecture or its "
            "training; may be repeated, the last counts.",
        ),
    ] = None,
    root: Root = None,
    cpu: Annotated[
        bool, typer.Option("--cpu", help="Use the CPU even where there is a GPU.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Three updates on the beginning of the corpus, then all that comes "
            "after them.",
        ),
    ] = False,
) -> None:
    """Train a model. Started again, the same command goes on from the last checkpoint.

    **Examples**

    `annotated-transformer train phrasebook`

    `annotated-transformer train multi30k-en-de-tiny --set steps=2000`

    `annotated-transformer train own/train --src en --tgt de --valid own/valid`

    `annotated-transformer train wmt14-en-de-base --dry-run`

    `torchrun --nproc-per-node 8 -m annotated_transformer.cli`
    `train wmt14-en-de-big --set sharded=true`
    """
    from annotated_transformer.engine.scale import one_voice

    with one_voice():
        plan = change(training_plan(source, [src, tgt, valid], recipe), settings or [])
        folder = out or Path("runs") / Path(source).name
        pairs = training_pairs(plan, valid, root)
        new = not folder.exists()
        make_folder(folder)
        if dry_run:
            try:
                found = rehearse(plan, folder / ".dry-run", *pairs, cpu=cpu)
            finally:
                if new:
                    with suppress(
                        OSError
                    ):  # another process may still be at work in it, or have removed it
                        folder.rmdir()
            for name, value in found.items():
                console.print(
                    f"{name}: {value:,}"
                    if isinstance(value, int)
                    else f"{name}: {value}",
                    soft_wrap=True,
                )
        else:
            train_and_tell(plan, folder, *pairs, cpu=cpu)


def make_folder(folder: Path) -> None:
    """Make the run's folder before the work begins.

    Raises: UserError when that can't be done.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{folder} can't be made ({error.strerror}): choose another --out"
        ) from None


def tell(text: str) -> None:
    """Print a line; when nobody reads any more, as after `| head`, go on in silence,
    since the log has it all.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def train_and_tell(
    plan: "Recipe",
    folder: Path,
    train_pairs: Iterable[tuple[str, str]],
    valid_pairs: Iterable[tuple[str, str]],
    cpu: bool,
) -> None:
    """Train a recipe to its end, with a progress bar on a terminal and lines elsewhere."""
    from annotated_transformer.cli.progress import Bar, line
    from annotated_transformer.training.recipes import prepare
    from annotated_transformer.training.trainer import fit

    run = prepare(plan, folder, train_pairs, valid_pairs, cpu=cpu)
    if console.is_terminal and run.accelerator.is_main_process:
        with Bar(run.config.steps, console) as bar:
            run.report = bar
            outcome = fit(run)
    else:
        run.report = lambda record: tell(line(record))
        outcome = fit(run)
    if run.accelerator.is_main_process:
        where = folder if outcome == "interrupted" else folder / "model"
        tell(
            f"{outcome} at step {run.progress.step:,} after "
            f"{run.progress.seconds:,.0f} s: {where}"
        )


def rehearse(
    plan: "Recipe",
    folder: Path,
    train_pairs: Iterable[tuple[str, str]],
    valid_pairs: Iterable[tuple[str, str]],
    cpu: bool,
    pairs: int = 50_000,
) -> dict[str, int | float | str]:
    """A recipe in small, up to the translation of one sentence; what was found, in the
    first process. Leaves no file.

    The model and the batches are the recipe's; the vocabulary is made from the first
    `pairs` of the corpus.
    """
    from annotated_transformer.training.recipes import Beginning, dry, prepare
    from annotated_transformer.training.trainer import fit

    first = os.environ.get("RANK", "0") == "0"
    if first:
        shutil.rmtree(folder, ignore_errors=True)
    records: list[dict] = []
    some = Beginning(valid_pairs, 20)
    try:
        run = prepare(
            dry(plan),
            folder,
            Beginning(train_pairs, pairs),
            some,
            records.append,
            cpu=cpu,
        )
        outcome = fit(run)
        if not run.accelerator.is_main_process:
            return {}
        sentence = next(iter(some))[0]
        with warnings.catch_warnings(
            action="ignore"
        ):  # after three updates no sentence ends by itself
            translation = open_translator(folder / "model", "cpu").translate(
                [sentence], split=True, unknown="keep"
            )[0]
        return (
            {"outcome": outcome}
            | findings(plan, run, records)
            | {"sentence": sentence, "translation": translation}
        )
    finally:
        if first:
            shutil.rmtree(folder, ignore_errors=True)


def peak_memory() -> int:
    """The most bytes of memory this process has had; 0 where the system doesn't tell."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def findings(
    plan: "Recipe", run: "Run", records: list[dict]
) -> dict[str, int | float | str]:
    """What a dry run tells of the whole one: sizes in bytes of memory and disk, and the
    losses.
    """
    import torch

    from annotated_transformer.training.checkpoint import checkpoints

    device = run.accelerator.device
    resident = peak_memory()
    disk = sum(path.stat().st_size for path in checkpoints(run.folder)[-1].iterdir())
    return {
        "device": f"{run.accelerator.num_processes} × {device.type}",
        "vocabulary": f"{run.tokenizer.tgt_vocab_size:,} of {plan.vocab_size:,}",
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "peak memory, bytes": torch.cuda.max_memory_allocated(device)
        if device.type == "cuda"
        else resident,
        "a checkpoint, bytes": disk,
        "all that the run keeps, bytes": disk * plan.training.keep,
        "losses": " ".join(
            f"{record['loss']:.3f}" for record in records if record["event"] == "update"
        ),
        "perplexity": " ".join(
            f"{record['perplexity']:.0f}"
            for record in records
            if record["event"] == "validation"
        ),
    }


def training_plan(
    source: str, own: list[str | None], settings_from: str | None
) -> "Recipe":
    """The named recipe, or with own files' source language, target language and
    validation prefix, one applied to them.
    """
    from annotated_transformer.training.recipes import recipe, recipes

    if own == [None, None, None]:
        if settings_from is not None:
            raise UserError(
                "--recipe goes with files of your own; a recipe has its own settings, "
                "and --set changes them"
            )
        if source not in recipes() and any(
            Path(source).parent.glob(f"{Path(source).name}.*")
        ):
            raise UserError(
                f"{source} is no recipe: for files of your own, give --src, --tgt and "
                "--valid too"
            )
        return recipe(source)
    src, tgt, valid = own
    if src is None or tgt is None or valid is None:
        raise UserError(
            "your own files need all of --src, --tgt and --valid; a recipe needs none "
            "of them"
        )
    plan = recipe(settings_from or "multi30k-en-de-tiny")
    return replace(
        plan,
        corpus=source,
        src=src,
        tgt=tgt,
        valid_split=valid,
        moses=False,
        lowercase=False,
    )


def training_pairs(
    plan: "Recipe", valid: str | None, root: Path | None
) -> tuple[Iterable[tuple[str, str]], Iterable[tuple[str, str]]]:
    """The training and the validation pairs: a corpus's splits or, with a validation
    prefix, own files.
    """
    from annotated_transformer.data.corpus import load_corpus, parallel_prefix

    if valid is None:
        splits = (plan.train_split, plan.valid_split)
        train_pairs, valid_pairs = (
            load_corpus(plan.corpus, split, plan.src, plan.tgt, root)
            for split in splits
        )
        return train_pairs, valid_pairs
    return parallel_prefix(plan.corpus, plan.src, plan.tgt), parallel_prefix(
        valid, plan.src, plan.tgt
    )


def change(plan: "Recipe", settings: list[str]) -> "Recipe":
    """The recipe with NAME=VALUE settings applied.

    Raises: UserError for an unknown name, naming the nearest.
    """

    parts: dict[str, Any] = {
        "architecture": plan.architecture,
        "training": plan.training,
        "recipe": plan,
    }
    owners = {
        field.name: part
        for part, values in reversed(parts.items())
        for field in fields(values)
    }
    for name in (
        "pad_id",
        "bos_id",
        "eos_id",
        "src_vocab_size",
        "tgt_vocab_size",
        "shared_vocab",
    ):
        del owners[name]  # the tokenizer decides these
    changes: dict[str, dict] = {part: {} for part in parts}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if name not in owners or name in parts:
            raise UserError(
                f"unknown setting {name!r}: "
                f"{nearest(name, sorted(owners.keys() - parts.keys()))}"
            )
        if not equals:
            raise UserError(f"--set {setting}: write NAME=VALUE")
        changes[owners[name]][name] = parse(
            text, getattr(parts[owners[name]], name), name
        )
    architecture = replace(plan.architecture, **changes["architecture"])
    return replace(
        plan,
        architecture=architecture,
        training=replace(plan.training, **changes["training"]),
        **changes["recipe"],
    )


def parse(text: str, like: Any, name: str) -> Any:
    """A setting's text as a value of the type it had.

    Raises: UserError naming the setting and the type.
    """
    if isinstance(like, bool):
        if text.lower() not in ("true", "false"):
            raise UserError(f"{name} is {text!r}: write true or false")
        return text.lower() == "true"
    kind = type(like)
    try:
        return kind(text)
    except ValueError:
        raise UserError(
            f"{name} is {text!r}: write "
            f"{'a whole number' if kind is int else 'a number'}"
        ) from None


@app.command()
def translate(
    text: Annotated[
        str | None,
        typer.Argument(
            help="What to translate; without it, lines are read from --input or "
            "standard input."
        ),
    ] = None,
    model: Model = SHIPPED,
    input: Annotated[
        Path | None,
        typer.Option(
            "--input", "-i", help="A text file, plain or .gz, one sentence a line."
        ),
    ] = None,
    beam_size: Beam = 4,
    alpha: Alpha = 0.6,
    n_best: Annotated[
        int,
        typer.Option(
            help="Translations of each sentence, best first, each with its score; the "
            "beam is as wide at least."
        ),
    ] = 1,
    split: Annotated[
        bool,
        typer.Option(
            "--split",
            help="Cut input that is too long at the ends of sentences instead of "
            "refusing it.",
        ),
    ] = False,
    unknown: Unknown = "error",
    device: Device = "cpu",
    precision: Precision = "float32",
) -> None:
    """Translate text, a file, or standard input, line by line.

    **Examples**

    `annotated-transformer translate "the twenty-first of March"`

    `annotated-transformer translate -i test.en -m averaged > out.de`

    `echo "27.4 kilometers" | annotated-transformer translate --n-best 3`
    """
    import_torch()
    from annotated_transformer.translation.search import check_beam
    from annotated_transformer.translation.translator import check_all

    text, input = (
        None if text == "-" else text,
        None if input == Path("-") else input,
    )  # "-" is standard input
    if text is not None and input is not None:
        raise UserError("give a text or --input, not both")
    refuse_file(text, "--input")
    if n_best != 1 and split:
        raise UserError(
            "--n-best lists translations of whole sentences: leave out --split"
        )
    width = max(beam_size, n_best) if beam_size > 0 else beam_size
    check_beam(width, n_best, alpha)
    translator = open_translator(model, device, precision)
    lines = (
        text.removesuffix("\n").split("\n") if text is not None else input_lines(input)
    )
    with naming(input):
        if (
            input is not None and input.is_file()
        ):  # all of it can be looked at before any of it is translated
            check_all(translator, input_lines(input), split, unknown)
        if n_best == 1:
            at_once = 1 if input is None else 512
            for translation in translator.translate_stream(
                lines, beam_size, alpha, split, unknown, at_once
            ):
                print(translation, flush=True)
            return
        for number, line in enumerate(lines, start=1):
            for candidate in translator.n_best(
                [line], n_best, width, alpha, unknown, first_line=number
            )[0]:
                print(f"{candidate.score:.4f}\t{candidate.text}", flush=True)


def refuse_file(text: str | None, option: str) -> None:
    """Raises: UserError when the name of a file stands where a sentence should."""
    if text is not None and os.path.isfile(text):
        raise UserError(f"{text} is a file: {option} reads its lines")


@contextmanager
def naming(path: Path | None) -> Iterator[None]:
    """An error that names a line names its file too."""
    try:
        yield
    except ValueError as error:
        if path is None or not str(error).startswith("line "):
            raise
        raise UserError(f"{path}, {error}") from None


def import_torch() -> None:
    """Import PyTorch without a garbage collection, and have later ones pass over what
    that made.

    It stays until the program ends; looking it through time and again would only slow a
    short command down.
    """
    if "torch" in sys.modules:
        return
    gc.disable()
    try:
        import torch  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()


def open_translator(
    model: Path, device: str, precision: str = "float32"
) -> "Translator":
    """The model of a folder, trained here or imported, ready to translate."""
    import_torch()
    from annotated_transformer.after import pretrained

    return pretrained.open_translator(model, device, precision)


def input_lines(path: Path | None) -> Iterator[str]:
    """The lines of a file or of standard input, as they come.

    Raises: UserError for bytes that are not UTF-8.
    """
    if path is not None:
        from annotated_transformer.data.corpus import read_lines

        yield from read_lines(path)
        return
    if sys.stdin is None:
        raise UserError("standard input is closed: give a text or --input")
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if number == 1 and line.startswith(b"\x1f\x8b"):
            raise UserError(
                "standard input is packed by gzip: unpack it first, or name the file "
                "with --input"
            )
        try:
            text = line.decode("utf-8").rstrip("\r\n")
            yield text.removeprefix("\ufeff") if number == 1 else text
        except UnicodeDecodeError:
            raise UserError(
                f"standard input, line {number}: not UTF-8; convert it, for example "
                "with iconv"
            ) from None


@app.command()
def evaluate(
    model: Model = SHIPPED,
    corpus: Annotated[
        str | None,
        typer.Option(
            help="A named corpus to translate; `corpora` lists them.",
            autocompletion=corpus_names,
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="The corpus's split.")] = "test",
    source: Annotated[
        Path | None, typer.Option(help="Your own source file, instead of a corpus.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Its reference translations.")
    ] = None,
    hypothesis: Annotated[
        Path | None,
        typer.Option(
            help="Score this output file against --reference; no model is used."
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            help="The language of the output, such as de; the model's if none is named."
        ),
    ] = None,
    beam_size: Beam = 4,
    alpha: Alpha = 0.6,
    limit: Annotated[
        int | None, typer.Option(help="Only the first so many pairs.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the translations to this file.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Write the scores to this JSON file.")
    ] = None,
    root: Root = None,
    device: Device = "cpu",
    precision: Precision = "float32",
) -> None:
    """Translate a test set and score it: BLEU by each convention, chrF, and the share
    that is exactly right.

    **Examples**

    `annotated-transformer evaluate --corpus phrasebook --split test`

    `annotated-transformer evaluate --corpus multi30k --split val -m averaged`

    `annotated-transformer evaluate --hypothesis out.de --reference test.de`
    `--language de`
    """
    from annotated_transformer.files import write_whole
    from annotated_transformer.translation.bleu import format_scores, scores

    if limit is not None and not 1 <= limit <= sys.maxsize:
        raise UserError(
            f"--limit is {limit}: evaluate at least one pair, and no more than a "
            "machine can count"
        )
    refuse_places(save, record, reads=[source, reference, hypothesis, *files_of(model)])
    check_language(language)
    if hypothesis is not None:
        if (
            reference is None
            or language is None
            or corpus is not None
            or source is not None
        ):
            raise UserError(
                "--hypothesis needs --reference and --language, and no --corpus or "
                "--source"
            )
        if (model, beam_size, alpha, split, device, precision, root) != (
            SHIPPED,
            4,
            0.6,
            "test",
            "cpu",
            "float32",
            None,
        ):
            raise UserError(
                "--hypothesis is scored as it is: leave out what says how to translate"
            )
        outputs, references = (
            [" ".join(line.split()) for line in islice(input_lines(path), limit)]
            for path in (hypothesis, reference)
        )
        if "" in references:
            raise UserError(
                f"{reference}, line {references.index('') + 1} is blank: remove it "
                "from both files"
            )
    else:
        translator = open_translator(model, device, precision)
        language = language or translator.tokenizer.tgt_lang
        pairs = list(
            islice(
                test_pairs(translator, corpus, split, source, reference, root), limit
            )
        )
        outputs = translator.translate(
            [pair[0] for pair in pairs], beam_size, alpha, split=True, unknown="keep"
        )
        references = [pair[1] for pair in pairs]
        if translator.tokenizer.lowercase:
            console.print(
                "The model writes lower case: compare the lower-cased scores."
            )
    results = scores(outputs, references, language)
    exact = sum(a == b for a, b in zip(outputs, references, strict=True)) / len(
        references
    )
    print(format_scores(results))
    print(f"exactly right: {exact:.1%} of {len(outputs):,}", flush=True)
    if save is not None:
        write_whole(save, "".join(f"{line}\n" for line in outputs).encode())
    if record is not None:
        found = {
            "sentences": len(outputs),
            "exact": exact,
            "scores": [asdict(result) for result in results],
        }
        write_whole(record, (json.dumps(found, indent=2) + "\n").encode())


def test_pairs(
    translator: "Translator",
    corpus: str | None,
    split: str,
    source: Path | None,
    reference: Path | None,
    root: Path | None,
) -> Iterable[tuple[str, str]]:
    """The pairs to evaluate on: a named corpus's split, or two files."""
    from annotated_transformer.data.corpus import load_corpus, parallel_files

    if corpus is not None and source is None and reference is None:
        return load_corpus(
            corpus,
            split,
            translator.tokenizer.src_lang,
            translator.tokenizer.tgt_lang,
            root,
        )
    if source is None or reference is None or corpus is not None:
        raise UserError("name a --corpus, or both --source and --reference")
    return parallel_files(source, reference)


def check_language(language: str | None) -> None:
    """Raises: UserError for a code that is no language's, by the list of CLDR."""
    from babel.localedata import locale_identifiers

    if language is not None and language not in locale_identifiers():
        raise UserError(f"unknown language {language!r}: write a code such as en or de")


def files_of(folder: Path) -> list[Path]:
    """The files of a model folder, which a command that uses the model must not write
    to.
    """
    return list(folder.iterdir()) if folder.is_dir() else []


def refuse_places(*paths: Path | None, reads: Sequence[Path | None] = ()) -> None:
    """Raises: UserError, before any work is done, for a file that can't be written or
    should not be.

    That is a folder, a file in no folder that may be written, a read-only file, one of
    the files that are read, one that is named twice, and standard output, where the
    summary goes, if that is a file or a pipe.
    """
    named = [path for path in paths if path is not None]
    for path in named:
        if path.is_dir():
            raise UserError(f"{path} is a folder: name a file")
        above = next(folder for folder in path.absolute().parents if folder.exists())
        if not above.is_dir() or not os.access(above, os.W_OK):
            raise UserError(
                f"{path} can't be written: {above} is no folder that may be written; "
                "name another file"
            )
        if path.is_file() and not path.stat().st_mode & 0o222:
            raise UserError(
                f"{path} can't be written: it is read-only; name another file"
            )
        if path.exists() and any(
            each is not None and each.exists() and path.samefile(each) for each in reads
        ):
            raise UserError(
                f"{path} is read by this command: name another file to write"
            )
        if path.exists() and same_as_output(path):
            raise UserError(
                f"{path} is standard output, where the summary goes: name a file"
            )
    files = [
        os.path.realpath(path) for path in named if path.is_file() or not path.exists()
    ]
    if len(set(files)) < len(files):
        raise UserError(f"{named[-1]} is named twice: name a file for each")


def same_as_output(path: Path) -> bool:
    """Whether a path is the file or the pipe that standard output was sent to."""
    try:
        output = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):  # no real file, as in tests
        return False
    kept = stat.S_ISREG(output.st_mode) or stat.S_ISFIFO(output.st_mode)
    return kept and os.path.samestat(path.stat(), output)


@app.command()
def score(
    source: Annotated[
        str, typer.Argument(help="A source sentence, or with --files a source file.")
    ],
    target: Annotated[
        str,
        typer.Argument(help="Its translation, or with --files a file of translations."),
    ],
    model: Model = SHIPPED,
    files: Annotated[
        bool,
        typer.Option(
            "--files", help="Read both sides from files, one sentence a line."
        ),
    ] = False,
    unknown: Unknown = "error",
    device: Device = "cpu",
) -> None:
    """How probable the model finds a given translation: total natural-log probability,
    its mean a token, the pair.

    **Examples**

    `annotated-transformer score "March 3" "3. März"`

    `annotated-transformer score --files test.en test.de -m averaged`
    """
    from annotated_transformer.data.corpus import parallel_files

    for side in [] if files else [source, target]:
        refuse_file(side, "--files")
    translator = open_translator(model, device)
    pairs = list(parallel_files(source, target)) if files else [(source, target)]
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    for result, one, other in zip(
        translator.score(sources, targets, unknown), sources, targets, strict=True
    ):
        mean = result.total / len(result.token_log_probabilities)
        columns = [
            f"{result.total:.4f}",
            f"{mean:.4f}",
            *(" ".join(side.split()) for side in (one, other)),
        ]
        print("\t".join(columns), flush=True)


@app.command()
def attend(
    text: Annotated[str, typer.Argument(help="The source sentence.")],
    target: Annotated[
        str | None,
        typer.Argument(help="Its translation; the model's own if none is given."),
    ] = None,
    model: Model = SHIPPED,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "attention.html"
    ),
    unknown: Unknown = "error",
    device: Device = "cpu",
) -> None:
    """Write a self-contained HTML page with the attention of every layer and head.

    **Example**

    `annotated-transformer attend "Sunday, March 21, 2027" --out attention.html`
    """
    from annotated_transformer.files import write_whole
    from annotated_transformer.plots import attention_page

    for side in (text, target):
        if side is not None and os.path.isfile(side):
            raise UserError(
                f"{side} is a file: attend looks at one sentence, so write it out"
            )
    refuse_places(out, reads=files_of(model))
    attention = open_translator(model, device).attention(text, target, unknown)
    source, outputs = attention.source, attention.target
    sides = {
        "encoder self-attention": (source, source, attention.encoder),
        "decoder self-attention": (outputs, attention.inputs, attention.decoder),
        "decoder to source": (outputs, source, attention.cross),
    }
    panels = [
        {"name": name, "queries": queries, "keys": keys, "weights": weights}
        for name, (queries, keys, weights) in sides.items()
    ]
    write_whole(
        out, attention_page(" ".join(source), " ".join(outputs), panels).encode()
    )
    console.print(f"wrote {out}", soft_wrap=True)


@app.command()
def average(
    checkpoints: Annotated[
        list[Path],
        typer.Argument(help="Model or checkpoint folders, or one run's folder."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The model folder to write.")
    ],
    last: Annotated[
        int | None,
        typer.Option(
            help="Of a run's folder, the last so many checkpoints; 5 if not named."
        ),
    ] = None,
) -> None:
    """Average the weights of checkpoints into one model.

    **Example**

    `annotated-transformer average runs/multi30k-en-de-tiny --last 5 --out averaged`
    """
    from annotated_transformer.after.pretrained import is_marian
    from annotated_transformer.training import checkpoint

    if last is not None and last < 1:
        raise UserError(f"--last is {last}: average at least one checkpoint")
    of_run = checkpoint.checkpoints(checkpoints[0]) if len(checkpoints) == 1 else []
    if last is not None and not of_run:
        raise UserError(
            "--last goes with one run's folder that has checkpoints: leave it out for "
            "models"
        )
    folders = of_run[-(last or 5) :] or checkpoints
    for folder in folders:
        if is_marian(folder):
            raise UserError(
                f"{folder} was imported, and imported models can't be averaged"
            )
    checkpoint.average_checkpoints(folders, out)
    console.print(f"averaged {len(folders)} checkpoints into {out}", soft_wrap=True)


@app.command()
def export(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="marian, ctranslate2 or onnx.",
            autocompletion=lambda: ("marian", "ctranslate2", "onnx"),
        ),
    ],
    out: Annotated[
        Path, typer.Argument(help="The folder to write; it must be new or empty.")
    ],
    model: Model = SHIPPED,
    quantization: Annotated[
        str | None,
        typer.Option(
            help="For ctranslate2, how weights are stored: float32 if not named, int8, "
            "int16, bfloat16, …"
        ),
    ] = None,
    attention: Annotated[
        bool,
        typer.Option(
            "--attention", help="For onnx: have the graphs return every head's weights."
        ),
    ] = False,
) -> None:
    """Write a model for another program: Hugging Face's MarianMTModel, CTranslate2, or
    any that runs ONNX.

    **Examples**

    `annotated-transformer export marian phrasebook-marian`

    `annotated-transformer export ctranslate2 small --quantization int8`

    `annotated-transformer export onnx graphs --attention`
    """
    from annotated_transformer.after.pretrained import is_marian
    from annotated_transformer.training.checkpoint import load_model
    from annotated_transformer.engine.ctranslate2 import (
        export_ctranslate2,
        export_marian,
        export_onnx,
    )

    write = {
        "marian": export_marian,
        "ctranslate2": export_ctranslate2,
        "onnx": export_onnx,
    }
    if form not in write:
        raise UserError(f"unknown format {form!r}: {nearest(form, list(write))}")
    settings: dict[str, Any] = {}
    for name, value, owner in (
        ("quantization", quantization, "ctranslate2"),
        ("attention", attention, "onnx"),
    ):
        if value and form != owner:
            raise UserError(
                f"--{name} is a setting of {owner}: leave it out for {form}"
            )
        if value:
            settings[name] = value
    if is_marian(model):
        raise UserError(
            f"{model} was imported: other programs read the directory that it was "
            "imported from"
        )
    write[form](*load_model(model), out, **settings)
    console.print(f"wrote {out}; its README.md says how to use it", soft_wrap=True)


@app.command()
def info(
    name: Annotated[
        str,
        typer.Argument(
            help="A preset of Table 3, such as base or big, or a model folder.",
            autocompletion=preset_names,
        ),
    ] = str(SHIPPED),
    length: Annotated[
        int, typer.Option(help="Tokens on each side for the count of operations.")
    ] = 25,
) -> None:
    """Parameters, floating-point operations and configuration of a preset or a saved
    model.

    **Examples**

    `annotated-transformer info base`

    `annotated-transformer info runs/phrasebook/model`
    """
    from annotated_transformer.after.pretrained import architecture_of, costs_of
    from annotated_transformer.model.config import preset, table_3

    if not 1 <= length <= 10**6:
        raise UserError(
            f"--length is {length}: count operations for at least one token and at "
            "most a million"
        )
    if "/" in name and not Path(name).exists():
        raise UserError(f"{name}: there is no such folder, and no preset has that name")
    config = (
        preset(name)
        if name in table_3() or not name or not Path(name).exists()
        else architecture_of(name)
    )
    console.print(name, soft_wrap=True)
    table = Table(
        *(Column(heading, overflow="fold") for heading in ("setting", "value"))
    )
    for setting, value in config.to_dict().items():
        table.add_row(setting, str(value))
    table.add_section()
    parameters, work = costs_of(config, length)
    for part, count in parameters.items():
        table.add_row(f"parameters: {part}", f"{count:,}")
    table.add_row("parameters", f"{sum(parameters.values()):,}")
    table.add_section()
    table.add_row(f"forward FLOPs, {length} → {length} tokens", f"{work.forward:.3e}")
    table.add_row("forward and backward FLOPs", f"{sum(work):.3e}")
    console.print(table)


@app.command()
def corpora() -> None:
    """List the named corpora: languages, splits with their sizes, licence and source.

    **Example**

    `annotated-transformer corpora`
    """
    from annotated_transformer.data.corpus import corpora as known

    for name, spec in known().items():
        by_hand = ", ".join(
            dict.fromkeys(file.split for file in spec.files if not file.url)
        )
        rows = {
            "pairs": " ".join(spec.pairs),
            "splits": ", ".join(
                f"{split} {size:,}" for split, size in spec.sizes().items()
            ),
            "licence": spec.licence,
            "source": spec.source,
            "prepare yourself": by_hand,
        }
        print(name)
        for heading, words in rows.items():
            if words:
                print(f"  {heading}: {words}")


@app.command("import")
def import_(
    directory: Annotated[
        Path,
        typer.Argument(help="A Marian directory, such as a downloaded OPUS-MT model."),
    ],
    out: Annotated[Path, typer.Argument(help="The model folder to write.")],
    src: Annotated[
        str | None,
        typer.Option(help="Source language, if the directory doesn't name it."),
    ] = None,
    tgt: Annotated[
        str | None,
        typer.Option(help="Target language, if the directory doesn't name it."),
    ] = None,
) -> None:
    """Import a Marian model in Hugging Face's format, such as OPUS-MT's, as a model
    folder for the other commands.

    **Example**

    `annotated-transformer import opus-mt-en-de runs/opus-mt-en-de`
    """
    from annotated_transformer.after.pretrained import import_marian

    import_marian(directory, out, src, tgt)
    console.print(f"imported {directory} into {out}", soft_wrap=True)


def main() -> None:
    """Run the command line; what a user can put right ends in one line on standard
    error and status 2.
    """
    if sys.stderr is None:  # closed; print would write to standard output instead
        sys.stderr = open(os.devnull, "w")
    warnings.showwarning = lambda message, *_: print(
        f"warning: {message}", file=sys.stderr
    )
    try:
        if sys.stdout is None:
            raise UserError(
                "standard output is closed: send it to a file, or to /dev/null if it "
                "isn't wanted"
            )
        sys.exit(app(standalone_mode=False) or 0)
    except UnicodeEncodeError as error:
        place = f"{error.object[error.start]!a} ({error.encoding})"
        print(
            f"error: standard output can't hold {place}: set PYTHONIOENCODING=utf-8",
            file=sys.stderr,
        )
        sys.exit(2)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        full = (
            isinstance(error, OSError)
            and error.errno == errno.ENOSPC
            and error.filename is None
        )
        said = (
            "standard output can't be written: no space is left; send it elsewhere"
            if full
            else str(error)
        )
        print(f"error: {said}", file=sys.stderr)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        words = ("out of memory", "not enough memory", "allocate memory")
        if not (
            isinstance(error, MemoryError) or any(each in str(error) for each in words)
        ):
            raise
        print(
            "error: out of memory: take a smaller beam, batch or model, or another "
            "--device",
            file=sys.stderr,
        )
        sys.exit(2)
    except Exception as error:
        if not hasattr(
            error, "format_message"
        ):  # the mark of typer's own, whose class has moved between versions
            raise
        print_misuse(error)
        sys.exit(2)


def print_misuse(error: Any) -> None:
    """A usage error in one line with a remedy; the error of a bare command, which has
    shown its help, has no words.
    """
    words = " ".join(error.format_message().split()).rstrip(".")
    command = (
        getattr(getattr(error, "ctx", None), "command_path", None)
        or "annotated-transformer"
    )
    hint = f"see {command} --help"
    if "unexpected extra argument" in words:
        hint = "put a text of several words in quotes"
    elif "No such option: -" in words and "--" not in words:
        hint = "write -- before a text that begins with -"
    if words:
        print(f"error: {words}; {hint}", file=sys.stderr)


if __name__ == "__main__":
    main()
