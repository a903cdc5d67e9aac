"""The limits and thresholds that pages promise to operators and clients are those of the code."""

import re
from pathlib import Path

import pytest

from nearstream.streams.relations.thresholds import Thresholds
from nearstream.workers.config import alert_rules
from nearstream.workers.crawl.warc import PAGE_MAX_BYTES, RECORD_MAX_BYTES
from nearstream.workers.files.content import DOCUMENT_MAX_BYTES
from nearstream.workers.http import application, check, learning, live_routes, requests, webhooks
from nearstream.workers.http.live import feed
from nearstream.workers.kafka.client import SESSION_SECONDS
from nearstream.workers.mail import structure
from nearstream.workers.mail.headers import HEAD_MAX_BYTES
from nearstream.workers.mail.message import MEMORY_BYTES, MESSAGE_MAX_BYTES
from nearstream.workers.monitoring.health import BEHIND_SECONDS
from nearstream.workers.monitoring.status_server import AT_ONCE
from nearstream.workers.monitoring.watchdog import LOOP_SECONDS, PROGRESS_SECONDS, REBALANCE_SECONDS
from nearstream.workers.pipeline.dead_letters import MIN_WINDOW_RECORDS, WINDOW_RECORDS

DOCS = Path(__file__).parents[2] / "docs"
PAIRS = Thresholds()
KIB, MIB = 1024, 1024**2


def share(value: float) -> str:
    """Return a share as pages write it, such as `.15`."""
    return f"{value:.2f}"[1:]


PASSAGES = {
    "operations": (
        f"The group notices a killed worker after {SESSION_SECONDS:.0f} s",
        f"has waited for more than {BEHIND_SECONDS:.0f} s",
        f"a blocked event loop ({LOOP_SECONDS:.0f} s), an endless rebalance ({REBALANCE_SECONDS:.0f} s)",
        f"a batch that does not end ({PROGRESS_SECONDS:.0f} s)",
        f"A document of more than {DOCUMENT_MAX_BYTES >> 20} MiB",
        f"of the last {WINDOW_RECORDS:,}",
        f"judged from the {MIN_WINDOW_RECORDS}th on",
        f"At most {AT_ONCE} requests are served at once",
    ),
    "api": (
        f"more than {requests.HEADERS} headers, or one has more than {requests.HEADER_BYTES:,} bytes",
        f"or all have more than {application.HEAD_BYTES // KIB} KiB",
        f"{check.AT_ONCE} requests are in work, their bodies take {MEMORY_BYTES // MIB} MiB",
        f"The body was not there within {requests.BODY_SECONDS:.0f} s",
        f"({learning.UNCONFIRMED} records, or {learning.UNCONFIRMED_BYTES // MIB} MiB of them, wait for Kafka)",
        f"A mail is larger than {MESSAGE_MAX_BYTES // MIB} MiB",
    ),
    "live": (
        f"{feed.EVENTS:,} events or {feed.EVENT_BYTES // MIB} MiB of them",
        f"{live_routes.READERS} readers of the stream",
    ),
    "dashboards": (f"are tried {webhooks.TRIES} times with growing pauses",),
    "mail": (
        f"headers {HEAD_MAX_BYTES // KIB} KiB, {structure._LEVELS_MAX} levels of parts in parts",
        f"{structure.PARTS_MAX} parts, 1 MiB of text",
    ),
    "crawler": (
        f"a record of more than {RECORD_MAX_BYTES // MIB} MiB, or a page that unpacks to more than "
        f"{PAGE_MAX_BYTES // MIB} MiB",
    ),
    "relations": (
        f"The edit distance is at most {share(PAIRS.distance_ratio_max)} of the longer text",
        f"distance up to {share(PAIRS.distance_ratio_max)} of the longer, {PAIRS.symbols_min:.0f} matches or more",
        f"both containments below {share(PAIRS.version_min)}, yet distance up to {share(PAIRS.noise_ratio_max)}",
        f"matches or more over {share(PAIRS.noise_spread_min)} of the shorter",
        f"ratio from {share(PAIRS.length_ratio_min)}, inside from {share(PAIRS.reordered_min)}, order gap from "
        f"{share(PAIRS.order_gap)}",
        f"inside from {share(PAIRS.containment_min)}, ratio up to {share(PAIRS.length_ratio_max)}, best segment "
        f"covers {share(PAIRS.segment_cover_min)} (or ratio below {share(PAIRS.small_ratio)})",
        f"inside from {share(PAIRS.version_min)}, spread from {share(PAIRS.spread_min)}, best segment with less "
        f"than {share(PAIRS.segment_share_max)} of the common text (or spread from {share(PAIRS.wide_spread)})",
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
