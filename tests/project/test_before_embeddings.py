"""The example that hands new passages to a vector store: each text is in the store as long as any document has it."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.made_up import words

pytest.importorskip("usearch", reason="needs usearch")
PATH = Path(__file__).parents[2] / "examples/before_embeddings.py"
DIMENSIONS = 64


def loaded() -> Any:  # noqa: ANN401 - a module that is no part of a package
    spec = importlib.util.spec_from_file_location("before_embeddings", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLE = loaded()


def embed(passages: Sequence[str]) -> NDArray[np.float32]:
    """Count the words of passages by their hashes."""
    vectors = np.zeros((len(passages), DIMENSIONS), np.float32)
    for row, passage in enumerate(passages):
        for word in passage.split():
            vectors[row, crc32(word.encode()) % DIMENSIONS] += 1
    return vectors


def paragraph(seed: int) -> str:
    return " ".join(words(seed, 60))


def text(*seeds: int) -> str:
    return "\n\n".join(map(paragraph, seeds))


def store() -> Any:  # noqa: ANN401 - a class of that module
    return EXAMPLE.Passages(embed, DIMENSIONS)


async def test_only_new_passages_are_embedded() -> None:
    one = store()
    assert len(await one.put("a", text(1, 2, 3))) == 3
    assert await one.put("copy", text(1, 2, 3).upper()) == []
    assert await one.put("b", text(1, 4, 3)) == [paragraph(4)]
    (found,) = one.vectors.search(embed([paragraph(4)])[0], 1).keys
    assert one.passages[int(found)] == paragraph(4)


async def test_passages_of_a_removed_document_go_on_under_those_that_have_them() -> None:
    one = store()
    await one.put("a", text(1, 2))
    await one.put("b", text(1, 2, 3))
    await one.put("c", text(2, 3, 4))
    await one.remove("a")
    assert sorted(one.passages.values()) == sorted(map(paragraph, (1, 2, 3, 4)))
    await one.put("b", text(5, 6))
    assert sorted(one.passages.values()) == sorted(map(paragraph, (2, 3, 4, 5, 6)))
    for name in "bc":
        await one.remove(name)
    assert (len(one.vectors), one.passages) == (0, {})
    await one.remove("never seen")


@pytest.mark.parametrize("seed", range(2))
async def test_each_text_is_in_the_store_as_long_as_any_document_has_it(seed: int) -> None:
    draw, one, living = Random(seed), store(), dict[str, str]()
    for _ in range(40):
        name = f"d{draw.randrange(8)}"
        if draw.random() < 0.25:
            living.pop(name, None)
            await one.remove(name)
        else:
            living[name] = text(*draw.choices(range(12), k=draw.randint(1, 6)))
            await one.put(name, living[name])
        held, needed = set(one.passages.values()), {each for text in living.values() for each in text.split("\n\n")}
        assert held == needed
        assert len(one.vectors) == len(one.passages)
