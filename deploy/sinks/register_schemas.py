"""Register the JSON Schema of each message in a schema registry that speaks the protocol of Confluent's.

    python deploy/sinks/register_schemas.py http://127.0.0.1:8081 [prefix of the topics]

A subject is the topic, a dash, and the message. A schema that is there already keeps its id. Signatures have no schema,
because they are msgpack.
"""

import json
import sys
from urllib.request import Request, urlopen

from nearstream.schemas.published.json_schema import MESSAGES, json_schemas
from nearstream.schemas.topics.table import ALL, SIGNATURES

_TYPE = "application/vnd.schemaregistry.v1+json"


def main(address: str, prefix: str = "") -> None:
    """Register each schema, and print its id and its subject."""
    names, schemas = {struct.__name__: name for name, struct in MESSAGES.items()}, json_schemas()
    for topic in ALL:
        for name in (names[value] for value in topic.values if topic is not SIGNATURES and value in names):
            subject, schema = f"{prefix}{topic.name}-{name}", json.dumps(schemas[name], ensure_ascii=False)
            body = json.dumps({"schemaType": "JSON", "schema": schema}).encode()
            url = f"{address.rstrip('/')}/subjects/{subject}/versions"
            with urlopen(Request(url, body, {"Content-Type": _TYPE}), timeout=30) as answer:  # noqa: S310 - as given
                sys.stdout.write(f"{json.load(answer)['id']:>6}  {subject}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
