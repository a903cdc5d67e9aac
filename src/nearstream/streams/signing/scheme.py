"""Schemes: every number that shapes a signature or an index key.

The name of a scheme is derived from its numbers. This page also has the presets, and the bands of a sketch, which
become index keys.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from msgspec.structs import replace as replace_fields
from numpy.typing import NDArray

from nearstream.schemas.documents.document import ADDRESS_BYTES, ATTACHMENTS_LABEL, ATTACHMENTS_UNREAD
from nearstream.schemas.documents.signature import VERSION_BYTES, Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import DIGEST_BYTES, HashKey
from nearstream.streams.fingerprints.parameters import DEFAULT_LABEL as DEFAULT_LABEL
from nearstream.streams.fingerprints.parameters import (
    GAP_BITS,
    GAP_STEPS,
    ITEM_WORDS,
    KEPT_SLOT_BITS,
    KEPT_SYMBOL_BITS,
    SLOTS,
    SPLIT_SYMBOL_BITS,
    WINDOW_RULES,
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
        stored = SPLIT_SYMBOL_BITS if signature.gaps else WORD_SYMBOL_BITS
        sketch, ld = kept_sketch(signature.sketch), kept_symbols(signature.ld, stored)
        raw_digest = signature.raw_digest[:VERSION_BYTES]
        return replace_fields(signature, raw_digest=raw_digest, sketch=sketch, ld=ld, anchors=b"", windows=b"")

    def check(self, signature: Signature) -> None:
        """Check the byte fields of a signature that another process made.

        Raises:
            InvalidMessageError: `other_scheme`, or `invalid_signature` with the field and what was expected of it.
        """
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


def kept_sketch(sketch: bytes) -> bytes:
    """Return the low 4 bits of each slot of a sketch.

    A byte holds two slots. This is b-bit minwise hashing (Li and Koenig, WWW 2010).
    """
    if len(sketch) == SLOTS * KEPT_SLOT_BITS // 8:
        return sketch
    slots = np.frombuffer(sketch, np.uint8)[:: len(sketch) // SLOTS] & 15
    kept: bytes = (slots[::2] | slots[1::2] << 4).tobytes()
    return kept


def kept_symbols(ld: bytes, stored: int) -> bytes:
    """Return LD symbols with zeros for the bits that an index does not keep.

    As in a float, these are some bits of each symbol from its first one bit on, so a symbol has all of them at any
    rate. A long gap has a word of its own, which loses nothing: it starts with zeros, because no text is that long.
    """
    masks = _masks(stored)
    words = np.frombuffer(ld, masks.dtype)
    kept: bytes = (words & masks[words >> (8 * masks.itemsize + 1 - masks.size.bit_length())]).tobytes()
    return kept


@cache
def _masks(stored: int) -> NDArray[np.uint32]:
    """Return masks of kept bits, by the bits above those that every symbol keeps."""
    kind, gap_bits = (np.dtype("<u2"), 0) if stored == SPLIT_SYMBOL_BITS else (np.dtype("<u4"), GAP_BITS)
    tops = range(1 << stored - KEPT_SYMBOL_BITS[stored])
    return np.array([~((1 << top.bit_length()) - 1 << gap_bits) for top in tops]).astype(kind)


def hit_probability(similarity: float, bands: int, rows: int) -> float:
    """Return the probability in [0, 1] that two sketches share a band.

    At resemblance s this is 1 - (1 - s^rows)^bands: the S-curve of Broder (1998) and of Leskovec, Rajaraman and
    Ullman, Mining of Massive Datasets, section 3.4.2.
    """
    return 1.0 - (1.0 - similarity**rows) ** bands


_LARGEST_RATE = 1 << 30
_VARINT_BYTES = 6  # 42 bits
_ESCAPE = (1 << GAP_BITS) - 1  # in place of a gap that follows in a word of its own
_LARGEST_FORM = 1 << 30  # bytes, far beyond every limit of texts


def invalid_field(
    signature: Signature,
    sketch: SketchRules,
    ld: LdRules,
    anchors: AnchorRules,
    noise: NoiseRules | None,
    sampled: SampledRules | None,
) -> str:
    """Return the first invalid field with what was expected of it.

    The result is an empty string if all fields are valid. It never contains a value of the signature.
    """
    if not len(signature.digest) == len(signature.raw_digest) == DIGEST_BYTES:
        return f"digest, raw_digest: {DIGEST_BYTES} bytes expected"
    if len(signature.sender) not in (0, ADDRESS_BYTES) or len(signature.recipients) % ADDRESS_BYTES:
        return f"sender, recipients: {ADDRESS_BYTES} bytes expected for each address"
    size = sketch.slots * sketch.bits // 8
    if len(signature.sketch) != size:
        return f"sketch: {size} bytes expected"
    most = anchors.max_anchors + (noise.max_keys if noise else 0)
    most += sampled.max_keys if sampled else 0
    return _invalid_ld(signature, ld) or _invalid_anchors(signature, most) or _invalid_sizes(signature)


def _invalid_ld(signature: Signature, rules: LdRules) -> str:
    first = rules.first_rate(signature.n_bytes)
    rate = signature.rate
    if rate & (rate - 1) or not first <= rate <= _LARGEST_RATE:
        return f"rate: a power of two from {first} expected"
    try:
        symbols, end = _symbols_and_end(signature, rules)
    except ValueError as error:
        return f"ld, gaps: {error}"
    if symbols > rules.max_symbols:
        return f"ld: at most {rules.max_symbols} symbols expected"
    # A symbol represents a complete window, so the last window must end inside the text.
    if symbols and not 0 <= end <= signature.n_bytes - rules.window_bytes:
        return "ld, gaps: positions inside the text expected"
    return ""


def _symbols_and_end(signature: Signature, rules: LdRules) -> tuple[int, int]:
    """Return the number of symbols, and the position of the last one in bytes."""
    if rules.gap_bits:
        if signature.gaps:
            raise ValueError("gaps packed with their symbols expected")
        return _words_end(signature.ld)
    gaps = _varints(signature.gaps)
    if len(signature.ld) != 2 * len(gaps):
        raise ValueError("2 bytes and one gap for each symbol expected")
    unit = signature.rate // rules.gap_steps
    return len(gaps), sum(gaps) * unit


def _words_end(ld: bytes) -> tuple[int, int]:
    if len(ld) % 4:
        raise ValueError("expected a multiple of 4 bytes")
    words = np.frombuffer(ld, "<u4")
    gaps = words & _ESCAPE
    if not np.any(gaps == _ESCAPE):
        return gaps.size, int(gaps.sum())
    symbols, end, rest = 0, 0, iter(words.tolist())
    for word in rest:
        gap = word & _ESCAPE if word & _ESCAPE < _ESCAPE else next(rest, -1)
        if gap < 0:
            raise ValueError("expected a gap after the last escape")
        symbols, end = symbols + 1, end + gap
    return symbols, end


def _varints(packed: bytes) -> list[int]:
    """Return numbers in unsigned LEB128, each with at most 6 bytes."""
    numbers, number, bits = [], 0, 0
    for byte in packed:
        number |= (byte & 0x7F) << bits
        bits += 7
        if byte < 0x80:
            numbers.append(number)
            number = bits = 0
        elif bits == 7 * _VARINT_BYTES:
            raise ValueError(f"expected numbers of at most {_VARINT_BYTES} bytes")
    if bits:
        raise ValueError("expected the last byte of the last number")
    return numbers


def _invalid_anchors(signature: Signature, most: int) -> str:
    fields = ("anchors", signature.anchors, most), ("windows", signature.windows, WINDOW_RULES.max_anchors)
    for name, packed, limit in fields:
        if len(packed) % 8 or len(packed) > 8 * limit:
            return f"{name}: at most {limit} values of 8 bytes expected"
        values = np.frombuffer(packed, "<u8")
        if not np.all(values[1:] > values[:-1]):
            return f"{name}: distinct values in ascending order expected"
    return ""


def _invalid_sizes(signature: Signature) -> str:
    n_bytes, characters = signature.n_bytes, signature.characters
    words, shingles = signature.words, signature.shingles
    if not any((n_bytes, characters, words, shingles)):
        return ""
    if not characters <= n_bytes <= min(4 * characters, _LARGEST_FORM):
        return "n_bytes, characters: 1 to 4 bytes expected for each character, as in UTF-8"
    if not (0 < words <= characters and 0 < shingles <= characters):
        return "words, shingles: at least one expected, and at most as many as characters"
    return ""
