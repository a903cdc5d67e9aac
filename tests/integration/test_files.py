"""Files of many kinds are produced, then matched by a worker."""

import gzip
import json
from pathlib import Path

from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.workers.files.content import zstd
from tests.support.deployment import TEXTS, deployed


async def test_b40_files_of_every_kind_are_sent_and_what_cannot_be_is_refused(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    lines = b"".join(
        json.dumps({"id": f"line-{number}", "text": TEXTS[number]}).encode() + b"\n" for number in range(5)
    )
    contents = {
        "a.jsonl.gz": gzip.compress(lines),
        "b.json.zst": zstd.compress(json.dumps([{"id": "element", "text": TEXTS[0]}]).encode()),
        "c.json": json.dumps({"text": TEXTS[1]}, indent=1).encode(),
        "d.txt": TEXTS[2].encode("utf-16"),
        "e.html": b"<html>" + TEXTS[3].encode(),
        "f.bin": bytes(range(256)),
        "g.jsonl.gz": gzip.compress(lines)[:-1],
        "h.jsonl": json.dumps({"id": "large", "text": "x" * 5_000_000}).encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        done = deployment.run("produce", str(folder), "--quiet")
        refused = [line for line in done.stderr.decode().splitlines() if line.startswith("refused ")]
        expected = [f"refused {folder}/{place}" for place in ("f.bin", "g.jsonl.gz", "h.jsonl:1")]
        assert [line.split(": ")[0] for line in refused] == expected
        assert "sent 14, refused 3" in done.stderr.decode()
        assert "too_large" in refused[-1]
        assert done.returncode == 65
        sent = await deployment.read(DOCUMENTS.name)
        named = [f"line-{number}" for number in range(5)] + ["element", f"{folder}/c.json"]
        assert {record.key.decode() for record in sent if record.key} >= set(named)
        with deployment.worker():
            await deployment.drained()
        assert {"element", f"{folder}/c.json", f"{folder}/d.txt", f"{folder}/e.html"} <= await deployment.named()
        assert await deployment.letters() == []
