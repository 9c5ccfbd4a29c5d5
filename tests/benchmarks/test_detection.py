from benchmarks.detection import Counts, count_places, score


def test_count_places_by_hand():
    found = [(0, 5), (10, 15), (20, 25)]
    gold = [(0, 5), (12, 18), (30, 35), (14, 16)]
    counts = count_places(found, gold)
    assert counts == Counts(found=3, gold=4, exact=1, found_over=2, gold_over=3)
    assert [round(figure, 3) for figure in score(counts)] == [
        *(0.333, 0.25, 0.286),
        *(0.667, 0.75, 0.706),
    ]
    assert score(Counts(0, 0, 0, 0, 0)) == [0] * 6
