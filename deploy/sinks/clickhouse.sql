CREATE TABLE verdicts (
    `type` Nullable(String),
    `id` Nullable(String),
    `version` Nullable(String),
    `observed_at` Nullable(DateTime64(3)),
    `characters` Nullable(Int64),
    `url` Nullable(String),
    `lineage` Nullable(String),
    `source` Nullable(String),
    `topic` Nullable(String),
    `partition` Nullable(Int64),
    `offset` Nullable(Int64),
    `sent_at` Nullable(DateTime64(3)),
    `event_id` String,
    `collection` Nullable(String),
    `scheme` Nullable(String),
    `verdict` Nullable(String),
    `of` Tuple(`id` Nullable(String), `version` Nullable(String), `observed_at` Nullable(DateTime64(3)), `characters` Nullable(Int64), `url` Nullable(String), `lineage` Nullable(String), `source` Nullable(String), `topic` Nullable(String), `partition` Nullable(Int64), `offset` Nullable(Int64), `sent_at` Nullable(DateTime64(3))),
    `family` Tuple(`id` Nullable(String), `ordinal` Nullable(Int64), `first_seen` Nullable(DateTime64(3)), `founder` Tuple(`id` Nullable(String), `version` Nullable(String), `observed_at` Nullable(DateTime64(3)), `characters` Nullable(Int64), `url` Nullable(String), `lineage` Nullable(String), `source` Nullable(String), `topic` Nullable(String), `partition` Nullable(Int64), `offset` Nullable(Int64), `sent_at` Nullable(DateTime64(3))), `sites` Nullable(Int64)),
    `events` Nullable(Int64),
    `resemblance` Tuple(`value` Nullable(Float64), `low` Nullable(Float64), `high` Nullable(Float64)),
    `distance` Tuple(`value` Nullable(Int64), `low` Nullable(Int64), `high` Nullable(Int64)),
    `inner` Nullable(String),
    `added` Tuple(`value` Nullable(Int64), `low` Nullable(Int64), `high` Nullable(Int64)),
    `novel` Tuple(`value` Nullable(Int64), `low` Nullable(Int64), `high` Nullable(Int64)),
    `common` Nullable(Int64),
    `redundant` Nullable(Bool),
    `document_id` Nullable(String),
    `removed_at` Nullable(DateTime64(3)),
    `reason` Nullable(String)
) ENGINE = ReplacingMergeTree ORDER BY event_id;
CREATE TABLE verdicts_queue AS verdicts ENGINE = Kafka SETTINGS
    kafka_broker_list = '127.0.0.1:9092', kafka_topic_list = 'nearstream.verdicts.v1',
    kafka_group_name = 'clickhouse', kafka_format = 'JSONEachRow',
    input_format_skip_unknown_fields = 1, date_time_input_format = 'best_effort';
CREATE MATERIALIZED VIEW verdicts_view TO verdicts AS SELECT * FROM verdicts_queue;

CREATE TABLE near_duplicates (
    `type` Nullable(String),
    `event_id` String,
    `collection` Nullable(String),
    `scheme` Nullable(String),
    `newer` Tuple(`id` Nullable(String), `version` Nullable(String), `observed_at` Nullable(DateTime64(3)), `characters` Nullable(Int64), `url` Nullable(String), `lineage` Nullable(String), `source` Nullable(String), `topic` Nullable(String), `partition` Nullable(Int64), `offset` Nullable(Int64), `sent_at` Nullable(DateTime64(3))),
    `older` Tuple(`id` Nullable(String), `version` Nullable(String), `observed_at` Nullable(DateTime64(3)), `characters` Nullable(Int64), `url` Nullable(String), `lineage` Nullable(String), `source` Nullable(String), `topic` Nullable(String), `partition` Nullable(Int64), `offset` Nullable(Int64), `sent_at` Nullable(DateTime64(3))),
    `same_lineage` Nullable(Bool),
    `rule` Nullable(String),
    `confidence` Nullable(Float64),
    `evidence` Tuple(`keys` Tuple(`bands` Nullable(Int64), `bands_of` Nullable(Int64), `anchors` Nullable(Int64), `anchors_newer` Nullable(Int64), `anchors_older` Nullable(Int64)), `resemblance` Tuple(`value` Nullable(Float64), `low` Nullable(Float64), `high` Nullable(Float64)), `overlap` Tuple(`rate` Nullable(Int64), `in_order` Nullable(Float64), `order_free` Nullable(Float64), `symbols` Nullable(Int64), `symbols_newer` Nullable(Int64), `symbols_older` Nullable(Int64)), `containment` Tuple(`newer_in_older` Nullable(Float64), `older_in_newer` Nullable(Float64)), `distance` Tuple(`value` Nullable(Int64), `low` Nullable(Int64), `high` Nullable(Int64)), `distance_ratio` Nullable(Float64), `spans_omitted` Nullable(Int64)),
    `family` Nullable(String),
    `added` Nullable(Int64),
    `removed` Nullable(Int64),
    `new_spans_omitted` Nullable(Int64),
    `symbols_differ` Nullable(Bool),
    `document_id` Nullable(String),
    `removed_at` Nullable(DateTime64(3)),
    `reason` Nullable(String),
    `topic` Nullable(String),
    `partition` Nullable(Int64),
    `offset` Nullable(Int64)
) ENGINE = ReplacingMergeTree ORDER BY event_id;
CREATE TABLE near_duplicates_queue AS near_duplicates ENGINE = Kafka SETTINGS
    kafka_broker_list = '127.0.0.1:9092', kafka_topic_list = 'nearstream.near-duplicates.v1',
    kafka_group_name = 'clickhouse', kafka_format = 'JSONEachRow',
    input_format_skip_unknown_fields = 1, date_time_input_format = 'best_effort';
CREATE MATERIALIZED VIEW near_duplicates_view TO near_duplicates AS SELECT * FROM near_duplicates_queue;

CREATE TABLE containments (
    `type` Nullable(String),
    `event_id` String,
    `collection` Nullable(String),
    `scheme` Nullable(String),
    `newer` Tuple(`id` Nullable(String), `version` Nullable(String), `observed_at` Nullable(DateTime64(3)), `characters` Nullable(Int64), `url` Nullable(String), `lineage` Nullable(String), `source` Nullable(String), `topic` Nullable(String), `partition` Nullable(Int64), `offset` Nullable(Int64), `sent_at` Nullable(DateTime64(3))),
    `older` Tuple(`id` Nullable(String), `version` Nullable(String), `observed_at` Nullable(DateTime64(3)), `characters` Nullable(Int64), `url` Nullable(String), `lineage` Nullable(String), `source` Nullable(String), `topic` Nullable(String), `partition` Nullable(Int64), `offset` Nullable(Int64), `sent_at` Nullable(DateTime64(3))),
    `same_lineage` Nullable(Bool),
    `rule` Nullable(String),
    `confidence` Nullable(Float64),
    `evidence` Tuple(`keys` Tuple(`bands` Nullable(Int64), `bands_of` Nullable(Int64), `anchors` Nullable(Int64), `anchors_newer` Nullable(Int64), `anchors_older` Nullable(Int64)), `resemblance` Tuple(`value` Nullable(Float64), `low` Nullable(Float64), `high` Nullable(Float64)), `overlap` Tuple(`rate` Nullable(Int64), `in_order` Nullable(Float64), `order_free` Nullable(Float64), `symbols` Nullable(Int64), `symbols_newer` Nullable(Int64), `symbols_older` Nullable(Int64)), `containment` Tuple(`newer_in_older` Nullable(Float64), `older_in_newer` Nullable(Float64)), `distance` Tuple(`value` Nullable(Int64), `low` Nullable(Int64), `high` Nullable(Int64)), `distance_ratio` Nullable(Float64), `spans_omitted` Nullable(Int64)),
    `family` Nullable(String),
    `added` Nullable(Int64),
    `removed` Nullable(Int64),
    `new_spans_omitted` Nullable(Int64),
    `symbols_differ` Nullable(Bool),
    `inner` Nullable(String),
    `document_id` Nullable(String),
    `removed_at` Nullable(DateTime64(3)),
    `reason` Nullable(String),
    `topic` Nullable(String),
    `partition` Nullable(Int64),
    `offset` Nullable(Int64)
) ENGINE = ReplacingMergeTree ORDER BY event_id;
CREATE TABLE containments_queue AS containments ENGINE = Kafka SETTINGS
    kafka_broker_list = '127.0.0.1:9092', kafka_topic_list = 'nearstream.containments.v1',
    kafka_group_name = 'clickhouse', kafka_format = 'JSONEachRow',
    input_format_skip_unknown_fields = 1, date_time_input_format = 'best_effort';
CREATE MATERIALIZED VIEW containments_view TO containments AS SELECT * FROM containments_queue;

CREATE TABLE versions (
    `type` Nullable(String),
    `event_id` String,
    `collection` Nullable(String),
    `scheme` Nullable(String),
    `newer` Tuple(`id` Nullable(String), `version` Nullable(String), `observed_at` Nullable(DateTime64(3)), `characters` Nullable(Int64), `url` Nullable(String), `lineage` Nullable(String), `source` Nullable(String), `topic` Nullable(String), `partition` Nullable(Int64), `offset` Nullable(Int64), `sent_at` Nullable(DateTime64(3))),
    `older` Tuple(`id` Nullable(String), `version` Nullable(String), `observed_at` Nullable(DateTime64(3)), `characters` Nullable(Int64), `url` Nullable(String), `lineage` Nullable(String), `source` Nullable(String), `topic` Nullable(String), `partition` Nullable(Int64), `offset` Nullable(Int64), `sent_at` Nullable(DateTime64(3))),
    `same_lineage` Nullable(Bool),
    `rule` Nullable(String),
    `confidence` Nullable(Float64),
    `evidence` Tuple(`keys` Tuple(`bands` Nullable(Int64), `bands_of` Nullable(Int64), `anchors` Nullable(Int64), `anchors_newer` Nullable(Int64), `anchors_older` Nullable(Int64)), `resemblance` Tuple(`value` Nullable(Float64), `low` Nullable(Float64), `high` Nullable(Float64)), `overlap` Tuple(`rate` Nullable(Int64), `in_order` Nullable(Float64), `order_free` Nullable(Float64), `symbols` Nullable(Int64), `symbols_newer` Nullable(Int64), `symbols_older` Nullable(Int64)), `containment` Tuple(`newer_in_older` Nullable(Float64), `older_in_newer` Nullable(Float64)), `distance` Tuple(`value` Nullable(Int64), `low` Nullable(Int64), `high` Nullable(Int64)), `distance_ratio` Nullable(Float64), `spans_omitted` Nullable(Int64)),
    `family` Nullable(String),
    `added` Nullable(Int64),
    `removed` Nullable(Int64),
    `new_spans_omitted` Nullable(Int64),
    `symbols_differ` Nullable(Bool),
    `document_id` Nullable(String),
    `removed_at` Nullable(DateTime64(3)),
    `reason` Nullable(String),
    `topic` Nullable(String),
    `partition` Nullable(Int64),
    `offset` Nullable(Int64)
) ENGINE = ReplacingMergeTree ORDER BY event_id;
CREATE TABLE versions_queue AS versions ENGINE = Kafka SETTINGS
    kafka_broker_list = '127.0.0.1:9092', kafka_topic_list = 'nearstream.versions.v1',
    kafka_group_name = 'clickhouse', kafka_format = 'JSONEachRow',
    input_format_skip_unknown_fields = 1, date_time_input_format = 'best_effort';
CREATE MATERIALIZED VIEW versions_view TO versions AS SELECT * FROM versions_queue;

CREATE TABLE overlaps (
    `type` Nullable(String),
    `event_id` String,
    `collection` Nullable(String),
    `scheme` Nullable(String),
    `newer` Tuple(`id` Nullable(String), `version` Nullable(String), `observed_at` Nullable(DateTime64(3)), `characters` Nullable(Int64), `url` Nullable(String), `lineage` Nullable(String), `source` Nullable(String), `topic` Nullable(String), `partition` Nullable(Int64), `offset` Nullable(Int64), `sent_at` Nullable(DateTime64(3))),
    `older` Tuple(`id` Nullable(String), `version` Nullable(String), `observed_at` Nullable(DateTime64(3)), `characters` Nullable(Int64), `url` Nullable(String), `lineage` Nullable(String), `source` Nullable(String), `topic` Nullable(String), `partition` Nullable(Int64), `offset` Nullable(Int64), `sent_at` Nullable(DateTime64(3))),
    `same_lineage` Nullable(Bool),
    `rule` Nullable(String),
    `confidence` Nullable(Float64),
    `evidence` Tuple(`keys` Tuple(`bands` Nullable(Int64), `bands_of` Nullable(Int64), `anchors` Nullable(Int64), `anchors_newer` Nullable(Int64), `anchors_older` Nullable(Int64)), `resemblance` Tuple(`value` Nullable(Float64), `low` Nullable(Float64), `high` Nullable(Float64)), `overlap` Tuple(`rate` Nullable(Int64), `in_order` Nullable(Float64), `order_free` Nullable(Float64), `symbols` Nullable(Int64), `symbols_newer` Nullable(Int64), `symbols_older` Nullable(Int64)), `containment` Tuple(`newer_in_older` Nullable(Float64), `older_in_newer` Nullable(Float64)), `distance` Tuple(`value` Nullable(Int64), `low` Nullable(Int64), `high` Nullable(Int64)), `distance_ratio` Nullable(Float64), `spans_omitted` Nullable(Int64)),
    `family` Nullable(String),
    `document_id` Nullable(String),
    `removed_at` Nullable(DateTime64(3)),
    `reason` Nullable(String),
    `topic` Nullable(String),
    `partition` Nullable(Int64),
    `offset` Nullable(Int64)
) ENGINE = ReplacingMergeTree ORDER BY event_id;
CREATE TABLE overlaps_queue AS overlaps ENGINE = Kafka SETTINGS
    kafka_broker_list = '127.0.0.1:9092', kafka_topic_list = 'nearstream.overlaps.v1',
    kafka_group_name = 'clickhouse', kafka_format = 'JSONEachRow',
    input_format_skip_unknown_fields = 1, date_time_input_format = 'best_effort';
CREATE MATERIALIZED VIEW overlaps_view TO overlaps AS SELECT * FROM overlaps_queue;

CREATE TABLE alerts (
    `type` Nullable(String),
    `event_id` String,
    `collection` Nullable(String),
    `scheme` Nullable(String),
    `name` Nullable(String),
    `state` Nullable(String),
    `subject` Nullable(String),
    `value` Nullable(Float64),
    `limit` Nullable(Float64),
    `window_seconds` Nullable(Int64),
    `since` Nullable(DateTime64(3)),
    `until` Nullable(DateTime64(3)),
    `size` Nullable(Int64),
    `founder` Nullable(String)
) ENGINE = ReplacingMergeTree ORDER BY event_id;
CREATE TABLE alerts_queue AS alerts ENGINE = Kafka SETTINGS
    kafka_broker_list = '127.0.0.1:9092', kafka_topic_list = 'nearstream.alerts.v1',
    kafka_group_name = 'clickhouse', kafka_format = 'JSONEachRow',
    input_format_skip_unknown_fields = 1, date_time_input_format = 'best_effort';
CREATE MATERIALIZED VIEW alerts_view TO alerts AS SELECT * FROM alerts_queue;

CREATE TABLE labels_changed (
    `type` Nullable(String),
    `event_id` String,
    `collection` Nullable(String),
    `scheme` Nullable(String),
    `document_id` Nullable(String),
    `kind` Nullable(String),
    `weight` Nullable(Int64),
    `since` Nullable(DateTime64(3)),
    `family` Nullable(String),
    `first_seen` Nullable(DateTime64(3))
) ENGINE = ReplacingMergeTree ORDER BY event_id;
CREATE TABLE labels_changed_queue AS labels_changed ENGINE = Kafka SETTINGS
    kafka_broker_list = '127.0.0.1:9092', kafka_topic_list = 'nearstream.labels-changed.v1',
    kafka_group_name = 'clickhouse', kafka_format = 'JSONEachRow',
    input_format_skip_unknown_fields = 1, date_time_input_format = 'best_effort';
CREATE MATERIALIZED VIEW labels_changed_view TO labels_changed AS SELECT * FROM labels_changed_queue;
