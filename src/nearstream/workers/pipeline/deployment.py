"""A deployment: its settings and all values computed from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from nearstream.schemas.topics.table import DEAD_LETTERS, Topic
from nearstream.schemas.verdicts.verdict import VERDICT_KINDS
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.ingest.fields import parse_field_map
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS, Thresholds
from nearstream.streams.signing.scheme import Scheme, preset
from nearstream.streams.store.limits import IndexLimits
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.config.tls import trusting
from nearstream.workers.pipeline.dead_letters import DeadLetterWriter
from nearstream.workers.redis.server.address import IndexAddress

# Imported on use, since most commands neither sign nor match nor read pages.
if TYPE_CHECKING:
    from nearstream.streams.matching.matcher import Matcher
    from nearstream.streams.matching.protocol.lane import Patience
    from nearstream.streams.signing.signer import Signer
    from nearstream.streams.store.store import Store
    from nearstream.workers.crawl.page import PageReader
    from nearstream.workers.mail.message import MailRules
    from nearstream.workers.sqlite.file import IndexFile


@dataclass(frozen=True)
class Deployment:
    """The settings of a deployment with the values computed from them, made once at the start."""

    settings: Settings  # the settings that everything else was made from
    key: HashKey  # The hash key. Without a secret in the settings it is the public key.
    scheme: Scheme  # the preset
    document_limits: DocumentLimits  # limits of a document
    index_limits: IndexLimits  # limits of the index
    thresholds: Thresholds = DEFAULT_THRESHOLDS  # limits of the relations

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Make the deployment that these settings describe."""
        key = HashKey.from_secret(settings.hash_key.encode()) if settings.hash_key else HashKey.public()
        scheme = preset(settings.scheme, key)
        return cls(settings, key, scheme, _document_limits(settings), _index_limits(settings, scheme))

    def signer(self) -> "Signer":
        """Make a signer for the deployment's scheme."""
        from nearstream.streams.signing.signer import Signer

        return Signer(self.scheme, self.key, self.settings.max_text_bytes, self.settings.references.split())

    def matcher(self, store: "Store", patience: "Patience | None" = None) -> "Matcher":
        """Make a matcher over this store. Without patience there are no other lanes to wait for."""
        from nearstream.streams.matching.matcher import Matcher, no_patience

        relations = frozenset(self.settings.relations.split())
        return Matcher(store, self.scheme, self.key, self.thresholds, relations, patience or no_patience)

    def page_reader(self) -> "PageReader":
        """Make a reader of web pages."""
        from nearstream.workers.crawl.page import PageReader

        return PageReader(self.settings.html_content, self.settings.max_text_bytes, key=self.key)

    def mail_rules(self) -> "MailRules":
        """Return what is read of mail."""
        from nearstream.workers.mail.message import MailRules

        settings = self.settings
        return MailRules(settings.mail_content, settings.mail_authserv_id, settings.mail_domains)

    def verdicts(self) -> frozenset[str]:
        """Return the kinds of verdicts that are sent."""
        left_out = {"all": (), "related": ("unique",), "none": VERDICT_KINDS}[self.settings.verdicts]
        return frozenset(VERDICT_KINDS) - frozenset(left_out)

    def dead_letter_writer(self, role: str) -> DeadLetterWriter:
        """Make a writer of dead letters that name this role."""
        from importlib.metadata import version

        worker = f"nearstream/{version('nearstream')} {role}"
        return DeadLetterWriter(self.topic(DEAD_LETTERS), worker, self.settings.dead_letter_payload)

    def index_address(self) -> IndexAddress:
        """Return the address of the shared index."""
        settings = self.settings
        if settings.redis_ca_path:
            trusting("NEARSTREAM_REDIS_CA_PATH", settings.redis_ca_path)
        return IndexAddress(
            settings.redis.replace("+cluster://", "://", 1),
            settings.namespace,
            self.scheme.name,
            self.index_limits,
            ca_path=settings.redis_ca_path or None,
            slots=settings.index_slots,
            replicas=settings.redis_wait,
            cluster="+cluster://" in settings.redis,
            look_up_seconds=settings.api_seconds,
        )

    def index_file(self, path: str, *, may_create: bool = True) -> "IndexFile":
        """Open the index in a file, or make one."""
        if not may_create and not Path(path).is_file():
            raise SettingsError(f"{path}: expected an index, of `nearstream scan --index` or `serve --index`")
        from nearstream.workers.sqlite.file import open_store

        return open_store(path, self.scheme.name, self.index_limits)

    def topic(self, topic: Topic) -> str:
        """Return the name of a topic with the deployment's prefix."""
        return self.settings.topic_prefix + topic.name


def _document_limits(settings: Settings) -> DocumentLimits:
    try:
        fields = parse_field_map(settings.fields)
    except ValueError as error:
        raise SettingsError(f"NEARSTREAM_FIELDS: {error}") from None
    return DocumentLimits(settings.max_text_bytes, fields=fields)


def _index_limits(settings: Settings, scheme: Scheme) -> IndexLimits:
    return IndexLimits(
        retention_seconds=settings.retention_seconds,
        documents=settings.index_documents,
        bands=scheme.bands.bands,
    )
