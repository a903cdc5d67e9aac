"""Share of true pairs in a range of scores, from a field that no score has used.

Source: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.8.3: pairs that do not belong together are
random in that field, pairs that do are not.
"""


def true_share(mean: float, perfect: float, random: float) -> float:
    """Return the share of true pairs.

    Args:
        mean: Mean of the field over pairs in a range of scores, such as the days between two observations.
        perfect: Its mean over pairs that are certain.
        random: Its mean over random pairs of the same window.

    Raises:
        ValueError: Certain and random pairs have one mean, so the field tells nothing.
    """
    if perfect == random:
        raise ValueError("two means expected: certain pairs have the same as random ones")
    return (random - mean) / (random - perfect)
