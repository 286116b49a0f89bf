"""The file to start from: all parts, none written, and never over another file."""

from pathlib import Path

from annotated_transformer import check
from annotated_transformer.check.starter import starter, write_starter

NBS = Path(__file__).resolve().parent.parent / "nbs"


def test_a_starter_has_every_part_and_none_is_written_yet(run, tmp_path):
    path = tmp_path / "mine.py"
    status, out, _ = run("check", path, "--starter")
    assert status == 0 and out.startswith(f"wrote {path}")
    assert path.read_text("utf-8") == starter("mine.py")
    found = check.progress(path)
    assert list(found) == list(check.CHECKS)
    assert {str(verdict) for verdict in found.values()} == {"not yet written"}


def test_a_part_that_is_filled_in_counts(tmp_path):
    path = tmp_path / "mine.py"
    write_starter(path)
    head, body, rest = path.read_text("utf-8").partition("def causal_mask(n):")
    right = "    return torch.ones(n, n, dtype=torch.bool).tril()"
    rest = rest.replace("    raise NotImplementedError", right, 1)
    path.write_text(head + body + rest, "utf-8")
    found = check.progress(path)
    assert found["causal_mask"] and sum(map(bool, found.values())) == 1


def test_a_starter_overwrites_nothing_and_goes_alone(run, tmp_path):
    path = tmp_path / "mine.py"
    status, out, err = run("check", path, "--starter", "--use", "Encoder=Stack")
    assert status == 2 and "leave one out" in err and not path.exists()
    path.write_text("mine")
    status, out, err = run("check", path, "--starter")
    assert status == 2 and not out and "exists: name a new file" in err
    assert path.read_text() == "mine"


def test_the_page_offers_the_same_file():
    name = "starter.py"
    assert (NBS / name).read_text("utf-8") == starter(name)
    assert f"{{download}}`download it <{name}>`" in (NBS / "write_it.ipynb").read_text(
        "utf-8"
    )
