"""Ranges of numeric settings and patterns of text settings."""

_PORT = r"(?:6553[0-5]|655[0-2]\d|65[0-4]\d{2}|6[0-4]\d{3}|[1-5]?\d{1,4})"  # 0 to 65535
# A key that is given in place of its path would be printed as a path.
_PEM_PATH = (r"(?!-----BEGIN)[^\r\n]*", "the path of a PEM file, not its content")
_LOGIN = r"([^\s/?#\[\]]*@)?"
_PLACE = rf"[^\s,/@:?#\[\]]+:{_PORT}"
RANGES: dict[str, tuple[float, float]] = {
    "retention_seconds": (0, 10**9),
    "index_documents": (1000, 10**10),
    "index_slots": (1, 256),
    "redis_wait": (0, 5),
    "crawl_freshness": (0.5, 0.99),
    "max_text_bytes": (1, 4 * 1024 * 1024),
    "dead_letter_max_ratio": (0.0, 1.0),
    "outage_seconds": (0, 10**9),
    "stop_seconds": (1, 3600),
    "api_seconds": (0.01, 60.0),
    "bulk_count": (1, 10**9),
    "label_delay_seconds": (0, 10**9),
}
PATTERNS = {
    "profile": ("development|production|mail", "development, production or mail"),
    "kafka": (rf"[^\s,:/@]+:{_PORT}(,[^\s,:/@]+:{_PORT})*", "host:port[,host:port]"),
    "kafka_security": ("PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
    "kafka_sasl_mechanism": (
        "PLAIN|SCRAM-SHA-256|SCRAM-SHA-512|OAUTHBEARER",
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER",
    ),
    # A token or a secret that is given in place of its path or address would be printed.
    "kafka_token_path": (r"(?!eyJ)[^\r\n]*", "the path of a file with a token, not the token"),
    "kafka_token_url": (
        rf"(https://[^\s/?#@]+(/[^\s?#]*)?|http://(localhost|127\.0\.0\.1):{_PORT}(/[^\s?#]*)?)?",
        "https://host[:port]/path, or http:// on loopback, without name, password and query",
    ),
    "kafka_token_form": (r"([A-Za-z_]+=[^\s&=]*(&[A-Za-z_]+=[^\s&=]*)*)?", "name=value&name=value, percent-encoded"),
    "kafka_token_extensions": (r"([A-Za-z]+=[!-~]+( [A-Za-z]+=[!-~]+)*)?", "name=value, separated by spaces"),
    "kafka_msk_region": (r"([a-z]+(-[a-z]+)+-\d+)?", "a region such as eu-west-1"),
    "kafka_ca_path": _PEM_PATH,
    "kafka_cert_path": _PEM_PATH,
    "kafka_key_path": _PEM_PATH,
    "redis": (
        rf"rediss?(\+cluster)?://{_LOGIN}{_PLACE}(/\d{{0,4}})?(\?[^\s#]*)?"
        rf"|rediss?\+sentinel://{_LOGIN}{_PLACE}(,{_PLACE})*/[A-Za-z0-9._-]+(/\d{{0,4}})?",
        "redis://host:port/db, or redis://name:password@host:port/db with / ? # [ ] as %2F %3F %23 %5B %5D, "
        "or redis+cluster://host:port, or redis+sentinel://host:port,host:port/service/db",
    ),
    "redis_ca_path": _PEM_PATH,
    "group": (r"[A-Za-z0-9._-]{1,200}", "1 to 200 letters, digits, dots, underscores or dashes"),
    "namespace": (r"[a-z0-9-]{1,32}", "1 to 32 lower-case letters, digits or dashes"),
    "topic_prefix": (r"[A-Za-z0-9._-]{0,100}", "at most 100 letters, digits, dots, underscores or dashes"),
    "scheme": ("fine|mail|compact|noise", "fine, mail, compact or noise"),
    "references": (r"[a-z0-9 -]{0,2000}", "names of collections, separated by spaces"),
    "verdicts": ("all|related|none", "all, related or none"),
    "html_content": ("(main|all)(-links)?", "main, all, main-links or all-links"),
    "mail_authserv_id": (r"[A-Za-z0-9._-]{0,253}", "the name in Authentication-Results, such as mx.your.example"),
    "mail_content": ("whole|thread", "whole or thread"),
    "dead_letter_payload": ("full|head|hash", "full, head or hash"),
    "log_level": ("|debug|info|warning|error|critical", "debug, info, warning, error, critical or nothing"),
    "log_format": ("text|json", "text or json"),
    "api": (rf"[^\s/:@]+:{_PORT}", "host:port"),
    "status": (rf"auto|off|[^\s/:@]+:{_PORT}", "host:port, auto or off"),
}
