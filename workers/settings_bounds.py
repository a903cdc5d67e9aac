"""What a setting may be: bounds of the numbers, forms of the texts."""

RELATIONS = ("exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap")
_PORT = r"(?:6553[0-5]|655[0-2]\d|65[0-4]\d{2}|6[0-4]\d{3}|[1-5]?\d{1,4})"  # 0 to 65535
BOUNDS: dict[str, tuple[float, float]] = {
    "bands": (0, 128),
    "rows": (0, 128),
    "mean_resemblance_min": (0.0, 1.0),
    "containment_min": (0.0, 1.0),
    "order_free_min": (0.0, 1.0),
    "bucket_cap": (12, 1000),
    "candidates": (1, 400),
    "retention_seconds": (0, 10**9),
    "index_documents": (1000, 10**10),
    "index_parts": (1, 256),
    "max_text_bytes": (1, 4 * 1024 * 1024),
    "max_value_bytes": (1024, 4 * 1024 * 1024),
    "max_clock_skew_seconds": (0, 10**9),
    "dead_letter_max_consecutive": (0, 10**9),
    "dead_letter_max_ratio": (0.0, 1.0),
    "outage_seconds": (0, 10**9),
    "stop_seconds": (1, 3600),
}
PATTERNS = {
    "profile": ("development|production|mail", "development, production or mail"),
    "kafka": (rf"[^\s,:/]+:{_PORT}(,[^\s,:/]+:{_PORT})*", "host:port[,host:port]"),
    "kafka_security": ("PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
    "kafka_sasl_mechanism": ("PLAIN|SCRAM-SHA-256|SCRAM-SHA-512", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
    "kafka_compression": ("|gzip|snappy|lz4|zstd", "gzip, snappy, lz4, zstd or nothing"),
    "redis": (
        rf"rediss?://([^\s/?#\[\]]*@)?[^\s/@:?#\[\]]+(:{_PORT})?(/\d{{0,4}})?(\?[^\s#]*)?",
        "redis://host:port/db, or redis://name:password@host:port/db with / ? # [ ] as %2F %3F %23 %5B %5D",
    ),
    "redis_cluster": ("yes|no", "yes or no"),
    "group": (r"[A-Za-z0-9._-]{1,200}", "letters, digits, dots, dashes"),
    "group_instance": (r"[A-Za-z0-9._-]{0,200}", "letters, digits, dots, dashes"),
    "namespace": (r"[a-z0-9-]{1,32}", "1 to 32 lower-case letters, digits, dashes"),
    "topic_prefix": (r"[A-Za-z0-9._-]{0,100}", "letters, digits, dots, dashes"),
    "scheme": ("standard|compact|bands-only|dense|noise", "standard, compact, bands-only, dense or noise"),
    "dead_letter_payload": ("full|head|hash", "full, head or hash"),
    "status": (rf"off|[^\s/:]+:{_PORT}", "host:port or off"),
}
