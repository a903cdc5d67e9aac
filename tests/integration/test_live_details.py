"""Pairs and documents are shown from the shared index, to those who may see them."""

from urllib.parse import quote

from nearstream.streams.matching.family import FamilyFacts
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.stats import families
from tests.support.api import served
from tests.support.deployment import TEXTS
from tests.support.live import alert

TOKENS = "a-token-for-mail-only mail\na-token-for-all-of-them *"
NEAR = TEXTS[0].replace(" the ", " each ", 3)
AWKWARD = "https://a.example/?x=1&y=%2f#z ü/\\<b>"


async def test_a_pair_and_a_document_come_from_the_index(redis_url: str) -> None:
    async with served(redis_url) as api:
        await api.admit("a", TEXTS[0])
        await api.admit(AWKWARD, NEAR)
        name = quote(AWKWARD, safe="")
        status, pair = await api.send("GET", f"/v1/pair?newer={name}&older=a")
        assert (status, pair["relation"], pair["keys"]) == (200, "near_duplicate", None)
        assert {pair["newer"]["id"], pair["older"]["id"]} == {"a", AWKWARD}
        status, document = await api.send("GET", f"/v1/document?id={name}")
        assert (status, document["id"], document["verdict"], len(document["states"])) == (200, AWKWARD, None, 1)
        for path in (
            "/v1/pair?newer=a&older=b",
            "/v1/document?id=b",
            "/v1/document",
            "/v1/pair",
            "/v1/document?id=%00",
        ):
            assert (await api.send("GET", path))[0] == 404
        await api.admit("a", NEAR)
        _, document = await api.send("GET", "/v1/document?id=a")
        newest, oldest = document["states"]
        assert (newest["change"]["relation"], oldest["change"]) == ("version", None)


async def test_a_token_sees_documents_and_families_of_its_collections_only(redis_url: str) -> None:
    async with served(redis_url, api_token=TOKENS) as api:
        for name in ("a", "b", "c"):
            await api.admit(name, TEXTS[0], collection="news")
        await api.admit("a", TEXTS[0], collection="mail")
        for token, collection, status in (
            ("a-token-for-mail-only", "mail", 200),
            ("a-token-for-mail-only", "news", 403),
            ("a-token-for-all-of-them", "news", 200),
            ("a-wrong-token-of-somebody", "mail", 401),
        ):
            for query in (f"document?collection={collection}&id=a", f"pair?collection={collection}&newer=a&older=a"):
                found, _ = await api.send("GET", f"/v1/{query}", Authorization=f"Bearer {token}")
                assert found == status
        (family,) = await families_of(api.index)
        api.feed.alarms.add(alert(family.family_id, founder="a"))
        to_all = {"Authorization": "Bearer a-token-for-all-of-them"}
        for query in ("", "?collection=news&id=b"):
            status, told = await api.send("GET", f"/v1/families/{family.family_id}{query}", **to_all)
            assert (status, told["source"], told["family"]["size"]) == (200, "index", 3)
            assert told["family"]["founder"] == "a"
            assert [each["id"] for each in told["members"]] == ["c", "b", "a"]
            assert told["members"][0]["verdict"] is None
        assert (await api.send("GET", f"/v1/families/{'f' * 32}", **to_all))[0] == 404
        assert (await api.send("GET", f"/v1/families/{'f' * 32}?collection=news&id=unknown", **to_all))[0] == 404
        of_mail = {"Authorization": "Bearer a-token-for-mail-only"}
        assert (await api.send("GET", f"/v1/families/{family.family_id}", **of_mail))[0] == 403


async def families_of(index: RedisIndex) -> list[FamilyFacts]:
    """Return all families with a second member."""
    return [facts async for facts in families(index)]
