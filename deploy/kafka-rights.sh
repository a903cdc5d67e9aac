#!/bin/sh
# Gives a user of each task the fewest rights that suffice, for the default topics and group.
# Run it as an administrator of the brokers: BROKER=kafka-1.example:9093 sh kafka-rights.sh
# Change users, topics and group to yours, and add --command-config where the brokers ask for a password.

set -eu

# nearstream: workers
kafka-acls.sh --bootstrap-server "$BROKER" --add --allow-principal User:nearstream --operation Read \
  --group nearstream --topic nearstream.documents.v1 --topic nearstream.signatures.v1
kafka-acls.sh --bootstrap-server "$BROKER" --add --allow-principal User:nearstream --operation Write \
  --topic nearstream.signatures.v1 --topic nearstream.verdicts.v1 --topic nearstream.near-duplicates.v1 \
  --topic nearstream.containments.v1 --topic nearstream.versions.v1 --topic nearstream.overlaps.v1 \
  --topic nearstream.dead-letters.v1 --topic nearstream.decisions.v1 --topic nearstream.alerts.v1 \
  --topic nearstream.labels-changed.v1
kafka-acls.sh --bootstrap-server "$BROKER" --add --allow-principal User:nearstream --operation Describe \
  --topic nearstream.silences.v1

# crawler: who sends documents and reads decisions
kafka-acls.sh --bootstrap-server "$BROKER" --add --allow-principal User:crawler --operation Write \
  --topic nearstream.documents.v1
kafka-acls.sh --bootstrap-server "$BROKER" --add --allow-principal User:crawler --operation Read \
  --topic nearstream.decisions.v1

# dashboard: who reads events
kafka-acls.sh --bootstrap-server "$BROKER" --add --allow-principal User:dashboard --operation Read \
  --topic nearstream.verdicts.v1 --topic nearstream.near-duplicates.v1 --topic nearstream.containments.v1 \
  --topic nearstream.versions.v1 --topic nearstream.overlaps.v1 --topic nearstream.alerts.v1

# operator: nearstream topics create, and a look at all topics
kafka-acls.sh --bootstrap-server "$BROKER" --add --allow-principal User:operator --operation Create \
  --operation DescribeConfigs --operation Describe --topic nearstream. --resource-pattern-type prefixed

# api: nearstream serve
kafka-acls.sh --bootstrap-server "$BROKER" --add --allow-principal User:api --operation Write \
  --topic nearstream.documents.v1 --topic nearstream.signatures.v1 --topic nearstream.silences.v1
kafka-acls.sh --bootstrap-server "$BROKER" --add --allow-principal User:api --operation Read \
  --topic nearstream.verdicts.v1 --topic nearstream.near-duplicates.v1 --topic nearstream.containments.v1 \
  --topic nearstream.versions.v1 --topic nearstream.overlaps.v1 --topic nearstream.alerts.v1 \
  --topic nearstream.dead-letters.v1 --topic nearstream.silences.v1
kafka-acls.sh --bootstrap-server "$BROKER" --add --allow-principal User:api --operation Describe \
  --group nearstream --group nearstream.alert
