"""Fill the index in a file with made-up documents, and print its cost: `python -m benchmarks.one_machine FILE COUNT`.

Run again with the file of a run, it goes on behind what is there. A fifth of the documents are edited copies of others.
"""

import asyncio
import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from random import Random

from nearstream import Arrival, Document, HashKey, Matcher, Signer, open_store, preset
from nearstream.schemas.topics.codec import encode_signature

WORDS, BATCH, STEP = 300, 64, 6_400
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)


def text(number: int) -> str:
    """Return the text of a document. Of five one is a copy of an earlier one, with ten words changed."""
    random = Random(number if number % 5 else number // 7 * 5 + 1)
    words = [f"w{int(60_000 * random.random() ** 3)}" for _ in range(WORDS)]
    for place in Random(number).sample(range(WORDS), 0 if number % 5 else 10):
        words[place] = f"edited{number}"
    return " ".join(words)


async def main(path: str, count: int) -> None:
    """Match documents, and print the cost of each step."""
    key = HashKey.public()
    scheme = preset("fine", key)
    with open_store(path, scheme.name) as index:
        signer, matcher = Signer(scheme, key), Matcher(index.store, scheme, key)
        first, began = next(index.offsets), time.perf_counter()
        for start in range(first, first + count, BATCH):
            documents = [
                Document(id=f"d{number}", text=text(number), observed_at=BEGIN + timedelta(seconds=number))
                for number in range(start, start + BATCH)
            ]
            signatures = [signer.sign(each) for each in documents]
            await matcher.match_all([Arrival(each.document_key, each) for each in signatures], are_apart=True)
            for each in signatures:
                index.keep(each.document_key.encode(), encode_signature(each), each.observed_at_ms)
            index.commit()
            done = start + BATCH
            if (done - first) % STEP == 0:
                (pages,) = index.file.execute("PRAGMA page_count").fetchone()
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                seconds, began = time.perf_counter() - began, time.perf_counter()
                cost = f"{STEP / seconds:.0f} a second, {1024 * pages / done:.0f} bytes each, {memory:.0f} MiB"
                print(f"{done} documents: {cost}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
