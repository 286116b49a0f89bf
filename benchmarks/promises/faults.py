"""Failing or killing a command at each of its file operations in turn.

    python -m benchmarks.promises.faults [--every N] [--only COMMAND …] [--no-record]

A command that writes is run again and again: its first operation on a file fails, then
its second, and so on through every open for writing, write, flush to the disk, rename,
deletion and new folder; once with a full disk, once with an error of the device, and
once by SIGKILL, which leaves half a write. After each, what lies there must be what was
there before or the whole new thing; a command that failed must have said so in one
line, with status 2; and the same command without a fault must then end well, with the
files of an undisturbed one, and leave no draft behind. The commands: train, average and
import over an older model, export to Marian, and a translation by CTranslate2 with an
empty cache, of whose many writes each eighth is attacked.
Writes results/promises/faults.json, for nbs/promises.md. About ten minutes on one core.
"""

import builtins
import errno
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from annotated_transformer.after import pretrained
from annotated_transformer.data.tokenizer import train_tokenizer
from annotated_transformer.model.config import TransformerConfig
from annotated_transformer.model.transformer import Transformer
from annotated_transformer.training import checkpoint
from benchmarks import record
from benchmarks.promises import forks

MODES = {"full disk": errno.ENOSPC, "device error": errno.EIO, "kill": None}
EVENTS = "os.rename os.remove os.rmdir os.mkdir os.truncate os.chmod".split()


@dataclass(frozen=True)
class Attacked:
    """A command in a working folder, what it writes, and what shows it's the same."""

    name: str
    arguments: Callable[[Path], Sequence[object]]
    out: str
    contents: Callable[[Path], Any]
    every: int = 1  # of its operations, each n-th is attacked
    replaces: bool = False  # an older folder at `out`
    refuses: bool = False  # to write again what is there


class Fault:
    """The n-th operation on a file under `root` fails, or kills the process."""

    def __init__(self, root: Path, number: int, mode: str, told: int):
        self.root, self.left = str(root), number
        self.mode, self.told = mode, told

    def install(self) -> None:
        """From now on, in this process, operations are counted."""
        fsync = os.fsync

        def flushed(handle: int) -> None:
            self.strike("flush", None)
            fsync(handle)

        os.fsync = flushed
        for module in (io, builtins):
            module.open = self.opener(module.open)
        for module in (checkpoint, pretrained):
            module.save_file = self.saver(module.save_file)
        sys.addaudithook(self.audit)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Python tells of these operations before it does them."""
        if event == "open":
            path, _, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and str(path).startswith(self.root):
                self.strike("open", path)
        elif event in EVENTS:
            path, *others = arguments
            inside = isinstance(path, int) or str(path).startswith(self.root)
            if inside or (others and isinstance(others[-1], int) and others[-1] != -1):
                self.strike(event.removeprefix("os."), path)

    def strike(
        self, what: str, path: Any, half: Callable[[], object] = lambda: None
    ) -> None:
        """Count an operation; at the chosen one, do half of it and fail or die."""
        self.left -= 1
        if self.left:
            return
        half()
        os.write(self.told, what.encode())
        number = MODES[self.mode]
        if number is None:
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            named = None if isinstance(path, int) else path
            raise OSError(number, os.strerror(number), named)

    def opener(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """`open`, whose files for writing count what is written to them."""

        def opened(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
            handle = real(file, mode, *rest, **named)
            inside = not isinstance(file, int) and str(file).startswith(self.root)
            return (
                Counting(handle, self) if inside and set(mode) & set("wax+") else handle
            )

        return opened

    def saver(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """safetensors' `save_file`, which writes by itself, as one write."""

        def saved(tensors: Any, path: Any, *rest: Any, **named: Any) -> None:
            def half() -> None:
                real(tensors, path, *rest, **named)
                with open(path, "rb+") as file:
                    file.truncate(os.path.getsize(path) // 2)

            self.strike("write", path, half)
            real(tensors, path, *rest, **named)

        return saved


class Counting:
    """A file whose writes are counted."""

    def __init__(self, file: Any, fault: Fault):
        self._file, self._fault = file, fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "Counting":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Any:
        return iter(self._file)

    def write(self, data: Any) -> int:
        def half() -> None:
            self._file.write(data[: len(data) // 2])
            self._file.flush()

        self._fault.strike("write", None, half)
        return self._file.write(data)


# -- the commands ----------------------------------------------------------------------


def model_of(seed: int) -> tuple[Transformer, Any]:
    """A model with random weights, and its tokenizer."""
    words = [("ba du ki lo me na", "na me lo ki du ba")] * 4
    tokenizer = train_tokenizer(words, "en", "de", 40)
    torch.manual_seed(seed)
    size = tokenizer.src_vocab_size
    sizes = {"N": 1, "d_model": 16, "d_ff": 32, "h": 2, "d_k": 8, "d_v": 8}
    return Transformer(TransformerConfig(size, size, max_length=64, **sizes)), tokenizer


def marian(seed: int, folder: Path) -> None:
    """A Marian directory with random weights."""
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir(parents=True)
    for side in ("source", "target"):
        with (folder / f"{side}.spm").open("wb") as file:
            SentencePieceTrainer.train(
                sentence_iterator=iter(["ba du ki lo me na"] * 9),
                model_writer=file,
                vocab_size=16,
                hard_vocab_limit=False,
                minloglevel=2,
            )
    pieces = SentencePieceProcessor(model_file=str(folder / "source.spm"))
    names = [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())]
    ids = {name: i for i, name in enumerate(["</s>", "<unk>", *names, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    torch.manual_seed(seed)
    sizes = {"vocab_size": len(ids), "decoder_vocab_size": len(ids), "d_model": 32}
    for part in ("encoder", "decoder"):
        sizes |= {f"{part}_layers": 1, f"{part}_attention_heads": 2}
        sizes[f"{part}_ffn_dim"] = 32
    config = MarianConfig(
        **sizes,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=len(ids) - 1,
        decoder_start_token_id=len(ids) - 1,
        max_position_embeddings=40,
    )
    MarianMTModel(config).save_pretrained(folder)


def template(folder: Path) -> None:
    """What the commands read, and what they are to replace."""
    forks.write_pairs(folder / "text")
    for seed, name in enumerate(["a", "b", "averaged"]):
        checkpoint.save_model(folder / "models" / name, *model_of(seed))
    for seed, name in enumerate(["new", "old"]):
        marian(seed, folder / "marian" / name)
    imported = folder / "models" / "imported"
    pretrained.import_marian(folder / "marian" / "old", imported, "en", "de")


def result_of_run(run: Path) -> Any:
    """The losses and the model of a run."""
    return forks.losses(run), forks.contents(run / "model")


COMMANDS = [
    Attacked(
        "train",
        lambda at: forks.training(
            at / "text", at / "run", "steps=2 save_every=1 keep=1"
        ),
        "run",
        result_of_run,
    ),
    Attacked(
        "average",
        lambda at: (
            ["average", *(at / "models" / name for name in "ab")]
            + ["--out", at / "models" / "averaged"]
        ),
        "models/averaged",
        forks.contents,
        replaces=True,
    ),
    Attacked(
        "import",
        lambda at: (
            ["import", at / "marian" / "new", at / "models" / "imported"]
            + ["--src", "en", "--tgt", "de"]
        ),
        "models/imported",
        forks.contents,
        replaces=True,
    ),
    Attacked(
        "export",
        lambda at: ["export", "marian", at / "out", "--model", at / "models" / "a"],
        "out",
        forks.contents,
        refuses=True,
    ),
    Attacked(
        "ctranslate2",
        lambda at: (
            ["translate", "ba du ki", "-m", at / "models" / "a"]
            + ["--engine", "ctranslate2", "--device", "cpu"]
        ),
        "home/.cache",
        forks.contents,
        every=8,  # of more than four hundred writes
    ),
]


class Attack:
    """One command, attacked at every n-th of its operations."""

    def __init__(self, command: Attacked, scratch: Path):
        self.command, self.scratch = command, scratch
        self.at, self.out = scratch / "at", scratch / "at" / command.out
        self.counts: dict[str, Counter[str]] = {mode: Counter() for mode in MODES}
        self.struck: Counter[str] = Counter()
        self.failures: list[str] = []
        self.old = self.fresh()
        plain = self.run()
        assert plain.status == 0, plain
        self.new = command.contents(self.out)

    def fresh(self) -> Any:
        """Set the working folder back; what lies at the command's place."""
        shutil.rmtree(self.at, ignore_errors=True)
        shutil.copytree(self.scratch / "template", self.at)
        return self.command.contents(self.out) if self.command.replaces else None

    def run(self, before: Callable[[], None] = lambda: None) -> forks.Ended:
        """The command in a process of its own."""
        cache = {"HOME": str(self.at / "home")}
        arguments, place = self.command.arguments(self.at), self.scratch / "said"
        return forks.wait(forks.fork(arguments, place, before, cache), place)

    def strike(self, mode: str, number: int) -> bool:
        """Attack the operation of this number; False if there is none."""
        self.fresh()
        ours, theirs = os.pipe()
        done = self.run(Fault(self.at, number, mode, theirs).install)
        os.close(theirs)
        what = os.read(ours, 100).decode()
        os.close(ours)
        if what:
            self.struck[what] += 1
            self.judge(mode, f"{mode} at operation {number}, {what}", done)
        return bool(what)

    def judge(self, mode: str, where: str, done: forks.Ended) -> None:
        """See that the attack left the old state or the new one, and no trouble."""
        found = "nothing there"
        if mode != "kill" and done.status != 0:
            self.expect(done.status == 2 and forks.one_line(done.err), where, done)
        if self.command.name != "train":  # whose folder grows bit by bit
            self.open()
            found = self.state()
            whole = (
                ("old", "new") if self.command.replaces else ("nothing there", "new")
            )
            self.expect(found in whole, f"{where}: {found}", done)
        again = self.run()
        well = again.status == 0
        if self.command.refuses and found == "new":
            well, found = again.status == 2, "new"
        self.expect(well and self.state() == "new", f"{where}, again", again)
        left = [name for name in forks.hidden(self.at) if name != "home/.cache"]
        if found == "new":  # then nothing is written again that could sweep up a lock
            left = [name for name in left if not Path(name).name.startswith(".lock")]
        self.expect(not left, f"{where}: left {left}", again)
        outcome = "gone on" if self.command.name == "train" else found
        self.counts[mode][outcome] += 1

    def open(self) -> None:
        """Read what is there, as the next command would."""
        if not self.command.replaces or self.out.exists():
            return
        place = self.scratch / "said"
        arguments = ["score", "ba", "ba", "-m", self.out]
        forks.wait(forks.fork(arguments, place), place)

    def state(self) -> str:
        """What lies at the command's place: old, new, nothing or something else."""
        found = None
        with suppress(FileNotFoundError):
            found = self.command.contents(self.out)
        known = {"nothing there": ({}, None), "old": (self.old,), "new": (self.new,)}
        return next((n for n, values in known.items() if found in values), "half")

    def expect(self, right: bool, where: str, done: forks.Ended) -> None:
        """Note a broken promise."""
        if not right:
            self.failures.append(f"{where}: {done.status} {done.err[-1500:]}")
            print("FAILED", self.command.name, self.failures[-1], file=sys.stderr)


def attack(command: Attacked, scratch: Path, every: int) -> dict[str, Any]:
    """Attack one command in every mode, and count."""
    attacked, every = Attack(command, scratch), every * command.every
    for offset, mode in enumerate(MODES):
        number = 1 + offset * every // len(MODES)
        while attacked.strike(mode, number):
            number += every
    counts = {mode: dict(found) for mode, found in attacked.counts.items()}
    struck = dict(attacked.struck.most_common())
    return {"operations": struck, "outcomes": counts, "failures": attacked.failures}


@contextmanager
def working_folder() -> Any:
    """A folder for the attacks, with all that they need."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(os.path.realpath(name))
        template(scratch / "template")
        yield scratch


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack all commands, and write the record; status 1 after a broken promise."""
    parser = record.command_line(__doc__)
    parser.add_argument("--every", type=int, default=1, help="only each N-th operation")
    names = [each.name for each in COMMANDS]
    parser.add_argument("--only", choices=names, nargs="+", default=names)
    parser.add_argument("--no-record", action="store_true", help="write nothing")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found = {}
    with working_folder() as scratch:
        for command in COMMANDS:
            if command.name in chosen.only:
                found[command.name] = attack(command, scratch, chosen.every)
                print(command.name, found[command.name], flush=True)
    failures = sum(len(each["failures"]) for each in found.values())
    attacks = sum(sum(each["operations"].values()) for each in found.values())
    print(f"{attacks} attacks, {failures} broken promises")
    if not chosen.no_record:
        figures = {"attacks": attacks, "failures": failures, "commands": found}
        record.save("promises/faults.json", figures)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
