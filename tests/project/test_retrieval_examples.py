"""The examples for LangChain and LlamaIndex keep only what is new, with the real packages."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.devstack.wheels import packages_of, python_environment
from tests.support.made_up import words

pytestmark = pytest.mark.foreign
EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGES = ("langchain-core>=1,<2", "llama-index-core>=0.14,<0.15")


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let both packages be imported after those of the tests, which they must not replace."""
    folder = packages_of(python_environment(*PACKAGES))
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path, str(folder)])


def example(name: str) -> Any:  # noqa: ANN401 - a module that is no part of a package
    return importlib.import_module(name)


def paragraph(seed: int) -> str:
    return " ".join(words(seed, 60))


def text(*seeds: int) -> str:
    return "\n\n".join(map(paragraph, seeds))


def test_langchain_gets_only_what_is_new() -> None:
    module, key = example("langchain_only_new"), importlib.import_module("nearstream").HashKey.public()
    only_new, made = module.OnlyNew(key), module.Document
    documents = [
        made(page_content=text(1, 2, 3), metadata={"source": "a"}),
        made(page_content=text(1, 2, 3).upper(), metadata={"source": "copy"}),
        made(page_content=text(1, 4, 3), metadata={"source": "b"}),
        made(page_content=" "),
    ]
    first, second = only_new.transform_documents(documents)
    assert (first.page_content, first.metadata) == (text(1, 2, 3), {"source": "a", "passage": 0})
    assert (second.page_content, second.metadata) == (paragraph(4), {"source": "b", "passage": 0})
    assert only_new.transform_documents(documents) == []


async def test_llama_index_gets_only_what_is_new_in_a_running_loop() -> None:
    module = example("llama_index_only_new")
    pipelines, made = (
        importlib.import_module("llama_index.core.ingestion"),
        importlib.import_module("llama_index.core").Document,
    )
    pipeline = pipelines.IngestionPipeline(transformations=[module.OnlyNew()], disable_cache=True)
    documents = [
        made(text=text(1, 2, 3), id_="a"),
        made(text=text(1, 2, 3), id_="copy"),
        made(text=text(1, 4, 3), id_="b"),
    ]
    for nodes in (await pipeline.arun(documents=documents[:2]), pipeline.run(documents=documents[2:])):
        (node,) = nodes
        assert node.get_content() == {"a#0": text(1, 2, 3), "b#0": paragraph(4)}[node.node_id]
    assert pipeline.run(documents=[made(text=text(3, 1), id_="c")]) == []
