"""Signatures in slow, plain Python, to which every fast path must be equal."""

import unicodedata
from bisect import bisect_right
from hashlib import blake2b

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.unicode14 import NEWER
from nearstream.streams.signing.scheme import Scheme

MASK = (1 << 64) - 1
_STARTS = [first for first, _ in NEWER]
_SPACELESS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip


def is_newer(character: str) -> bool:
    place = bisect_right(_STARTS, ord(character)) - 1
    return place >= 0 and ord(character) <= NEWER[place][1]


def _category(character: str) -> str:
    return unicodedata.category(character)[0]


def normalize_reference(text: str) -> str:
    out, run = [], 0
    for c in text:
        kept = "\ufffd" if "\ud800" <= c <= "\udfff" else " " if is_newer(c) else c
        run = run + 1 if _category(kept) == "M" or kept in "\uff9e\uff9f" else 0
        out.append(" " if run > 30 else kept)
    lowered = [c.lower() if len(c.lower()) == 1 else c for c in unicodedata.normalize("NFKC", "".join(out))]
    words, carried = [], False
    for c in lowered:
        kind = _category(c)
        if kind != "M":
            carried = kind in "LN"
        words.append(c if carried else " ")
    return " ".join("".join(words).split())


def spaceless_reference(form: str) -> bool:
    letters = [ord(c) for c in form if c != " "]
    inside = sum(any(first <= c <= last for first, last in _SPACELESS) for c in letters)
    return bool(letters) and 5 * inside >= len(letters)


def fmix64(x: int) -> int:
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & MASK
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return x ^ x >> 33


def polynomial(values: list[int], base: int) -> int:
    total = 0
    for value in values:
        total = (total * base + value) & MASK
    return total


def sketch_reference(features: set[int]) -> list[int]:
    """Return the sketch of these features, computed one round after another."""
    if not features:
        return [0xFFFFFFFF] * 128
    slots: list[int | None] = [None] * 128
    for r in range(256):
        for x in features:
            g = x if r == 0 else fmix64((x + r * 0x9E3779B97F4A7C15) & MASK)
            place = g >> 57 if r < 128 else r - 128
            value = r << 49 | (g << 7 & MASK) >> 15
            old = slots[place]
            slots[place] = value if old is None else min(old, value)
        if None not in slots:
            break
    return [fmix64(k << 57 | (value or 0)) >> 32 for k, value in enumerate(slots)]


def _leb128(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes((number,))


def ld_reference(data: bytes, key: HashKey, compact: bool) -> tuple[int, bytes, bytes]:
    """Return the rate, the LD signature and the gaps of a text."""
    n = len(data)
    rate = 8 if n < 4096 else 16 if n < 16384 else 32 if n < 65536 else 64
    rate, bits, most = (2 * rate, 16, 1024) if compact else (rate, 19, 2048)
    hashes = []
    for i in range(n - 15):
        x = (key.ld_salt + polynomial([int(key.table[b]) for b in data[i : i + 16]], key.base)) & MASK
        hashes.append((x ^ x >> 32) * 0xD6E8FEB86659FD93 & MASK)
    kept = _sampled(hashes, rate, bits)
    while len(kept) > most:
        rate *= 2
        kept = _sampled(hashes, rate, bits)
    ld, gaps, previous = b"", b"", 0
    for i, symbol in kept:
        if compact:
            unit = rate // 8
            ld += symbol.to_bytes(2, "little")
            gaps += _leb128(i // unit - previous // unit)
        else:
            gap = i - previous
            ld += (symbol << 13 | min(gap, 8191)).to_bytes(4, "little")
            ld += gap.to_bytes(4, "little") if gap >= 8191 else b""
        previous = i
    return rate, ld, gaps


def _sampled(hashes: list[int], rate: int, bits: int) -> list[tuple[int, int]]:
    c, kept, before = rate.bit_length() - 1, [], None
    for i, h in enumerate(hashes):
        if h >> 64 - c == 0:
            symbol = (h << c & MASK) >> 64 - bits
            if symbol != before:
                kept.append((i, symbol))
            before = symbol
    return kept


def sign_reference(text: str, scheme: Scheme, key: HashKey) -> dict[str, object]:
    """Return the fields of a signature that depend on the text.

    This works for the schemes `standard` and `compact`.
    """
    form = normalize_reference(text)
    data, spaceless = form.encode(), spaceless_reference(form)
    table = [int(each) for each in key.table]

    def window(start: int, size: int, salt: int) -> int:
        return fmix64((salt + polynomial([table[b] for b in data[start : start + size]], key.base)) & MASK)

    def words_run(start: int, size: int, salt: int) -> int:
        return fmix64((salt + polynomial(words[start : start + size], key.word_base)) & MASK)

    pieces = [word[i : i + 64] for word in data.split(b" ") for i in range(0, len(word), 64)]
    words = [fmix64(polynomial([table[b] for b in piece], key.base)) for piece in pieces]
    firsts = [i for i, b in enumerate(data) if b & 0xC0 != 0x80]
    shingles = {window(i, 12, key.sketch_salt) for i in firsts if spaceless and i + 12 <= len(data)}
    if not shingles and words:
        size = min(5, len(words))
        shingles = {words_run(i, size, key.sketch_salt) for i in range(len(words) - size + 1)}
    if spaceless:
        windows = [window(i, 40, key.anchor_salt) for i in firsts if i + 40 <= len(data)]
    else:
        windows = [words_run(i, 8, key.anchor_salt) for i in range(len(words) - 7)]
    compact = scheme.label == "compact"
    run = (64 if compact else 32) * (2 if spaceless else 1)
    anchors = _anchors(windows, run)
    while len(anchors) > 512:
        run *= 2
        anchors = _anchors(windows, run)
    rate, ld, gaps = ld_reference(data, key, compact)
    size = 1 if compact else 4
    return {
        "digest": blake2b(data, digest_size=16, key=key.digest_key).digest(),
        "raw_digest": blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=key.digest_key).digest(),
        "n_bytes": len(data),
        "characters": len(form),
        "words": len(words),
        "shingles": len(shingles),
        "spaceless": spaceless,
        "sketch": b"".join(slot.to_bytes(4, "little")[:size] for slot in sketch_reference(shingles)),
        "rate": rate,
        "ld": ld,
        "gaps": gaps,
        "anchors": b"".join(each.to_bytes(8, "little") for each in sorted(anchors)),
    }


def _anchors(windows: list[int], run: int) -> set[int]:
    return {min(windows[i : i + run]) for i in range(max(1, len(windows) - run + 1)) if windows}
