"""Split legal notices and signature blocks from the text of a mail."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import NamedTuple


class Phrases(NamedTuple):
    """The phrases of one language."""

    source: str  # a page that shows such notices
    hints: tuple[str, ...]  # beginnings of words, one of which is in each phrase
    phrases: tuple[str, ...]  # what notices say


_EN = "(?:(?:electronic )?(?:e mail|email|mail|message|communication)|(?:e mail |electronic mail )?transmission)"
_DE = "(?:e mail|email|mail|nachricht)"
_ES = "(?:mensaje|correo|correo electrónico|comunicación|e mail|email)"
_FR = "(?:message|courriel|mail|e mail|email|courrier électronique)"
_IT = "(?:messaggio|e mail|email|comunicazione)"
_NL = "(?:e mail|email|bericht|e mailbericht|emailbericht|mail)"
_PT = "(?:mensagem|e mail|email|comunicação)"

PHRASES: dict[str, Phrases] = {
    "English": Phrases(
        "https://courstechnologie.com/do-those-email-confidentiality-disclaimers-really-mean-1847294009",
        (
            *("recipient", "addressee", "in error", "by mistake", "attach", "confiden", "privileged", "prohibited"),
            *("environment", "solely", "not necessarily", "from outside", "registered", "authorised", "registration"),
        ),
        (
            "not (?:the|an) (?:intended|named|designated) (?:recipient|addressee)",
            "use of the (?:intended |named )?(?:recipient|addressee)",
            "solely for the (?:use|attention) of",
            f"received? (?:this|the) {_EN} (?:in error|by mistake)",
            "received? (?:it|this) (?:in error|by mistake)",
            f"this {_EN} (?:and|including|or|together with) (?:any|all|its) (?:attach|file)",
            f"this {_EN}(?: \\w+){{0,3}} (?:is|may be|contains?)(?: \\w+){{0,2}} (?:confidential|privileged)",
            "privileged and(?: or)? confidential (?:information|material)",
            "confidential and(?: or)?(?: legally)? privileged",
            f"information (?:contained )?in this {_EN}(?: \\w+){{0,4}} (?:is|are|may be) (?:confidential|privileged)",
            "(?:copying|distribution|dissemination)(?: \\w+){0,8} (?:is|are) (?:strictly )?prohibited",
            "environment before (?:printing|you print)",
            "(?:views|opinions)(?: \\w+){0,6} (?:solely those of|not necessarily (?:represent|reflect|those of))",
            f"{_EN} (?:originated|came|was sent) from outside",
            "authorised and regulated by the (?:financial|prudential|solicitors)",
            "vat (?:registration )?(?:no|number)|registered office",
            "registered in (?:england|scotland|ireland)(?: \\w+){0,5} (?:no|number|company|registered|office)",
        ),
    ),
    "German": Phrases(
        "http://www.tripuls.de/news/newsletter/201001-disclaimer.html",
        (
            *("vertraulich", "adressat", "empfänger", "irrtümlich", "versehentlich", "unbefugt", "drucken"),
            *("gesellschaft", "gericht"),
        ),
        (
            f"diese {_DE} (?:kann|enthält|ist|und)(?: \\w+){{0,6}} vertrauliche?n?",
            f"inhalt dieser {_DE}(?: \\w+){{0,4}} vertraulich",
            "nicht (?:der|die) (?:\\w+ )?(?:richtige|beabsichtigte|vorgesehene|bestimmungsgemäße)"
            "(?: \\w+)? (?:adressat|empfänger)",
            f"{_DE} (?:irrtümlich|versehentlich)(?: \\w+)? erhalten",
            "unbefugte weitergabe dieser",
            "(?:ausschließlich|nur) für den (?:bezeichneten |genannten )?(?:adressaten|empfänger)",
            f"bevor sie diese {_DE} (?:ausdrucken|drucken)",
            "sitz der gesellschaft|registergericht|amtsgericht(?: \\w+){1,3} hr ?b",
        ),
    ),
    "French": Phrases(
        "http://www.arobase.org/entreprise/risques_juridiques_email_disclaimer.htm",
        ("joint", "destinat", "par erreur", "confiden", "environnement"),
        (
            f"ce {_FR}(?: \\w+){{0,4}} (?:pièces? jointes?|fichiers? joints?)",
            "(?:intention|usage) exclusi(?:ve|f) d(?:e|es|u)(?: \\w+)? destinataires?",
            f"(?:recevez|reçu) (?:ce|cet) {_FR} par erreur",
            "(?:n êtes|n es) pas (?:le|un) destinataire|au seul destinataire",
            f"cet? {_FR}(?: \\w+){{0,3}} (?:est|sont|contient|peut contenir)(?: \\w+){{0,5}} confidentiel(?:le)?s?",
            "environnement avant d imprimer",
        ),
    ),
    "Spanish": Phrases(
        "https://www.alvarezramosabogados.com/el-aviso-de-confidencialidad-en-correos-electronicos/",
        ("adjuntos", "destinat", "por err", "equivocación", "confiden", "imprimir"),
        (
            f"este {_ES} y (?:sus|los) (?:archivos |ficheros )?adjuntos",
            "exclusivamente a (?:su|sus|el|los) destinatarios?",
            "(?:no es usted|usted no es|no es) el destinatario",
            f"recib(?:ido|e) (?:este|esta) {_ES} por (?:error|equivocación)",
            "uso exclusivo del destinatario",
            f"est[ea] {_ES} (?:contiene|puede contener|es)(?: \\w+){{0,6}} confidencial",
            f"antes de imprimir este {_ES}",
        ),
    ),
    "Italian": Phrases(
        "https://www.andrearuffini.com/disclaimer-sulla-privacy-obbligatorio-oppure/",
        ("destinat", "per errore", "riservat", "confiden", "stampare"),
        (
            f"contenute in questo {_IT}(?: \\w+){{0,8}} (?:riservat[ei]|confidenziali|destinate)",
            "(?:uso esclusivo|esclusivamente|unicamente)(?: \\w+)? (?:del|al|ai) destinatari[oi]?",
            f"{_IT}(?: \\w+){{0,4}} per errore|per errore quest[ao] {_IT}",
            "non (?:siete|siate|è|foste)(?: \\w+)? (?:i|il) destinatari[oi]?",
            f"prima di stampare quest[ao] {_IT}",
        ),
    ),
    "Dutch": Phrases(
        "https://dejuristen.be/e-commerce-compliance/emaildisclaimer/",
        ("geadresseerde", "ontvanger", "onrechte", "ongeluk", "onbedoeld", "vergissing", "ontleend", "vertrouwelijk"),
        (
            "(?:uitsluitend|alleen|enkel) (?:bestemd|bedoeld) voor (?:gebruik door )?de (?:\\w+ )?geadresseerde",
            "niet de (?:bedoelde|beoogde|genoemde) (?:geadresseerde|ontvanger)",
            f"(?:dit|deze) {_NL} (?:ten onrechte|per ongeluk|onbedoeld|per vergissing)",
            "geen rechten (?:worden )?ontleend",
            f"(?:dit|deze) {_NL}(?: \\w+){{0,6}} (?:is|zijn|kan|kunnen)(?: \\w+){{0,2}} vertrouwelijke?",
        ),
    ),
    "Portuguese": Phrases(
        "http://maisde80k.blogspot.com/2004/06/cuidado-com-os-emails-que-voc-recebe.html",
        ("destinat", "confiden", "por engano", "por err"),
        (
            f"ess?t?[ae] {_PT} (?:pode conter|contém|é)(?: \\w+){{0,6}} confidencia(?:l|is)",
            f"recebeu ess?t?[ae] {_PT} por (?:engano|erro)",
            "não (?:for|é|seja) o destinatário",
            "(?:exclusivamente|apenas) ao (?:seu )?destinatário",
        ),
    ),
    "Polish": Phrases(
        "https://tudzialprawny.pl/ochrona-danych/klauzula-informacyjna-w-firmowym-mailu/",
        ("adresat", "pomyłk", "omyłkow", "poufn"),
        (
            "(?:tylko|wyłącznie) dla(?: \\w+){0,4} adresata",
            "(?:otrzymaliście|otrzymali|otrzymał)(?: \\w+){0,3} (?:przez pomyłkę|omyłkowo)",
            "(?:jesteście|są)(?: państwo)?(?: jej)? adresatem",
            "nie jest (?:pan|pani)(?: \\w+){0,2} adresatem",
            "(?:wiadomość|pliki)(?: \\w+){0,4} (?:poufne|poufna|poufny)(?: \\w+){0,3} (?:ochronie|chronion)",
        ),
    ),
    "Japanese": Phrases(  # a clause is one word here
        "https://higashimachi.jp/column/167",
        ("誤って", "機密", "秘密", "宛先", "無断"),
        (
            "\\w{0,20}誤って\\w{0,12}(?:受信|着信|受け取|届い)",
            "\\w{0,20}(?:機密|秘密)\\w{0,6}を含む(?:場合|可能性|こと)",
            "\\w{0,20}宛先\\w{0,12}(?:のみ|限り|だけ)",
            "\\w{0,12}無断\\w{0,6}(?:複製|転載|開示|転送|利用)",
        ),
    ),
    "Danish": Phrases(
        "https://www.kovsted.dk/nyheder/disclaimer-paa-email/",
        ("fortrolig", "ved en fejl"),
        (
            "denne (?:e mail|email|mail|meddelelse)(?: \\w+){0,6} fortrolige?",
            "modtaget denne (?:e mail|email|mail|meddelelse) ved en fejl",
        ),
    ),
}


_TEXT_MAX_CHARACTERS = 32_768  # of a longer text a notice is a small part
_WORDS_PER_PHRASE = 40  # of a notice, so that it hides no other text
_SIGNATURE_MAX_CHARACTERS, _SIGNATURE_MAX_LINES = 1_000, 15
_NOTICE_MIN_CHARACTERS = 20
# If fewer words and bytes of a text remain, no more words without a phrase are cut.
_OWN_WORDS, _OWN_BYTES, _CUT_WORDS = 8, 40, 40
_WIDTH_MAX = 120  # of lines that were broken to fit a window
_WIDTH_SHARE = 0.8  # of that width, which a line has if it was broken
_SIGNATURE = re.compile(r"^-- ?\r?$", re.MULTILINE)  # RFC 3676, section 4.3
_BLANK_LINES = re.compile(r"\n[ \t\r\n>]*\n")
_SENTENCE_END = re.compile(r"[.!?:]\s|[。\uff01\uff1f]")
_WORD = re.compile(r"\w+")
_HINTS = frozenset(chain.from_iterable(each.hints for each in PHRASES.values()))
_PHRASE = re.compile(
    r"\b(?:" + "|".join(chain.from_iterable(each.phrases for each in PHRASES.values())) + ")", re.IGNORECASE
)


class Split(NamedTuple):
    """A text of a message, split."""

    own: str  # what its sender wrote for it
    common: str = ""  # the notices and the signature block


@lru_cache(16)
def split_notices(text: str) -> Split:
    """Split known legal notices, and a signature block at the end, from a text.

    A notice begins with a sentence that has a known phrase, and ends with its paragraph. It has a phrase for every 40
    words. A signature block follows a line of two dashes, and has at most 15 lines and 1,000 characters.

    Neither hides a text. If fewer than 8 words of fewer than 40 bytes remain, at most 40 words in sentences without a
    phrase are cut. No block is a signature if the text has no words before it. A text of more than 32,768 characters is
    returned as it is.
    """
    if len(text) > _TEXT_MAX_CHARACTERS:
        return Split(text)
    before, signature = split_signature(text)
    hints = _hints(before)
    if not hints:
        return Split(before, signature)
    pieces = [_split_block(block, is_hinted=is_hinted) for block, is_hinted in _blocks(before, hints)]
    own, notices = "\n\n".join(piece.own for piece in pieces), [piece.common for piece in pieces if piece.common]
    if _hides_text(own, "\n".join(notices)):
        return Split(before, signature)
    return Split(own, "\n".join([*notices, *([signature] if signature else ())]))


def split_signature(text: str) -> Split:
    """Split a signature block at its end from a text of any length."""
    found = list(_SIGNATURE.finditer(text))
    if not found:
        return Split(text)
    before, block = text[: found[-1].start()], text[found[-1].end() :].strip()
    is_long = len(block) > _SIGNATURE_MAX_CHARACTERS or block.count("\n") >= _SIGNATURE_MAX_LINES
    is_all = not _WORD.search(before)
    return Split(text) if is_long or is_all or _hides_text(before, block) else Split(before, block)


def _hides_text(own: str, cut: str) -> bool:
    """Return whether a text would lose what it says with what is cut from it."""
    words = [word[0] for word in islice(_WORD.finditer(own), _OWN_WORDS)]
    if len(words) == _OWN_WORDS or len("".join(words).encode("utf-8", "replace")) >= _OWN_BYTES:
        return False
    sentences = [_words(cut[start:end]) for start, end in _sentences(cut)]
    return sum(len(each.split()) for each in sentences if not _PHRASE.search(each)) > _CUT_WORDS


def _hints(text: str) -> list[int]:
    """Return the first place of each hint in each block, in order."""
    lower = text.lower()
    if len(lower) != len(text):  # lower case has more characters for a few code points
        lower = "".join(letter.lower()[0] for letter in text)
    places = []
    for hint in _HINTS:
        place = lower.find(hint)
        while place >= 0:
            places.append(place)
            after = _BLANK_LINES.search(lower, place)
            place = lower.find(hint, after.end()) if after else -1
    return sorted(places)


def _blocks(text: str, hints: Sequence[int]) -> Iterator[tuple[str, bool]]:
    """Yield the text between blank lines, and whether it has a hint."""
    start = 0
    for blank in (*_BLANK_LINES.finditer(text), None):
        end = blank.start() if blank else len(text)
        yield text[start:end], bisect_left(hints, start) < bisect_left(hints, end)
        start = blank.end() if blank else end


def _split_block(block: str, *, is_hinted: bool) -> Split:
    """Split the notices from a block of lines, some of which were broken to fit a width."""
    if not is_hinted:
        return Split(block)
    lines, start = block.split("\n"), 0
    width = max((len(line) for line in lines if len(line) <= _WIDTH_MAX), default=0)
    pieces = []
    for place, line in enumerate(lines, 1):
        if place == len(lines) or not _is_broken(line, lines[place], width):
            pieces.append(_split_paragraph("\n".join(lines[start:place])))
            start = place
    return Split("\n".join(piece.own for piece in pieces), "\n".join(piece.common for piece in pieces if piece.common))


def _is_broken(line: str, following: str, width: int) -> bool:
    """Return whether a line was broken because the next word had no room."""
    first = following.lstrip(" \t>").partition(" ")[0]
    return len(line) <= _WIDTH_MAX and len(line) + 1 + len(first) > _WIDTH_SHARE * width


def _split_paragraph(paragraph: str) -> Split:
    """Split a notice from a paragraph: all from the first sentence with a phrase on."""
    if len(paragraph) < _NOTICE_MIN_CHARACTERS:
        return Split(paragraph)
    begin, n_phrases = len(paragraph), 0
    for start, end in _sentences(paragraph):
        found = len(_PHRASE.findall(_words(paragraph[start:end])))
        begin, n_phrases = (min(begin, start) if found else begin), n_phrases + found
    is_notice = _words(paragraph[begin:]).count(" ") < _WORDS_PER_PHRASE * n_phrases
    return Split(paragraph[:begin], paragraph[begin:]) if is_notice else Split(paragraph)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of a text begins and ends."""
    return pairwise([0, *(end.end() for end in _SENTENCE_END.finditer(text)), len(text)])


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))
