"""Code that wasn't written for the book, called in the way that it wants."""

import pytest
from their_parts import RIGHT, WRONG

from annotated_transformer import check
from annotated_transformer.check.adapters import adapted


@pytest.mark.parametrize("name, part, words", RIGHT)
def test_a_right_part_of_other_names_axes_and_masks_passes(name, part, words):
    found = adapted(name, check.CHECKS[name], part)
    assert found and words in found.sentence, found


@pytest.mark.parametrize("name, part, words", WRONG)
def test_a_wrong_one_gets_the_reason_of_the_way_that_came_furthest(name, part, words):
    found = adapted(name, check.CHECKS[name], part)
    assert not found and words in found.sentence, found
    assert found.departs == (part.__name__ == "PreNorm")


def test_the_command_asks_one_part_by_any_name(run, tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(
        "import torch\n"
        "def attend(q, k, v, hidden=None):\n"
        "    scores = q @ k.mT / k.size(-1) ** 0.5\n"
        "    if hidden is not None:\n"
        "        scores = scores.masked_fill(hidden, -torch.inf)\n"
        "    return scores.softmax(-1) @ v\n"
    )
    status, out, _ = run("check", path, "--use", "attention=attend")
    assert status == 0 and "Called with a mask where True is hidden" in out
    status, out, err = run("check", path, "--use", "atention=attend")
    assert status == 2 and not out and "did you mean 'attention'" in err
