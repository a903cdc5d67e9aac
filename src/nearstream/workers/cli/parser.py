"""Name every command, grouped by who needs it, with its room.

A room is a module of this package. It declares the arguments of its commands beside the functions that run them, and is
imported once one of its commands is chosen, so that the list of commands and the version load nothing of them.
"""

import argparse
from functools import cache
from pkgutil import resolve_name
from typing import Any, NoReturn

from nearstream.workers.cli.arguments import sentence
from nearstream.workers.operations.terminal import print_line

# Who needs which commands, in the order of the help. Each has the function that declares it, as `room:function`, and
# what it does.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "anybody with files, without servers": {
        "scan": ("scan:add_scan", "say what each document of files is to those before it"),
        "compare": ("compare:add_compare", "show how two documents relate, with all evidence"),
        "backtest": ("backtest:add_backtest", "say what decisions about refetches would save and miss on a log"),
        "demo": ("scan:add_demo", "scan the example documents"),
    },
    "operators, to set up and run": {
        "doctor": ("setup:add_doctor", "check everything a worker needs, suggest remedies"),
        "topics": ("topics:add_topics", "list, create or check the topics"),
        "worker": ("servers:add_worker", "run one worker process"),
        "serve": (
            "servers:add_serve",
            "answer over HTTP whether a document is bulk, a copy of a known one, or new, and show the live page "
            "(NEARSTREAM_API)",
        ),
        "settings": ("setup:add_settings", "list all settings with their values and meanings"),
    },
    "operators, to watch": {
        "lag": ("topics:add_lag", "show the consumer lag in records and seconds"),
        "stats": ("stats:add_stats", "show how large the index is, and which families are large or grow"),
    },
    "operators, to repair": {
        "dlq": ("dead_letters:add_dlq", "manage dead letters: list, show, replay, skip"),
        "rebuild": ("index:add_rebuild", "rebuild a lost index, sending no events"),
        "index": ("index:add_index", "manage schemes: list, build, switch, drop"),
    },
    "producers and consumers of documents": {
        "produce": ("send:add_produce", "send the documents of files to Kafka"),
        "remove": ("send:add_remove", "remove documents, and say which were live"),
        "tail": ("events:add_tail", "print verdicts and events as they arrive"),
        "check": (
            "check:add_check",
            "say what documents are to those in the index, or what is new in them, without adding them",
        ),
        "sign": ("check:add_sign", "print the signatures of documents"),
    },
    "mail servers": {
        "milter": (
            "servers:add_milter",
            "mark each message of a mail server with the header X-Nearstream, by asking the HTTP API (NEARSTREAM_API)",
        ),
        "label": ("send:add_label", "say of documents that they are spam, or ham: spam, ham, confirm, revoke"),
    },
    "whoever asks why": {
        "show": ("show:add_show", "show a document of the index, its family, or how two relate and why"),
    },
}
COMMANDS = {name: row for rows in GROUPS.values() for name, row in rows.items()}
FIRST_STEPS = """\
nearstream says how each document relates to those before it. Three first steps:

  nearstream scan FOLDER    which files are copies, versions or parts of each other, without any server
  nearstream demo           the relations of the example documents, without any server
  nearstream doctor         what workers on Kafka and Redis still need here

`nearstream --help` lists all commands, `nearstream COMMAND --help` shows one."""

_EXIT_CODES = """exit codes:
  0    success
  1    the answer is no, as the help of the command says, or a crash
  2    wrong usage
  65   unreadable input
  69   Kafka or Redis cannot be reached
  74   the output cannot be written
  78   settings, permissions or the index do not fit
  130  interrupted"""


class _Version(argparse.Action):
    """Prints the version, which is read from the installed package only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print_line(f"nearstream {version('nearstream')}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """Names the nearest known word in place of an unknown one, and what answers for an index in a file."""

    def error(self, message: str) -> NoReturn:
        api = "of an index in a file, ask the API or the live page of `nearstream serve --index FILE`"
        super().error(f"{message} ({api})" if " arguments: --index" in message else message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 - as argparse
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            from difflib import get_close_matches

            known = list(map(str, action.choices or ()))
            near = get_close_matches(str(value), known, 1)
            is_command = isinstance(action, argparse._SubParsersAction)
            listed = "`--help` lists all commands" if is_command else f"choose from {', '.join(known)}"
            meant = f"did you mean {near[0]}? " if near else ""
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}: {meant}{listed}") from None


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg] # which it takes in stubs only
    """Declares the arguments of the chosen command before they are parsed."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,  # noqa: ANN401 - as argparse
        option: str | None = None,
    ) -> None:
        _declare(self.choices[values[0]], values[0])
        super().__call__(parser, namespace, values, option)


class _Grouped(argparse.RawDescriptionHelpFormatter):
    """Lists the commands under those who need them."""

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        rows, told = {row.dest: row for row in action._get_subactions()}, []
        for title, names in GROUPS.items():
            told.append(f"  {title}:\n")
            self._indent()
            told += map(super()._format_action, [rows[name] for name in names])
            self._dedent()
        return "".join(told)


@cache
def create_parser() -> argparse.ArgumentParser:
    """Create the parser of the whole command line, once.

    `command` of its result is the function of the chosen command.
    """
    parser: argparse.ArgumentParser = _Parser(
        prog="nearstream",
        description="Find out how each arriving document relates to the documents before it.",
        epilog=_EXIT_CODES,
        formatter_class=_Grouped,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command", action=_Commands)
    for name, (_, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary, description=sentence(summary))
    return parser


@cache
def _declare(parser: argparse.ArgumentParser, name: str) -> None:
    resolve_name(f"nearstream.workers.cli.{COMMANDS[name][0]}")(parser)
