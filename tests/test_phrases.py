"""The rival of the captions' model: phrases that agree with the words' links."""

from benchmarks.paper.phrases import grow, phrases


def found(english, german, links):
    """The phrases of a pair, as text."""
    pairs = phrases(tuple(english.split()), tuple(german.split()), links)
    return {(" ".join(e), " ".join(g)) for e, g in pairs}


def test_words_without_a_link_may_join():
    there = found("he is not here", "er ist nicht da", {(0, 0), (1, 1), (3, 3)})
    assert {("he", "er"), ("is", "ist"), ("is", "ist nicht")} <= there
    assert {("here", "nicht da"), ("is not here", "ist nicht da")} <= there
    assert not {("he", "er ist"), ("is", "er ist"), ("not", "nicht")} & there


def test_phrases_have_no_link_to_the_outside():
    there = found("puts it on", "zieht es an", {(0, 0), (0, 2), (1, 1), (2, 2)})
    assert there == {("it", "es"), ("puts it on", "zieht es an")}


def test_links_of_both_ways_grow_to_neighbours():
    both, one = {(0, 0)}, {(0, 0), (1, 1), (3, 3)}
    assert grow(both, one) == {(0, 0), (1, 1)}
    crossed = {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert grow({(0, 0), (1, 1)}, crossed) == {(0, 0), (1, 1)}
