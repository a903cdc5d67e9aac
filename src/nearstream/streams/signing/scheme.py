"""Schemes: every number that shapes a signature or an index key.

The name of a scheme is derived from its numbers. This page also has the presets, and the bands of a sketch, which
become index keys.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace as replace_fields

from nearstream.schemas.documents.document import ATTACHMENTS_LABEL, ATTACHMENTS_UNREAD
from nearstream.schemas.documents.signature import VERSION_BYTES, Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import DEFAULT_LABEL as DEFAULT_LABEL
from nearstream.streams.fingerprints.parameters import (
    GAP_STEPS,
    ITEM_WORDS,
    SPLIT_SYMBOL_BITS,
    WORD_SYMBOL_BITS,
    AnchorRules,
    BandRules,
    LdRules,
    NoiseRules,
    RowRules,
    SampledRules,
    SketchRules,
    TextRules,
)

SPEC = 1  # raised when an algorithm changes, since a changed number changes the name by itself
SMALL_KEY_BYTES = 8
UNICODE = 14  # version of the tables that normal forms are made with
MAX_BANDS = 255  # the index of a band is hashed as one byte


@dataclass(frozen=True)
class Keys:
    """The index keys of a signature by kind: distinct, 8 bytes each."""

    digest: bytes
    lineage: bytes | None
    bands: tuple[bytes, ...]
    anchors: tuple[bytes, ...]  # with the key of its attachments, which documents have in common as they have passages
    attachments: bytes | None = None  # that key alone, of a mail that has some
    # Windows of a document that is compared with a reference. Those of an item of one are among the anchors.
    windows: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Scheme:
    """How texts become signatures, and signatures become index keys.

    Documents of two schemes never share a bucket.

    Raises:
        ValueError: The sketch has too few slots for the bands, or slots of another width than 8, 16 or 32 bits.
    """

    label: str
    key_fingerprint: str
    text: TextRules = field(default_factory=TextRules)
    sketch: SketchRules = field(default_factory=SketchRules)
    ld: LdRules = field(default_factory=LdRules)
    anchors: AnchorRules = field(default_factory=AnchorRules)
    noise: NoiseRules | None = None
    sampled: SampledRules | None = None
    bands: BandRules = field(default_factory=BandRules)
    rows: RowRules = field(default_factory=RowRules)
    spec: int = SPEC
    unicode: int = UNICODE

    def __post_init__(self) -> None:
        """Refuse a sketch that does not fit its bands.

        It may have too few slots, or slots so narrow that bands match by chance.
        """
        bands, rows = self.bands.bands, self.bands.rows
        if not (1 <= bands <= MAX_BANDS and rows >= 1 and bands * rows <= self.sketch.slots):
            raise ValueError(
                f"bands x rows: at most {MAX_BANDS} bands and {self.sketch.slots} slots expected, not {bands} x {rows}"
            )
        if self.sketch.bits not in (8, 16, 32):
            raise ValueError(f"sketch: slots of 8, 16 or 32 bits expected, not {self.sketch.bits}")

    @cached_property
    def name(self) -> str:
        """The scheme's name, which ends with a hash of all numbers.

        Before that it has the label, the specification, the Unicode version and the fingerprint of the key.
        """
        lines = "\n".join(sorted(_lines(asdict(self))))
        digest = blake2b(lines.encode(), digest_size=4).hexdigest()
        return f"{self.label}-{self.spec}-u{self.unicode}-k{self.key_fingerprint}-{digest}"

    def keys(self, signature: Signature, key: HashKey) -> Keys:
        """Return the index keys of a complete signature.

        Scheme and collection salt them all.

        Args:
            signature: As the signer made it, not as the index keeps it.
            key: The key that the scheme was made for.

        Raises:
            ValueError: The normal form is empty, the signature belongs to another scheme or was reduced by `kept`,
                or the key is not the scheme's.
        """
        self._require_complete(signature, key)
        salt = self._salt + _sized(signature.collection.encode())

        def index_key(kind: bytes, value: bytes) -> bytes:
            return key.small_key(salt + kind + value)[:SMALL_KEY_BYTES]

        def index_keys(kind: bytes, values: bytes, width: int) -> tuple[bytes, ...]:
            return tuple(dict.fromkeys(key.small_keys(salt + kind, values, width)))

        bands: tuple[bytes, ...] = ()
        anchors: tuple[bytes, ...] = ()
        windows: tuple[bytes, ...] = ()
        if self._long_enough(signature):
            # A document that names references has no windows in its own collection.
            windows = () if signature.against else index_keys(b"w\0", signature.windows, 8)
            anchors = index_keys(b"a\0", signature.anchors, 8)
            if signature.words <= ITEM_WORDS:
                anchors += windows
            values = band_values(signature.sketch, self.sketch.bits // 8, self.bands.bands, self.bands.rows)
            numbered = b"".join([bytes((index,)) + value for index, value in enumerate(values)])
            bands = index_keys(b"b", numbered, 1 + len(values[0])) if signature.shingles and values else ()
        lineage, attached = signature.lineage, signature.labels.get(ATTACHMENTS_LABEL, ATTACHMENTS_UNREAD)
        files = None if attached == ATTACHMENTS_UNREAD else index_key(b"f\0", attached.encode())
        return Keys(
            digest=index_key(b"x\0", signature.digest),
            lineage=None if lineage is None else index_key(b"l\0", lineage.encode("utf-8", "surrogatepass")),
            bands=bands,
            anchors=anchors if files is None else (*anchors, files),
            attachments=files,
            windows=windows,
        )

    @cached_property
    def _salt(self) -> bytes:
        return blake2b(self.name.encode(), digest_size=16).digest()

    def kept(self, signature: Signature) -> Signature:
        """Return the signature as an index record keeps it.

        What estimates read remains, with the fields that identify the document.
        """
        from nearstream.streams.signing.kept import kept_sketch, kept_symbols  # which loads numpy

        stored = SPLIT_SYMBOL_BITS if signature.gaps else WORD_SYMBOL_BITS
        sketch, ld = kept_sketch(signature.sketch), kept_symbols(signature.ld, stored)
        raw_digest = signature.raw_digest[:VERSION_BYTES]
        return replace_fields(signature, raw_digest=raw_digest, sketch=sketch, ld=ld, anchors=b"", windows=b"")

    def check(self, signature: Signature) -> None:
        """Check the byte fields of a signature that another process made.

        Raises:
            InvalidMessageError: `other_scheme`, or `invalid_signature` with the field and what was expected of it.
        """
        from nearstream.streams.signing.validity import invalid_field  # which loads numpy

        if signature.scheme != self.name:
            raise InvalidMessageError(Reason.OTHER_SCHEME, f"scheme {self.name} expected")
        detail = invalid_field(signature, self.sketch, self.ld, self.anchors, self.noise, self.sampled)
        if detail:
            raise InvalidMessageError(Reason.INVALID_SIGNATURE, detail)

    def _require_complete(self, signature: Signature, key: HashKey) -> None:
        if key.fingerprint != self.key_fingerprint:
            raise ValueError(f"key: the scheme was made for the key {self.key_fingerprint}, not {key.fingerprint}")
        if signature.scheme != self.name:
            raise ValueError(f"scheme: a signature of {self.name} expected, not of {signature.scheme}")
        if signature.n_bytes == 0:
            raise ValueError("n_bytes: a signature with an empty normal form has no index keys")
        if len(signature.sketch) * 8 != self.sketch.slots * self.sketch.bits:
            raise ValueError(
                f"sketch: {self.sketch.slots} slots of {self.sketch.bits} bits expected, as the signer makes them"
            )

    def _long_enough(self, signature: Signature) -> bool:
        if signature.spaceless:
            return signature.n_bytes >= self.bands.min_spaceless_bytes
        return signature.words >= self.bands.min_words


_COMPACT_LD = LdRules(rates=(16, 32, 64, 128), symbol_bits=16, gap_bits=0, gap_steps=GAP_STEPS, max_symbols=1_024)
_FINE_LD = LdRules(rates=(1, 8, 16, 32, 64), lengths=(512, 4_096, 16_384, 65_536), max_symbols=8_192)
_MAIL_LD = replace(_FINE_LD, max_symbols=2_048)
_PRESETS: dict[str, dict[str, Any]] = {  # Any: each field of Scheme has a type of its own
    "fine": {
        "text": TextRules(spelling="plain/5", signs="signs/1"),
        "ld": _FINE_LD,
        "anchors": AnchorRules(dense_below=400, max_anchors=2_048),
        "sampled": SampledRules(),
        "bands": BandRules(bands=4),
    },
    "mail": {
        "text": TextRules(spelling="plain/5", signs="signs/1", masks="mail/2"),
        "sketch": SketchRules(shingle_words=3),
        "ld": _MAIL_LD,
        "anchors": AnchorRules(dense_below=400),
        "sampled": SampledRules(below_bytes=512),
    },
    "compact": {"sketch": SketchRules(bits=8), "ld": _COMPACT_LD, "anchors": AnchorRules(run=64)},
    "noise": {"noise": NoiseRules()},
}
LABELS = tuple(_PRESETS)


def preset(label: str, key: HashKey) -> Scheme:
    """Return the scheme of a preset for one key.

    Args:
        label: `fine` (the default, which finds short and noisy texts too), `mail` (personalised copies are
            near-duplicates), `compact` (less than half the bytes) or `noise` (keys that survive replaced characters).
        key: The deployment's key. Only its fingerprint enters the scheme.

    Raises:
        ValueError: The label is unknown.
    """
    if label not in _PRESETS:
        raise ValueError(f"scheme: one of {', '.join(_PRESETS)} expected, not {label!r}")
    return Scheme(label=label, key_fingerprint=key.fingerprint, **_PRESETS[label])


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


def _lines(rules: Mapping[str, object], path: str = "") -> Iterator[str]:
    """Yield `dotted.field=value` for every number that enters the name.

    The label is left out because it is only a nickname.
    """
    for name, value in rules.items():
        if isinstance(value, Mapping):
            yield from _lines(value, f"{path}{name}.")
        elif name != "label":
            yield f"{path}{name}={value}"


def band_values(sketch: bytes, slot_bytes: int, bands: int, rows: int) -> list[bytes]:
    """Return the bytes of each band in order.

    Band b consists of the slots from b * rows up to, but without, (b + 1) * rows.
    """
    width = slot_bytes * rows
    return [sketch[start : start + width] for start in range(0, bands * width, width)]


def hit_probability(similarity: float, bands: int, rows: int) -> float:
    """Return the probability in [0, 1] that two sketches share a band.

    At resemblance s this is 1 - (1 - s^rows)^bands: the S-curve of Broder (1998) and of Leskovec, Rajaraman and
    Ullman, Mining of Massive Datasets, section 3.4.2.
    """
    return 1.0 - (1.0 - similarity**rows) ** bands
