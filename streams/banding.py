"""Bands of a sketch: which slots make a key, how likely two texts share one."""

MAX_BANDS = 255


def band_values(sketch: bytes, slot_bytes: int, bands: int, rows: int) -> list[bytes]:
    """The bytes of each band in order; band b is made of the slots b * rows up to (b + 1) * rows, the last excluded."""
    width = slot_bytes * rows
    return [sketch[start : start + width] for start in range(0, bands * width, width)]


def hit_probability(similarity: float, bands: int, rows: int) -> float:
    """Probability in [0, 1] that two sketches of this resemblance share a band: 1 - (1 - s^rows)^bands.

    The S-curve of Broder (1998) and of Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4.2.
    """
    return 1.0 - (1.0 - similarity**rows) ** bands


def choose(similarity: float, recall: float, slots: int) -> tuple[int, int]:
    """The most selective (bands, rows) that finds pairs of this resemblance with at least this probability.

    More rows make a band more selective, so the answer has the most rows that any number of bands allows, with the
    fewest bands that still reach the recall: each band is a key to be stored.

    Args:
        similarity: Resemblance of pairs to be found, in (0, 1].
        recall: Least probability to find them, in (0, 1).
        slots: Slots of the sketch; bands * rows is at most this.

    Raises:
        ValueError: A number is out of range, or one row in each band does not reach the recall.
    """
    if not (0 < similarity <= 1 and 0 < recall < 1 and slots >= 1):
        raise ValueError(
            f"similarity in (0, 1], recall in (0, 1), slots >= 1 expected: {similarity}, {recall}, {slots}"
        )
    for rows in range(slots, 0, -1):
        most = min(slots // rows, MAX_BANDS)
        if hit_probability(similarity, most, rows) >= recall:
            return _fewest_bands(similarity, recall, rows, most), rows
    raise ValueError(f"{slots} slots cannot find resemblance {similarity} with recall {recall}")


def _fewest_bands(similarity: float, recall: float, rows: int, most: int) -> int:
    return next(bands for bands in range(1, most + 1) if hit_probability(similarity, bands, rows) >= recall)
