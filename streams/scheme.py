"""Every number that shapes a signature or an index key, under one derived name."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace as replace_fields

from schemas.codec import InvalidMessageError
from schemas.dead_letter import Reason
from schemas.signature import Signature
from streams.banding import MAX_BANDS, band_values
from streams.faults import fault
from streams.hashing import HashKey
from streams.ld import kept_symbols
from streams.minhash import kept_sketch
from streams.rules import AnchorRules, BandRules, LdRules, NoiseRules, SketchRules, TextRules

SPEC = 1  # raised when an algorithm changes; a changed number changes the name by itself
UNICODE = 14
_KEY_BYTES = 8
_FORMER_NUMBER = "sketch.kept_bits=8"  # of the index, not of signatures; names go on as they were


@dataclass(frozen=True)
class Keys:
    """Index keys of a signature by kind, 8 bytes each, each once."""

    digest: bytes
    lineage: bytes | None
    bands: tuple[bytes, ...]
    anchors: tuple[bytes, ...]


@dataclass(frozen=True)
class Scheme:
    """How texts become signatures and signatures index keys; two schemes never meet.

    Raises:
        ValueError: The sketch is too narrow or too short for the bands.
    """

    label: str
    key_fingerprint: str
    text: TextRules = field(default_factory=TextRules)
    sketch: SketchRules = field(default_factory=SketchRules)
    ld: LdRules | None = field(default_factory=LdRules)
    anchors: AnchorRules | None = field(default_factory=AnchorRules)
    noise: NoiseRules | None = None
    bands: BandRules = field(default_factory=BandRules)
    spec: int = SPEC
    unicode: int = UNICODE

    def __post_init__(self) -> None:
        """Refuses sketches that give too few slots, or too many chance hits, for their bands."""
        bands, rows = self.bands.bands, self.bands.rows
        if not (1 <= bands <= MAX_BANDS and rows >= 1 and bands * rows <= self.sketch.slots):
            raise ValueError(f"at most {self.sketch.slots} slots and {MAX_BANDS} bands expected, not {bands} x {rows}")
        if self.sketch.bits not in (8, 16, 32):
            raise ValueError(f"slots of 8, 16 or 32 bits expected with bands, not {self.sketch.bits}")

    @cached_property
    def name(self) -> str:
        """Label, specification, Unicode version, key fingerprint, hash of all numbers."""
        lines = "\n".join(sorted((*_lines(asdict(self)), _FORMER_NUMBER)))
        digest = blake2b(lines.encode(), digest_size=4).hexdigest()
        return f"{self.label}-{self.spec}-u{self.unicode}-k{self.key_fingerprint}-{digest}"

    def keys(self, signature: Signature, key: HashKey) -> Keys:
        """The index keys of a whole signature; scheme and collection salt them all.

        Raises:
            ValueError: The normal form is empty, the signature belongs to another scheme or is one as the index
                keeps it, or the key is another one.
        """
        self._expect_whole(signature, key)
        salt = self._salt + _sized(signature.collection.encode())

        def one(kind: bytes, value: bytes) -> bytes:
            return key.small_key(salt + kind + value)[:_KEY_BYTES]

        def each(kind: bytes, values: bytes, width: int) -> tuple[bytes, ...]:
            return tuple(dict.fromkeys([made[:_KEY_BYTES] for made in key.small_keys(salt + kind, values, width)]))

        bands: tuple[bytes, ...] = ()
        anchors: tuple[bytes, ...] = ()
        if self._long_enough(signature):
            values = band_values(signature.sketch, self.sketch.bits // 8, self.bands.bands, self.bands.rows)
            numbered = b"".join([bytes((index,)) + value for index, value in enumerate(values)])
            bands = each(b"b", numbered, 1 + len(values[0])) if signature.shingles else ()
            anchors = each(b"a\0", signature.anchors, 8)
        lineage = signature.lineage
        return Keys(
            digest=one(b"x\0", signature.digest),
            lineage=None if lineage is None else one(b"l\0", lineage.encode("utf-8", "surrogatepass")),
            bands=bands,
            anchors=anchors,
        )

    @cached_property
    def _salt(self) -> bytes:
        return blake2b(self.name.encode(), digest_size=16).digest()

    def kept(self, signature: Signature) -> Signature:
        """The signature as an index record keeps it: what estimates read, and whom it is of."""
        sketch, ld = kept_sketch(signature.sketch), kept_symbols(signature)
        return replace_fields(signature, raw_digest=signature.digest, sketch=sketch, ld=ld, anchors=b"")

    def check(self, signature: Signature) -> None:
        """Looks into the byte fields of a signature that came from outside.

        Raises:
            InvalidMessageError: `other_scheme`, or `invalid_signature` with what was expected.
        """
        if signature.scheme != self.name:
            raise InvalidMessageError(Reason.OTHER_SCHEME, f"scheme {self.name} expected")
        detail = fault(signature, self.sketch, self.ld, self.anchors, self.noise)
        if detail:
            raise InvalidMessageError(Reason.INVALID_SIGNATURE, detail)

    def _expect_whole(self, signature: Signature, key: HashKey) -> None:
        if key.fingerprint != self.key_fingerprint:
            raise ValueError(f"the key {self.key_fingerprint} expected, not {key.fingerprint}")
        if signature.scheme != self.name:
            raise ValueError(f"a signature of {self.name} expected, not of {signature.scheme}")
        if signature.n_bytes == 0:
            raise ValueError("an empty normal form has no keys")
        if len(signature.sketch) * 8 != self.sketch.slots * self.sketch.bits:
            raise ValueError(f"a sketch of {self.sketch.slots} x {self.sketch.bits} bits expected")

    def _long_enough(self, signature: Signature) -> bool:
        if signature.spaceless:
            return signature.n_bytes >= self.bands.min_spaceless_bytes
        return signature.words >= self.bands.min_words


_COMPACT_LD = LdRules(rates=(16, 32, 64, 128), symbol_bits=16, gap_bits=0, gap_steps=8, max_symbols=1_024)
_PRESETS: dict[str, dict[str, Any]] = {  # Any: fields of Scheme, of one type each
    "standard": {},
    "compact": {"sketch": SketchRules(bits=8), "ld": _COMPACT_LD, "anchors": AnchorRules(run=64)},
    "bands-only": {"ld": None, "anchors": None},
    "dense": {"anchors": AnchorRules(dense_below=400)},
    "noise": {"noise": NoiseRules()},
}
LABELS = tuple(_PRESETS)
DEFAULT_LABEL = "dense"
_LATER = {"dense_below", "noise"}


def preset(label: str, key: HashKey, bands: int | None = None, rows: int | None = None) -> Scheme:
    """The scheme of this label, for this key.

    Args:
        label: `standard`, `dense` (the same, with more anchors in short texts: the default), `compact` (under half
            the bytes), `bands-only` (exact and near-duplicates only) or `noise` (`standard`, with keys that survive
            replaced characters).
        key: The deployment's key; only its fingerprint enters the scheme.
        bands: Bands in place of the preset's.
        rows: Rows in place of the preset's.

    Raises:
        ValueError: The label is unknown, or the sketch has too few slots for the bands.
    """
    if label not in _PRESETS:
        raise ValueError(f"scheme: one of {', '.join(_PRESETS)} expected, not {label!r}")
    scheme = Scheme(label=label, key_fingerprint=key.fingerprint, **_PRESETS[label])
    wanted = {name: value for name, value in (("bands", bands), ("rows", rows)) if value is not None}
    return replace(scheme, bands=replace(scheme.bands, **wanted))


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


def _lines(rules: Mapping[str, object], path: str = "") -> Iterator[str]:
    """`dotted.field=value` of every number; the label is a nickname, later numbers are told unless they are off."""
    for name, value in rules.items():
        if isinstance(value, Mapping):
            yield from _lines(value, f"{path}{name}.")
        elif name != "label" and (name not in _LATER or value):
            yield f"{path}{name}={value}"
