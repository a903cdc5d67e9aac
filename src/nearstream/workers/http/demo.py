"""Serve the live page over a made-up day, in one process without Kafka and Redis."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from functools import partial

from aiohttp import web

from nearstream.schemas.checks.check import CheckAnswer
from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.streams.matching.checking import answer, found_in_text
from nearstream.streams.matching.looking_up import find, look_up, newcomer
from nearstream.streams.relations.verdict import BELOW_MIN_LENGTH
from nearstream.workers.http.application import application, listening
from nearstream.workers.http.live.details import Stored
from nearstream.workers.http.live.replay import Replay
from nearstream.workers.http.live_routes import add_live_routes
from nearstream.workers.http.openapi import CHECK_PATH
from nearstream.workers.http.operator import add_operator_routes
from nearstream.workers.http.reading import MAIL_TYPE, read_document, type_of
from nearstream.workers.http.requests import json_response, read_record, refusal, refused_unread, status_of
from nearstream.workers.http.silencing import add_silence_route, say_nowhere
from nearstream.workers.pipeline.deployment import Deployment


async def serve_demo(
    deployment: Deployment, examples: Sequence[Document], speed: float, opened: Callable[[str], None]
) -> None:
    """Serve the live page until SIGINT or SIGTERM.

    Args:
        deployment: The deployment, of which only the scheme, the limits and the address count.
        examples: Documents with texts, from which the day is made.
        speed: How many seconds of the day pass in a second.
        opened: Called with the address of the page once it answers.

    Raises:
        SettingsError: The address cannot be used.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    replay = Replay(deployment, examples, speed)
    app = application(deployment.settings.api_token)
    add_live_routes(app, replay.feed, Stored(deployment, replay.states))
    add_silence_route(app, replay.feed, say_nowhere)
    add_operator_routes(app, replay.feed, deployment, None)
    app.router.add_post(CHECK_PATH, partial(_check, deployment, replay))
    async with listening(app, deployment.settings.api) as address:
        await replay.warm_up()
        running = asyncio.create_task(replay.run())
        opened(f"http://{address}/")
        try:
            await asyncio.wait({running, asyncio.create_task(stopped.wait())}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            running.cancel()


async def _check(deployment: Deployment, replay: Replay, request: web.Request) -> web.Response:
    """Answer what a text is to the documents of the day, without adding it."""
    refused = refused_unread(request, deployment.document_limits.value_bytes)
    if refused is not None:
        return refused
    try:
        record = await read_record(request, deployment.document_limits.value_bytes)
        if type_of(record) == MAIL_TYPE:
            return refusal(415, "unsupported_content_type", "expected a text or a JSON document in the demo")
        document = read_document(record, deployment.document_limits)
    except InvalidMessageError as error:
        return refusal(status_of(error.reason), error.reason, error.detail)
    signature = deployment.signer().sign(*document)
    if not signature.n_bytes:
        scheme = deployment.scheme.name
        return json_response(CheckAnswer(verdict="unknown", scheme=scheme, low_confidence=(BELOW_MIN_LENGTH,)))
    asked = newcomer(signature, deployment.scheme, deployment.key, deployment.thresholds)
    near = await look_up(replay.index, asked)
    text = document.document.text or ""
    found = found_in_text(find(asked, near), text, deployment.scheme.text)
    return json_response(answer(found, deployment.settings.bulk_count))
