"""Hand a LlamaIndex pipeline only what no document before has.

Needs nearstream, `known_text.py` beside it, and `pip install llama-index-core`. Put it before the splitter:
`IngestionPipeline(transformations=[OnlyNew(), SentenceSplitter(), embedding])`.
"""

from collections.abc import Sequence

from known_text import KnownText
from llama_index.core.schema import BaseNode, MetadataMode, TransformComponent
from pydantic import PrivateAttr

from nearstream import HashKey


class OnlyNew(TransformComponent):
    """Replaces each node by its new passages, which keep its metadata and relations. A copy has none."""

    _known: KnownText = PrivateAttr(default_factory=lambda: KnownText(HashKey.public()))  # a secret in production

    def __call__(self, nodes: Sequence[BaseNode], **_: object) -> list[BaseNode]:
        """Return the new passages of nodes."""
        named = [(node.node_id, node.get_content(MetadataMode.NONE)) for node in nodes]
        return [
            self._passage(node, number, passage)
            for node, passages in zip(nodes, self._known.new_passages(named), strict=True)
            for number, passage in enumerate(passages)
        ]

    @staticmethod
    def _passage(node: BaseNode, number: int, passage: str) -> BaseNode:
        part = node.model_copy(deep=True)
        part.id_ = f"{node.node_id}#{number}"
        part.set_content(passage)
        return part
