"""Declare the commands that explain, choose bands and audit."""

from typing import TYPE_CHECKING

from nearstream.workers.cli.arguments import share, whole_number
from nearstream.workers.cli.parser_options import (
    add,
    add_collection,
    add_group,
    add_json,
    add_quiet,
    add_resemblance,
    add_since,
    add_timeout,
)

if TYPE_CHECKING:
    from nearstream.workers.cli.parser_options import Commands

DOCUMENTS_MAX = 10**12


def add_explaining_commands(commands: "Commands") -> None:
    """Add the commands that explain how two documents relate."""
    explain = add(
        commands,
        "explain",
        "explain_commands:explain_pair",
        "explain how two documents relate: keys, numbers, every rule, family, event",
        example="nearstream explain old.txt new.txt",
        no="an id is unknown",
    )
    why_not = add(
        commands,
        "why-not",
        "explain_commands:explain_loss",
        "name what kept two documents from being told as related, or their event",
        example="nearstream why-not https://a.example/1 https://a.example/2",
        no="an id is unknown",
    )
    for command in (explain, why_not):
        for name in ("a", "b"):
            command.add_argument(
                name,
                metavar=name.upper(),
                help="file with one document, file with a signature (.msgpack), or id of a document in the index (id:X "
                "is always an id)",
            )
        add_collection(command, "ids")
        add_json(command, "one JSON object")
        add_quiet(command)
        add_timeout(command, 10.0)
    _add_tune(commands)
    _add_audit(commands)


def _add_tune(commands: "Commands") -> None:
    """Add the command that chooses bands and rows."""
    tune = add(
        commands,
        "tune",
        "tune_command:show_bands",
        "choose bands and rows that find pairs of a resemblance with a recall",
        example="nearstream tune --resemblance 0.8 --recall 0.99 --sample documents.jsonl",
    )
    add_resemblance(tune, "resemblance of the pairs to be found")
    tune.add_argument(
        "--recall",
        type=share(includes_one=False),
        metavar="P",
        help="least probability of finding them (default 0.99)",
    )
    tune.add_argument(
        "--documents",
        type=whole_number(1, DOCUMENTS_MAX),
        default=1_000_000,
        metavar="N",
        help="documents in the index, for its memory (default 1000000)",
    )
    tune.add_argument(
        "--sample",
        metavar="PATH",
        help="file or folder with documents like yours: 2000 of them are compared to check the promise",
    )
    add_json(tune, "one JSON object")
    add_quiet(tune)


def _add_audit(commands: "Commands") -> None:
    """Add the commands that measure a deployment against exact methods."""
    summary = "measure a deployment on a window of its topics: recall, precision, symbols, unrelated texts"
    actions = add_group(commands, "audit", summary)
    recall = add(
        actions,
        "recall",
        "audit_command:show_recall",
        "measure which share of the similar pairs of a window was found",
        example="nearstream audit recall --since 24h --resemblance 0.8",
    )
    add_resemblance(recall, "least resemblance of the pairs")
    recall.add_argument(
        "--one-in",
        type=whole_number(1, DOCUMENTS_MAX),
        default=1,
        metavar="N",
        help="look for the partners of one document in N, among all documents (default 1)",
    )
    recall.add_argument(
        "--metrics", metavar="FILE", help="also write the result as metrics of Prometheus, as a .prom file"
    )
    precision = add(
        actions,
        "precision",
        "audit_command:show_precision",
        "measure which share of the pairs with an event belong together, by a field that no rule uses",
        example="nearstream audit precision --since 7d",
    )
    symbols = add(
        actions,
        "symbols",
        "audit_command:show_symbols",
        "measure how many bits the LD symbols of a window hold",
        example="nearstream audit symbols --since 24h",
        no="the symbols hold too few bits",
    )
    unrelated = add(
        actions,
        "unrelated",
        "audit_command:show_unrelated",
        "measure what unrelated documents of a window have in common, by length",
        example="nearstream audit unrelated --since 24h",
    )
    for command in (recall, precision, symbols, unrelated):
        add_since(command, "measure the records", None, ending=", by default 24h")
        add_json(command, "one JSON object")
        add_quiet(command)
        add_timeout(command, 10.0)
