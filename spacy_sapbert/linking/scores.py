"""How scores are rounded: nothing else rounds one."""

SORT_DIGITS = 6  # to sort by: float32 sums differ after these digits with the batch
SCORE_DIGITS = 4  # of scores that are compared with a threshold, and written


def round_score(score: float) -> float:
    """Return a score as it is written."""
    return round(float(score), SCORE_DIGITS)
