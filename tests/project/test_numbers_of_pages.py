"""The bounds and thresholds that pages name are those of the code."""

import re
from pathlib import Path

import pytest

from nearstream.schemas.documents.document import RECIPIENTS_MAX, REFERENCES_MAX
from nearstream.schemas.labels.label import WEIGHT_MAX
from nearstream.streams.deciding import states
from nearstream.streams.estimates import frames
from nearstream.streams.fingerprints.parameters import MIN_SPACELESS_BYTES, MIN_WORDS
from nearstream.streams.matching.counterpart import COVERED_FROM
from nearstream.streams.matching.protocol import picking, tally
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.relations.verdict import SHINGLES_MIN
from nearstream.workers.config import alert_rules, tokens
from nearstream.workers.crawl import html_text
from nearstream.workers.crawl.warc import PAGE_MAX_BYTES, RECORD_MAX_BYTES
from nearstream.workers.http import application, check, learning, live_routes, requests, webhooks
from nearstream.workers.http.live import families, feed, sources, troubles
from nearstream.workers.mail import structure
from nearstream.workers.mail.headers import HEAD_MAX_BYTES
from nearstream.workers.mail.message import MEMORY_BYTES, MESSAGE_MAX_BYTES
from nearstream.workers.redis.kept.decisions import KEPT_SECONDS

DOCS = Path(__file__).parents[2] / "docs"
PAIRS = Thresholds()
KIB, MIB, HOUR, DAY = 1024, 1024**2, 3_600, 86_400


def share(value: float) -> str:
    """Return a share as pages write it, such as `.15`."""
    return f"{value:.2f}"[1:]


PASSAGES = {
    "api": (
        f"more than {requests.HEADERS} headers, or one has more than {requests.HEADER_BYTES:,} bytes",
        f"or all have more than {application.HEAD_BYTES // KIB} KiB",
        f"{check.AT_ONCE} requests are in work, their bodies take {MEMORY_BYTES // MIB} MiB",
        f"(of which {requests.FOR_SHORT_BYTES // MIB} are left to bodies of at most {requests.SHORT_BYTES // KIB} KiB)",
        f"The body was not there within {requests.BODY_SECONDS:.0f} s",
        f"A connection has {application.FIRST_SECONDS:.0f} s for its first request. At most {application.CONNECTIONS}",
        f"({learning.UNCONFIRMED} records, or {learning.UNCONFIRMED_BYTES // MIB} MiB of them, wait for Kafka)",
        f"A mail is larger than {MESSAGE_MAX_BYTES // MIB} MiB",
        f"`weight` is 1 (the default) to {WEIGHT_MAX}",
        f"There may be up to {tokens.TOKENS} tokens",
    ),
    "live": (
        f"{feed.EVENTS:,} events or {feed.EVENT_BYTES // MIB} MiB of them, {troubles.ALERTS} alerts",
        f"the newest {troubles.LETTERS} dead letters with {troubles._VALUE_BYTES // KIB} KiB of each",
        f"{families.FAMILIES:,} families with {families.MEMBERS} members each, {feed.COLLECTIONS} collections",
        f"{live_routes.READERS} readers of the stream",
        f"at most {sources.PAST_RECORDS:,} of each partition",
        f"begins with that many earlier events, at most {live_routes.RECENT:,}",
        f"A silent stream sends a comment every {live_routes._COMMENT_SECONDS:.0f} s",
        f"takes nothing for {live_routes._STUCK_SECONDS:.0f} s is cut off",
    ),
    "dashboards": (
        f"to the targets of the same file, at most {alert_rules.TARGETS}",
        f"are tried {webhooks.TRIES} times with growing pauses",
        f"Of an answer {webhooks.ANSWER_BYTES // KIB} KiB are read",
        f"all ends after {webhooks.REQUEST_SECONDS:.0f} s",
        f"For each target {webhooks.QUEUE:,} alerts wait at most",
    ),
    "mail": (
        f"headers {HEAD_MAX_BYTES // KIB} KiB, {structure._LEVELS_MAX} levels of parts in parts",
        f"{structure.PARTS_MAX} parts, 1 MiB of text",
        f"{structure._LINES_MAX:,} lines like a boundary",
        f"{structure._DECODED_MAX_BYTES // MIB} MiB of encoded messages",
        f"The first {RECIPIENTS_MAX} addresses in `To` and `Cc`",
        f"One of fewer than {MIN_WORDS} words of its own ({MIN_SPACELESS_BYTES} bytes in scripts without spaces)",
    ),
    "crawler": (
        f"for {KEPT_SECONDS // DAY} days. Run it beside the other workers",
        f"at most {states.SKIP_SECONDS // DAY} days. A page that has stayed for longer",
        f"{states.RETRY_SECONDS // 60} minutes, then {states.RETRY_SECONDS // 30}, "
        f"{states.RETRY_SECONDS // 15} and so on",
        f"an hour at least and {states.LONGEST_SECONDS // DAY} days at most",
        f"Up to {states.FOLLOWERS_MAX:,} pages can rest on one",
        f"The newest {states.TURNS_MAX} turns and {states.TEXTS_MAX} texts of each host are known",
        f"Redis keeps up to {frames.FORMS_MAX:,} keyed hashes of parts for each host",
        f"a record of more than {RECORD_MAX_BYTES // MIB} MiB, or a page that unpacks to more than "
        f"{PAGE_MAX_BYTES // MIB} MiB",
        f"{html_text.HTML_MAX_CHARACTERS // MIB} Mi characters",
        f"{html_text._MAX_DEPTH:,} levels of nested elements",
    ),
    "events": (f"for the newest {['seven', 'eight', 'nine'][states.ALIASES_MAX - 7]} such URLs",),
    "relations": (
        f"The edit distance is at most {share(PAIRS.distance_ratio_max)} of the longer text",
        f"distance up to {share(PAIRS.distance_ratio_max)} of the longer, {PAIRS.symbols_min:.0f} matches or more",
        f"both containments below {share(PAIRS.version_min)}, yet distance up to {share(PAIRS.noise_ratio_max)}",
        f"matches or more over {share(PAIRS.noise_spread_min)} of the shorter",
        f"both containments below {share(PAIRS.order_free_min)}, or common shingles that stand for fewer than "
        f"{PAIRS.common_words_min:.0f} words",
        f"ratio from {share(PAIRS.length_ratio_min)}, inside from {share(PAIRS.reordered_min)}, order gap from "
        f"{share(PAIRS.order_gap)}",
        f"inside from {share(PAIRS.containment_min)}, ratio up to {share(PAIRS.length_ratio_max)}, best segment "
        f"covers {share(PAIRS.segment_cover_min)} (or ratio below {share(PAIRS.small_ratio)})",
        f"inside from {share(PAIRS.version_min)}, spread from {share(PAIRS.spread_min)}, best segment with less "
        f"than {share(PAIRS.segment_share_max)} of the common text (or spread from {share(PAIRS.wide_spread)})",
        f"under {SHINGLES_MIN} shingles in either text",
        f"Of the {tally.LOOKS} documents of the largest weight",
        f"at least {COVERED_FROM:.0%} of one text".replace("%", " %"),
        f"A key is *rare* if fewer than {tally.RARE_BELOW} earlier documents have it",
        f"share {tally.COPY_PERCENT} % of the anchors of the one with fewer",
        f"up to {['three', 'four', 'five'][REFERENCES_MAX - 3]} other collections in `against`",
        f"the {['four', 'five', 'six'][picking.BEST - 4]} best are compared",
    ),
}


@pytest.mark.parametrize("name", PASSAGES)
def test_the_numbers_of_a_page_are_those_of_the_code(name: str) -> None:
    page = " ".join((DOCS / f"{name}.md").read_text().split())
    assert [passage for passage in PASSAGES[name] if passage not in page] == []


def test_the_rules_that_the_page_about_dashboards_shows_are_the_default_ones(tmp_path: Path) -> None:
    (shown, _) = re.findall(r"```toml\n(.*?)```", (DOCS / "dashboards.md").read_text(), re.DOTALL)
    (tmp_path / "alerts.toml").write_text(shown)
    assert set(alert_rules.load_alerts(str(tmp_path / "alerts.toml")).rules) == set(alert_rules.DEFAULT_RULES)
