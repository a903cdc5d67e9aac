"""Files of many kinds are produced, then matched by a worker."""

import gzip
import json
from pathlib import Path

from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.workers.files.content import zstd
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
        assert [line.split(": ")[0] for line in refused] == [f"refused {folder}/{name}" for name in list(contents)[5:]]
        assert "sent 14, refused 2" in done.stderr.decode()
        assert done.returncode == 65
        sent = await deployment.read(DOCUMENTS.name)
        named = [f"line-{number}" for number in range(5)] + ["element", f"{folder}/c.json"]
        assert {record.key.decode() for record in sent if record.key} >= set(named)
        with deployment.worker():
            await deployment.drained()
        assert {"element", f"{folder}/c.json", f"{folder}/d.txt", f"{folder}/e.html"} <= await deployment.named()
        assert await deployment.letters() == []


async def test_mails_are_sent_as_texts_and_matched(kafka: str, redis_url: str, tmp_path: Path) -> None:
    deep = "".join(f"Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n" for level in range(150))
    start = "From a@b.example Mon Jan  5 10:11:12 2026\n"
    mails = [
        f"Message-ID: <1@a.example>\n\nDear Anna Meyer,\n{TEXTS[0]}\nhttps://a.example/u?id=1f\n",
        f"Message-ID: <2@a.example>\n\nDear Bob,\n{TEXTS[0]}\nhttps://a.example/u?id=77a0\n",
        f"Message-ID: <3@a.example>\n{deep}\n{TEXTS[1]}\n",
    ]
    inbox = tmp_path / "inbox.mbox"
    inbox.write_text("\n".join(start + mail for mail in mails))
    async with deployed(kafka, redis_url, tmp_path, profile="mail", hash_key="k" * 40) as deployment:
        done = deployment.run("produce", str(inbox), "--quiet")
        assert f"read in part {inbox}:" in done.stderr.decode()
        assert "sent 3, refused 0, 1 parse_fallback" in done.stderr.decode()
        assert done.returncode == 0
        with deployment.worker():
            await deployment.drained()
        verdicts = {said.id: said for said in await deployment.verdicts()}
        # They lie in two partitions, so either one may be the first.
        of_copies = {verdicts[name].verdict for name in ("<1@a.example>", "<2@a.example>")}
        assert of_copies == {"unique", "exact_duplicate"}
        assert verdicts["<2@a.example>"].scheme.startswith("mail-1-")
        assert verdicts["<3@a.example>"].degraded == ("parse_fallback",)
        assert await deployment.letters() == []
