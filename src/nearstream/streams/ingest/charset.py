"""The charset of bytes from outside: what is declared where it fits, else what they look like.

Labels are those of the Encoding Standard (https://encoding.spec.whatwg.org/#names-and-labels), which reads each charset
as the superset that is really sent under its name, and the names that Python knows besides.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from encodings import normalize_encoding
from encodings.aliases import aliases
from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

from w3lib.encoding import DEFAULT_ENCODING_TRANSLATION, read_bom

_LABEL_MAX_CHARACTERS = 64
_SAMPLE_BYTES, _CONTEXT_BYTES = 16 * 1024, 64
# A detected charset is believed against a declared one that fits if it is so much more probable.
_MUCH_MORE = 2
_SURE = 0.1
# So many characters beyond ASCII must be right for each that is wrong, where a charset does not fit all bytes.
_RIGHT_PER_WRONG = 2
# Python decodes these to text. It is asked for no others, because it would remember each unknown name.
_CODECS = frozenset(aliases.values()) - {
    *("ascii", "base64_codec", "bz2_codec", "hex_codec", "mbcs", "quopri_codec", "rot_13", "uu_codec", "zlib_codec")
} | {
    # These have no other names.
    *("cp720", "cp737", "cp856", "cp874", "cp875", "cp1006", "koi8_t", "koi8_u"),
    *("mac_arabic", "mac_croatian", "mac_farsi", "mac_romanian"),
}
_DETECTED_AS = {"euc_jis_2004": "euc_jp", "shift_jis_2004": "cp932"}
# UTF-16 often has no byte order mark, and Ukrainian is often sent as KOI8-R.
_MEANT = {"utf_16": "utf_16_le", "utf_32": "utf_32_le", "koi8-r": "koi8-u", "koi8_r": "koi8-u"}
# These are ASCII in which some characters begin what stands for others.
_SEVEN_BITS = frozenset({"hz", "utf-7"})
_WIDE = frozenset({"utf-16-be", "utf-16-le", "utf-32-be", "utf-32-le"})
_NO_ASCII = re.compile(rb"[\x00\x80-\xff]")
# The detector would believe what a page or a script says of itself.
_DECLARATION = re.compile(rb"charset|coding", re.IGNORECASE)
_SURROGATES = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")  # of CESU-8, as Java writes it
_CONTROLS = re.compile("[\x80-\x84\x86-\x9f]")  # which no text has
_OTHER_LETTERS = re.compile("([A-Za-z]?)([\u0370-\u06ff]+)([A-Za-z]?)")
_DESIGNATION = re.compile(rb"\x1b[$(]")
REPLACEMENT = "\ufffd"
# Of these charsets Python knows less than is sent. To mend a character takes a microsecond.
_EXTENDED = frozenset({"big5hkscs", "euc_jp", "gb18030", "iso2022_jp_ext"})
_MENDED_MAX = 20_000
_BLOCK_BYTES = 256 * 1024  # which a codec decodes while all other threads wait
_ERRORS = "nearstream.supersets"


class Decoded(NamedTuple):
    """Decoded bytes."""

    text: str  # their text
    # It has replacement characters, or control characters of its charset or much UTF-8 speak against the charset, or
    # nothing but a weak guess speaks for it.
    is_replaced: bool


@lru_cache(maxsize=256)
def charset_named(label: str) -> str | None:
    """Return Python's name of the charset that is meant by a label.

    It is the superset that is sent under the label, such as `gb18030` for `gb2312`. None if the label is unknown, or
    means US-ASCII, which says nothing of the bytes beyond it.
    """
    label = label.strip(" \t\r\n\f'\"")[:_LABEL_MAX_CHARACTERS]
    name = normalize_encoding(label).lower() if label.isascii() else ""
    name = aliases.get(name, name)
    if name == "ascii":
        return None
    name = _standard_charsets().get(label.lower()) or (name if name in _CODECS else "")
    name = DEFAULT_ENCODING_TRANSLATION.get(name, _MEANT.get(name, name))
    if name.startswith("iso2022_jp"):
        return "iso2022_jp_ext"
    return codecs.lookup(name).name if name else None


@lru_cache(maxsize=1)
def _standard_charsets() -> dict[str, str]:
    """Return Python's names of charsets by the labels of the Encoding Standard."""
    # Not each command that can read a text needs them.
    from webencodings import lookup
    from webencodings.labels import LABELS

    found = {label: lookup(label).codec_info.name for label in LABELS}
    return {label: name for label, name in found.items() if name not in ("replacement", "x-user-defined")}


def decode(data: bytes, labels: Iterable[str] = ()) -> Decoded:
    """Decode bytes whose charset is declared, perhaps wrongly, or not at all.

    The charset is that of the byte order mark, else UTF-8 if the bytes are valid UTF-8, whatever is declared, because a
    text in another charset is hardly ever valid UTF-8. Escape sequences of ISO-2022 go before both, since they are
    ASCII. Else it is the first declared charset that fits nearly all bytes, unless the detector is much more sure of
    another one, and else the detected one. The most credible of the declared charsets comes first. Unknown ones are
    passed over.
    """
    declared = [charset for label in labels if (charset := charset_named(label))]
    mark_charset, mark = read_bom(data)
    if mark_charset is not None and mark is not None:
        return _decoded(data[len(mark) :], mark_charset)
    if b"\0" in data:
        wide = next((charset for charset, _ in _detected(data) if charset in _WIDE), None)
        if wide is not None:
            return _decoded(data, wide)
    if _DESIGNATION.search(data):
        return _escaped(data)
    if data.isascii():
        charset = next((charset for charset in declared if charset in _SEVEN_BITS), "utf-8")
        return _decoded(data, charset)
    try:
        return Decoded(text := data.decode(), REPLACEMENT in text)
    except UnicodeDecodeError:
        return _of_eight_bits(_SURROGATES.sub(_one_character, data), declared)


def _one_character(surrogates: re.Match[bytes]) -> bytes:
    return surrogates[0].decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16").encode()


def _of_eight_bits(data: bytes, declared: list[str]) -> Decoded:
    detected = list(_detected(data))
    scores = dict(reversed(detected))
    detectable = {charset_named(label) for label in _standard_charsets()}
    surest = max((score for charset, score in detected if charset in detectable), default=0.0)
    in_utf8 = _decoded(data, "utf-8").text
    if _is_near(in_utf8, 1 if "utf-8" in declared else _RIGHT_PER_WRONG):
        return Decoded(in_utf8, REPLACEMENT in in_utf8)
    is_mixed = _is_near(in_utf8, 1 / _RIGHT_PER_WRONG)  # much of the text is UTF-8, and is not read as that
    for charset in declared:
        found = _decoded(data, charset)
        has_controls = _CONTROLS.search(found.text) is not None
        much_more = 1 if has_controls else _MUCH_MORE
        is_refuted = surest >= _SURE and charset in detectable and scores.get(charset, 0.0) * much_more < surest
        if not is_refuted and _is_near(found.text, _RIGHT_PER_WRONG):
            return found._replace(is_replaced=found.is_replaced or is_mixed or has_controls)
    for charset, score in detected:
        if score >= _SURE and not (found := _decoded(data, charset)).is_replaced:
            return found._replace(is_replaced=is_mixed or _CONTROLS.search(found.text) is not None)
    return Decoded(
        _decoded(data, next((charset for charset in declared if not charset.startswith("utf-")), "cp1252")).text, True
    )


def _is_near(text: str, right_per_wrong: float) -> bool:
    """Return whether a text has few replacement characters for its characters beyond ASCII."""
    wrong = text.count(REPLACEMENT)
    if not wrong:
        return True
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return beyond_ascii - wrong >= right_per_wrong * wrong


def _detected(data: bytes) -> Iterator[tuple[str, float]]:
    """Yield the charsets that bytes may have, each with its probability, the most probable first."""
    # It is needed for few texts, and its models take long to load.
    from chardet import EncodingEra, detect_all

    first = _NO_ASCII.search(data)
    eras = EncodingEra.MODERN_WEB | EncodingEra.LEGACY_ISO | EncodingEra.LEGACY_MAC | EncodingEra.DOS
    sample = data[max(0, first.start() - _CONTEXT_BYTES) :][:_SAMPLE_BYTES] if first else data[:_SAMPLE_BYTES]
    sample = _DECLARATION.sub(b"", sample)
    for found in detect_all(sample, ignore_threshold=True, encoding_era=eras, compat_names=False):
        name = found["encoding"]
        charset = charset_named(_DETECTED_AS.get(name, name)) if name else None
        if charset is not None and not _is_among_latin(_replaced(sample, charset)):
            yield charset, found["confidence"]


def _is_among_latin(text: str) -> bool:
    """Return whether most Greek to Arabic letters stand alone or in Latin words, as in no text of these languages."""
    runs = _OTHER_LETTERS.findall(text)
    return 2 * sum(len(letters) == 1 or bool(before or after) for before, letters, after in runs) > len(runs)


def _escaped(data: bytes) -> Decoded:
    """Decode ISO-2022, of which escape sequences remain if it cannot be read."""
    found = _decoded(data, "iso2022_kr" if b"\x1b$)C" in data else "iso2022_jp_ext")
    return Decoded(found.text, found.is_replaced or "\x1b" in found.text)


def _decoded(data: bytes, charset: str) -> Decoded:
    text = _replaced(data, charset)
    if charset in _EXTENDED and 0 < text.count(REPLACEMENT) <= _MENDED_MAX:
        text = _in_blocks(data, charset, _ERRORS)
    return Decoded(text, REPLACEMENT in text)


def _replaced(data: bytes, charset: str) -> str:
    """Decode bytes, and replace those that stand for nothing.

    To look up each of them would take a fifth of a microsecond.
    """
    table = _table(charset)
    return _in_blocks(data, charset, "replace") if table is None else codecs.charmap_decode(data, "strict", table)[0]


@lru_cache(maxsize=256)
def _table(charset: str) -> str | None:
    """Return what each byte stands for, None where it depends on the bytes around."""
    table = getattr(import_module(f"encodings.{normalize_encoding(charset)}"), "decoding_table", None)
    return table.replace("\ufffe", REPLACEMENT).ljust(256, REPLACEMENT) if isinstance(table, str) else None


def _in_blocks(data: bytes, charset: str, errors: str) -> str:
    """Decode bytes block by block, so that other threads run between blocks."""
    if len(data) <= _BLOCK_BYTES or not charset.startswith("utf-"):  # the others are fast whatever they meet
        return data.decode(charset, errors)
    decoder = codecs.getincrementaldecoder(charset)(errors)
    blocks = (data[start : start + _BLOCK_BYTES] for start in range(0, len(data), _BLOCK_BYTES))
    return "".join([*map(decoder.decode, blocks), decoder.decode(b"", final=True)])


def _of_superset(error: UnicodeError) -> tuple[str, int]:
    """Return a character that Python has only in a charset beside the one that it decodes, and where it ends."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    if error.encoding == "gb18030" and pair[:1] == b"\x80":
        return "\u20ac", error.start + 1
    try:
        if error.encoding in ("euc_jp", "iso2022_jp_ext"):
            return _shifted(pair).decode("cp932"), error.start + 2
        if error.encoding == "big5hkscs":
            return pair.decode("cp950"), error.start + 2
    except ValueError:
        pass
    return REPLACEMENT, error.end


def _shifted(pair: bytes) -> bytes:
    """Return row and cell of a character (JIS X 0208) as two bytes of Shift JIS."""
    row, cell = (byte & 0x7F for byte in pair)
    if not (0x21 <= row <= 0x7E and 0x21 <= cell <= 0x7E):
        raise ValueError("expected a row and a cell from 1 to 94")
    lead = (row + 1) // 2 + (0x70 if row < 0x5F else 0xB0)
    return bytes((lead, cell + (0x1F + (cell >= 0x60) if row % 2 else 0x7E)))


codecs.register_error(_ERRORS, _of_superset)
