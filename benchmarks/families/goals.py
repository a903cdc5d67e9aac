"""The goals of families, and whether figures reach them."""

from collections.abc import Callable, Sequence

from benchmarks.quality.scoring import Figures


def at_most(value: float | None, goal: float) -> Figures:
    """Return a value that may not exceed its goal."""
    return {"value": value, "goal": f"<= {goal:,}", "reached": None if value is None else value <= goal}


def at_least(value: float | None, goal: float) -> Figures:
    """Return a value that has to reach its goal."""
    return {"value": value, "goal": f">= {goal:,}", "reached": None if value is None else value >= goal}


def goals_of_storms(figures: Figures) -> Figures:
    """Return the goals of generated texts."""
    equal, campaigns, bytes_of = figures["equal_texts"], figures["campaigns"], figures["stored"]
    one, eight, plain = campaigns["one body"], campaigns["eight variants"], campaigns["unique"]
    exact, near = bytes_of["exact copies, one of each"], bytes_of["copies with a tenth changed, one of each"]
    return {
        "300 equal texts: events": at_most(equal["events"], 299),
        "300 equal texts: bytes sent with verdicts": at_most(equal["bytes_sent"], 1_000_000),
        "mails of one body: events a mail": at_most(one["events_per_document"], 1.1),
        "mails of one body: families": at_most(one["families"], 1),
        "mails of one body: documents a second of CPU over unique": at_least(_ratio(one, plain), 1.0),
        "mails of eight variants: events a mail": at_most(eight["events_per_document"], 1.1),
        "mails of eight variants: families": at_most(eight["families"], 8),
        "mails of eight variants: documents a second of CPU over unique": at_least(_ratio(eight, plain), 1.0),
        "mails: full buckets": at_most(one["full_buckets"] + eight["full_buckets"], 0),
        "Redis bytes of an exact copy": at_most(exact["bytes"], 200),
        "Redis bytes of a copy with a tenth changed": at_most(near["bytes"], 1_100),
    }


def goals_of_corpus(figures: Figures) -> Figures:
    """Return the goals of labelled documents. The worst order counts."""
    runs: Sequence[Figures] = list(figures["by_seed"].values())

    def worst(choose: Callable[[Sequence[float]], float], *path: str) -> float | None:
        values = [_at(run, path) for run in runs]
        known = [value for value in values if value is not None]
        return choose(known) if known else None

    return {
        "related pairs that an event connects": at_least(worst(min, "pairs", "related", "connected"), 0.88),
        "near-duplicate pairs connected": at_least(worst(min, "pairs", "near_duplicate", "connected"), 0.999),
        "near-duplicate pairs in one family": at_least(worst(min, "pairs", "near_duplicate", "one_family"), 0.90),
        "pairs of one family that are copies": at_least(worst(min, "in_one_family", "copies"), 0.95),
        "labelled unrelated pairs in one family": at_most(worst(max, "pairs", "unrelated", "one_family"), 0),
        "sampled pairs of one family that are unrelated": at_most(worst(max, "in_one_family", "unrelated"), 0.001),
    }


def _ratio(one: Figures, plain: Figures) -> float:
    """Return a rate over another, by the CPU of client and server: other work changes times, but hardly CPU."""
    spent, plainly = (each["client_us"] + each["server_us"] for each in (one, plain))
    return round(float(plainly / spent), 2)


def _at(run: Figures, path: Sequence[str]) -> float | None:
    found = run
    for name in path[:-1]:
        found = found[name]
    value: float | None = found[path[-1]]
    return value
