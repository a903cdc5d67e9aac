"""Files of many kinds are produced, then matched by a worker."""

import gzip
import json
from pathlib import Path

from nearstream.schemas.topics import DOCUMENTS
from nearstream.workers.pipeline.file_content import zstd
from tests.support.deployment import TEXTS, deployed


async def test_files_of_every_kind_are_sent_and_what_is_no_text_is_refused(
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
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        done = deployment.run("produce", str(folder), "--quiet")
        refused = [line for line in done.stderr.decode().splitlines() if line.startswith("refused ")]
        assert [line.split(": ")[0] for line in refused] == [f"refused {folder}/{name}" for name in list(contents)[4:]]
        assert "sent 13, refused 3" in done.stderr.decode()
        assert done.returncode == 65
        sent = await deployment.read(DOCUMENTS.name)
        named = [f"line-{number}" for number in range(5)] + ["element", f"{folder}/c.json"]
        assert {record.key.decode() for record in sent if record.key} >= set(named)
        with deployment.worker():
            await deployment.drained()
        assert {"element", f"{folder}/c.json", f"{folder}/d.txt"} <= await deployment.named()
        assert await deployment.letters() == []
