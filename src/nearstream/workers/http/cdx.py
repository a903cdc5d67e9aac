"""Answer archive crawlers as a CDX server does: has this content of a URL been stored before, and when."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from nearstream.streams.deciding.states import PageState
from nearstream.streams.ingest.defaults import name_of_page
from nearstream.streams.ingest.lineage import host_of
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.kept.decisions import DecisionStore

# By name the letter of each field in the header of a CDX file.
FIELDS = {
    "urlkey": "N",
    "timestamp": "b",
    "original": "a",
    "mimetype": "m",
    "statuscode": "s",
    "digest": "k",
    "length": "S",
    "recordid": "u",
}
_UNKNOWN = "-"
_DIGEST_FILTER = "digest:"


@dataclass(frozen=True)
class CdxAnswer:
    """What is known of a URL.

    Attributes:
        text: The lines.
        headers: What the decision about the page says.
        is_degraded: Redis did not answer, or not in time, so there are no lines.
    """

    text: str
    headers: Mapping[str, str]
    is_degraded: bool = False


@dataclass(frozen=True)
class CdxServer:
    """Answers from the states of pages in Redis.

    Attributes:
        store: The states.
        seconds: How long an answer may take.
    """

    store: DecisionStore
    seconds: float

    async def answer(self, url: str, collection: str, asked: Mapping[str, str]) -> CdxAnswer:
        """Return the line of the content that a URL had at its last fetch, or no line.

        In doubt there is none, so that a crawler stores the page.

        Args:
            url: The page, exactly as it is to be fetched.
            collection: The tenant.
            asked: Other parameters: `fl` with the names of fields, `header`, and `filter` with `digest:` and a digest.

        Raises:
            ValueError: A name in `fl` is unknown.
        """
        names = asked["fl"].split(",") if asked.get("fl") else list(FIELDS)
        unknown = [name for name in names if name not in FIELDS]
        if unknown:
            raise ValueError(f"expected fl of {', '.join(FIELDS)}")
        header = " CDX " + " ".join(FIELDS[name] for name in names) + "\n" if asked.get("header") == "1" else ""
        try:
            async with asyncio.timeout(self.seconds):
                state = await self.store.read_state(collection, name_of_page(url))
        except (TimeoutError, IndexUnavailableError, SettingsError):
            return CdxAnswer(header, {}, is_degraded=True)
        if state is None:
            return CdxAnswer(header, {})
        fields = _fields(state, url)
        wanted = asked.get("filter", "").removeprefix("=")
        is_other = wanted.startswith(_DIGEST_FILTER) and wanted.removeprefix(_DIGEST_FILTER) != fields.get("digest")
        line = " ".join(fields[name] for name in names) + "\n" if fields and not is_other else ""
        return CdxAnswer(header + line, _decision_headers(state))


def _fields(state: PageState, url: str) -> dict[str, str]:
    """Return the fields of the line, none without the digest of what the URL itself had sent."""
    digest, _, record = state.payload.partition(" ")
    if not digest or state.payload_at is None or state.own is None or state.own.url != url:
        return {}
    known = {
        "urlkey": _sort_key(url),
        "timestamp": f"{state.payload_at:%Y%m%d%H%M%S}",
        "original": _in_one_word(url),
        "statuscode": "200",
        "digest": digest,
        "recordid": record or _UNKNOWN,
    }
    return {name: known.get(name, _UNKNOWN) for name in FIELDS}


def _sort_key(url: str) -> str:
    """Return a URL with its host reversed, as CDX files are sorted."""
    try:
        parts = urlsplit(url)
    except ValueError:  # such as http://[
        return _UNKNOWN
    path = parts.path + ("?" + parts.query if parts.query else "")
    return _in_one_word(",".join(reversed(host_of(url).split("."))) + ")" + path.lower())


def _in_one_word(text: str) -> str:
    """Return a text with what would end a word or a line as it is in URLs, such as %20."""
    return "".join(each if each.isprintable() and each != " " else quote(each) for each in text)


def _decision_headers(state: PageState) -> dict[str, str]:
    decision = state.decision
    named = {
        "nearstream-action": decision.action,
        "nearstream-because": decision.because,
        "nearstream-canonical": decision.canonical.url or decision.canonical.id,
    }
    words = {name: _in_one_word(value) for name, value in named.items() if value}
    return {name: value.encode("ascii", "backslashreplace").decode() for name, value in words.items()}
