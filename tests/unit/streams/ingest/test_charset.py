"""The charset of bytes: declared, declared wrongly, or not at all."""
# ruff: noqa: RUF001 - texts in other scripts

import time

import pytest

from nearstream.streams.ingest.charset import charset_named, decode

# Texts of one meaning, with the charsets in which they are sent.
TEXTS = {
    "cp1252 iso8859-15": "Das Hafenamt schließt am Dienstag sein nördliches Tor, weil der Kran ein Seil benötigt.",
    "cp1252": "La oficina del puerto cerrará su puerta norte el martes porque la grúa necesita un cable nuevo.",
    "cp1250 iso8859-2": "Biuro portu zamknie we wtorek bramę północną, ponieważ dźwig potrzebuje nowej liny.",
    "cp1251 koi8-r iso8859-5 cp866 mac-cyrillic": "Северные ворота порта будут закрыты во вторник из-за замены "
    "троса, поэтому грузовики едут по восточному пандусу.",
    "cp1253 iso8859-7": "Το γραφείο του λιμανιού θα κλείσει τη βόρεια πύλη την Τρίτη γιατί χρειάζεται νέο σχοινί.",
    "cp1254": "Liman müdürlüğü salı günü kuzey kapısını kapatacak çünkü vincin yeni bir halata ihtiyacı var.",
    "cp1255": "משרד הנמל יסגור את השער הצפוני ביום שלישי כי העגורן זקוק לכבל חדש. המשאיות ייסעו ברמפה המזרחית.",
    "cp1256": "سيغلق مكتب الميناء بوابته الشمالية يوم الثلاثاء لأن الرافعة تحتاج إلى حبل جديد.",
    "cp874": "สำนักงานท่าเรือจะปิดประตูทิศเหนือในวันอังคารเพราะปั้นจั่นต้องใช้สายเคเบิลใหม่",
    "cp932 euc_jp": "港湾事務所は火曜日に北門を閉鎖します。クレーンに新しいケーブルが必要なためです。",
    "cp949": "항만 사무소는 화요일에 북문을 폐쇄합니다. 크레인에 새 케이블이 필요하기 때문입니다.",
    "gb18030": "港务局将于星期二关闭北门，因为起重机需要更换新的钢缆。卡车应走东侧坡道。",
    "big5": "港務局將於星期二關閉北門，因為起重機需要更換新的鋼纜。卡車應走東側坡道。",
}
SENT = [(encoding, text) for encodings, text in TEXTS.items() for encoding in encodings.split()]
RUSSIAN = TEXTS["cp1251 koi8-r iso8859-5 cp866 mac-cyrillic"]


@pytest.mark.parametrize(("encoding", "text"), SENT, ids=[encoding for encoding, _ in SENT])
def test_a_text_is_read_whatever_charset_it_is_said_to_have(encoding: str, text: str) -> None:
    for label in ("", "us-ascii", "utf-8", "x-unknown", "iso-8859-1", "gb2312", "shift_jis"):
        assert decode(text.encode(encoding), [label]) == (text, False), label
        assert decode(text.encode(), [label]) == (text, False), label
    words = text[20:44]  # a true declaration is believed for a few words
    assert decode(words.encode(encoding), [encoding]) == (words, False)


@pytest.mark.parametrize(
    ("label", "encoding", "text"),
    [
        ("GB2312", "gbk", "朱镕基总理"),
        ("gb_2312-80", "gb18030", "㐂㐃港务局"),
        ("shift_jis", "cp932", "髙島屋①㈱"),
        ("euc-kr", "cp949", "똠방각하 펲시콜라"),
        ("big5", "big5hkscs", "喺度嘅嘢"),
        ("iso-8859-1", "cp1252", "“Grüße” – 5 €"),
        ("iso-8859-9", "cp1254", "Liman müdürlüğü – “kuzey” kapısı"),
        ("iso-8859-8-i", "iso8859-8", "משרד הנמל יסגור את השער"),
        ("tis-620", "cp874", "สำนักงาน“ท่าเรือ”"),
        ("koi8-ru", "koi8-u", "Північні ворота порту"),
        ("hz-gb-2312", "hz", "港务局将于星期二"),
        (' "KOI8-R" ', "koi8-r", "Северные ворота порта"),
    ],
)
def test_a_label_means_the_charset_that_is_sent_under_it(label: str, encoding: str, text: str) -> None:
    assert decode(text.encode(encoding), [label]) == (text, False)


POLISH, UKRAINIAN = TEXTS["cp1250 iso8859-2"], "Північні ворота порту будуть зачинені."


@pytest.mark.parametrize(
    ("label", "data", "text"),
    [
        ("", b'(format t "~{~A~}" x) ~{12~}', '(format t "~{~A~}" x) ~{12~}'),
        ("koi8-r", UKRAINIAN.encode("koi8-u"), UKRAINIAN),
        ("iso-8859-2", (POLISH + " Środa, źdźbło, taśma.").encode("cp1250"), POLISH + " Środa, źdźbło, taśma."),
        (
            "",
            "Laughs 😀 and 🎉, naïve".encode("utf-16", "surrogatepass").decode("utf-16").encode(),
            "Laughs 😀 and 🎉, naïve",
        ),
        ("utf-8", b"Laughs \xed\xa0\xbd\xed\xb8\x80", "Laughs 😀"),
    ],
)
def test_what_is_commonly_sent_under_another_label_is_read(label: str, data: bytes, text: str) -> None:
    assert decode(data, [label]) == (text, False)


def test_a_declaration_is_believed_against_letters_of_other_scripts_among_latin_ones() -> None:
    for text in (
        "mardi à",
        "José vocal ™ ™ minority of … users has also",
        "import ©2020 of 1ª ¿qué? module 1ª Locating:",
    ):
        for label in ("iso-8859-1", "windows-1252"):
            assert decode(text.encode("cp1252"), [label]) == (text, False)


@pytest.mark.parametrize("label", ["iso-2022-jp", "us-ascii", "utf-8", "", "iso-8859-1"])
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'\x1b$B$"-!$"|b\x1b(B b', "あ①あ髙 b"),
        (b"\x1b$@4A;z\x1b(J 1", "漢字 1"),
        (b"\x1b(I1234\x1b(B x", "ｱｲｳｴ x"),
        (b"\x1b$(D0!\x1b(B", "丂"),
    ],
)
def test_escapes_of_japanese_are_read_under_any_label(data: bytes, text: str, label: str) -> None:
    assert decode(data, [label]) == (text, False)


def test_characters_beside_a_charset_are_read_too() -> None:
    assert decode(b"\xad\xa1\xb4\xc1\xbb\xfa\xfc\xe2" * 4, ["euc-jp"]) == ("①漢字髙" * 4, False)
    assert decode("港务局 ".encode("gbk") + b"5\x80", ["gbk"]) == ("港务局 5€", False)
    assert decode(TEXTS["big5"].encode("big5") + b"\xa3\xe1", ["big5"]) == (TEXTS["big5"] + "€", False)


@pytest.mark.parametrize(
    ("label", "data"),
    [
        ("", b"\xc9\xcd\xcd\xbb Men\x81 of the day, and more words in plain English"),
        ("", (RUSSIAN + "\n").encode() + RUSSIAN.encode("cp1251")),
        ("windows-1251", (RUSSIAN + "\n").encode() + RUSSIAN.encode("cp1251")),
        ("utf-8", b"caf\xe9"),
        ("gb2312", TEXTS["gb18030"].encode("gb18030") + b"\xff a"),
        ("iso-2022-jp", b"\x1b$)A\x0e4A;z\x0f"),
        ("iso-2022-jp", b"\x1b$Bodd|\x7f\x1b(B"),
        ("iso-2022-jp", b"\x1b(Znever"),
    ],
    ids=["controls", "two", "two and a wrong name", "weak guess", "one wrong byte", "chinese", "damaged", "unknown"],
)
def test_what_cannot_surely_be_read_is_said(label: str, data: bytes) -> None:
    assert decode(data, [label]).is_replaced


def test_colours_of_a_terminal_are_no_escapes_of_a_charset() -> None:
    assert decode("\x1b[31mrot über".encode(), ["utf-8"]) == ("\x1b[31mrot über", False)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_one_wrong_byte_costs_one_character(text: str) -> None:
    wrong = (text + " ").encode() * 2 + b"\xff" + text.encode()
    cut = text.encode()[:-1] if not text.endswith((".", "。")) else (text + "é").encode()[:-1]
    for label in ("utf-8", "", "iso-8859-1", "koi8-r"):
        assert decode(wrong, [label]) == ((text + " ") * 2 + "\ufffd" + text, True), label
        assert decode(cut, [label]).text.rstrip("\ufffd") == text[: len(text) - (not text.endswith((".", "。")))]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"])
@pytest.mark.parametrize("label", ["", "utf-8", "utf-16", "iso-8859-1"])
def test_wide_characters_are_found_by_their_mark_or_their_zeros(encoding: str, label: str) -> None:
    text = TEXTS["cp1252"] + " " + TEXTS["cp1250 iso8859-2"]
    assert decode(text.encode(encoding), [label]) == (text, False)


def test_the_first_declaration_that_fits_counts() -> None:
    data = RUSSIAN.encode("cp1251")
    assert decode(data, ["nosuch", "windows-1251", "koi8-r"]) == (RUSSIAN, False)


@pytest.mark.parametrize("label", ["base64", "rot13", "idna", "punycode", "undefined", "unicode_escape", "hex", "mbcs"])
def test_what_is_no_charset_has_no_name(label: str) -> None:
    assert charset_named(label) is None


def test_the_text_is_found_behind_much_markup() -> None:
    page = "<style>" + "a { color: red }\n" * 20_000 + "</style>" + RUSSIAN
    assert decode(page.encode("koi8-r")) == (page, False)


@pytest.mark.parametrize("data", [b"\xe9", b"\xe4\xb8", b"\x80\xff", bytes(range(128, 256)), b"\x1b$B\xff"])
@pytest.mark.parametrize("label", ["", "gb2312", "iso-2022-jp"])
def test_no_bytes_take_long(data: bytes, label: str) -> None:
    decode(data * 10, [label])  # which loads the detector
    began = time.process_time()
    decode(data * (4_000_000 // len(data)), [label])
    assert time.process_time() - began < 2
