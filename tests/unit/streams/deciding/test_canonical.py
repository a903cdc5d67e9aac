"""Which of several pages with one content is canonical, by their URLs."""

import time

import pytest

from nearstream.streams.deciding.resting import form_of, rank
from tests.support.verdicts import ref


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("https://a.example/articles/7", "https://a.example/print/7"),
        ("https://a.example/articles/7", "https://a.example/articles/7/amp"),
        ("https://a.example/articles/7", "https://m.a.example/a/7"),
        ("https://a.example/articles/7.html", "https://a.example/7.print.html"),
        ("https://a.example/articles/7?print=1", "https://a.example/a/7?sid=9"),
        ("https://a.example/articles/7?page=2", "https://a.example/a/7?x=8f14e45fceea167a5a36dedd"),
        ("https://a.example/articles/7", "https://a.example/a/(S(lit3py55t21z5v55vlm25s55))/7"),
        ("https://a.example/articles/7", "https://a.example/articles/7?from=start"),
        ("https://a.example/articles/7", "https://a.example/mirror/articles/7"),
        ("https://a.example/product?id=red", "https://a.example/product?id=red&tab=1"),
        ("https://a.example/printing-history", "https://a.example/print/x"),
    ],
)
def test_the_better_form_of_a_url_is_canonical(better: str, worse: str) -> None:
    assert form_of(better) < form_of(worse)
    assert rank(ref(better, 9), ()) < rank(ref(worse), ())
    assert rank(ref(worse), {worse}) < rank(ref(better), {worse})  # a declared one comes before all of this


def test_of_equal_forms_the_oldest_is_canonical() -> None:
    assert rank(ref("https://a.example/y"), ()) < rank(ref("https://a.example/x", 1), ())


@pytest.mark.parametrize("name", ["report-7", "http://[::1", "", "https://a.example/?" + "a=1&" * 2_000, "/" * 4_096])
def test_any_text_has_a_form(name: str) -> None:
    began = time.process_time()
    assert form_of(name).characters >= 0
    assert time.process_time() - began < 1
