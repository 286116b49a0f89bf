"""The attacks of benchmarks/promises/, in small, and what they have on record."""

import os

import pytest

from benchmarks.promises import faults, fuzz, kills, links

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:passed as unknown"),
]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")


def outcomes(attacks) -> set[str]:
    """How attacks ended, none of which may break a promise."""
    found = list(attacks)
    assert not [each for each in found if each.outcome == "failed"]
    return {each.outcome for each in found}


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_a_damaged_folder_gives_an_answer_or_one_error(kind, tmp_path):
    if kind in ("Marian directory", "imported model"):
        pytest.importorskip("sentencepiece")
    assert "refused" in outcomes(fuzz.attacks(24, tmp_path, kinds=[kind]))


@pytest.mark.slow
def test_twenty_thousand_damaged_folders(tmp_path):
    pytest.importorskip("sentencepiece")
    outcomes(fuzz.attacks(20_000, tmp_path, seed=100_000))


def test_links_lead_no_write_to_a_file_of_the_users(tmp_path):
    assert outcomes(links.attacks(60, tmp_path)) == {"done", "refused"}


@forks
def test_a_fault_at_any_operation_leaves_a_model_or_nothing(tmp_path):
    assert outcomes(faults.attacks(30, tmp_path)) >= {"nothing", "whole"}


@forks
def test_kills_and_interruptions_change_nothing(tmp_path):
    assert outcomes(kills.attacks(4, tmp_path)) == {"the same"}
