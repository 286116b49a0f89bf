"""The rival of the captions' model: phrases that agree with the words' links."""

from benchmarks.paper.phrases import grow, phrases


def test_phrases_have_no_link_to_the_outside():
    english, german = ("he", "is", "not", "here"), ("er", "ist", "nicht", "da")
    links = {(0, 0), (1, 1), (3, 3)}  # "not" and "nicht" have none
    found = {(" ".join(e), " ".join(g)) for e, g in phrases(english, german, links)}
    assert {("he", "er"), ("is", "ist"), ("is", "ist nicht")} <= found
    assert {("here", "nicht da"), ("is not here", "ist nicht da")} <= found
    assert not {("he", "er ist"), ("is", "er ist"), ("not", "nicht")} & found


def test_links_of_both_ways_grow_to_neighbours():
    both, one = {(0, 0)}, {(0, 0), (1, 1), (3, 3)}
    assert grow(both, one) == {(0, 0), (1, 1)}
    crossed = {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert grow({(0, 0), (1, 1)}, crossed) == {(0, 0), (1, 1)}
