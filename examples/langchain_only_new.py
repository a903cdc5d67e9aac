"""Hand a LangChain pipeline only what no document before has.

Needs nearstream, `known_text.py` beside it, and `pip install langchain-core`. Put it before the splitter:
`splitter.split_documents(OnlyNew(HashKey.public()).transform_documents(loader.load()))`.
"""

from collections.abc import Sequence
from uuid import uuid4

from known_text import KnownText
from langchain_core.documents import BaseDocumentTransformer, Document

from nearstream import HashKey


class OnlyNew(BaseDocumentTransformer):
    """Replaces each document by its new passages, with its metadata. A copy has none."""

    def __init__(self, key: HashKey) -> None:
        """Begin without any document."""
        self.known = KnownText(key)

    def transform_documents(self, documents: Sequence[Document], **_: object) -> list[Document]:
        """Return the new passages of documents."""
        named = [(each.id or str(uuid4()), each.page_content) for each in documents]
        return [
            Document(page_content=passage, metadata={**document.metadata, "passage": number})
            for document, passages in zip(documents, self.known.new_passages(named), strict=True)
            for number, passage in enumerate(passages)
        ]
