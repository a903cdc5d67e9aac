"""Declare every command with its arguments, and group them by who needs them.

A command names its function as `module:function` in this package. The module is imported when the command runs, so
that help and the version load nothing that only one command needs.
"""

import argparse
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearstream.workers.cli.arguments import positive_seconds
from nearstream.workers.cli.parser_explain import add_explaining_commands
from nearstream.workers.cli.parser_index import add_index_commands
from nearstream.workers.cli.parser_options import add, add_json, add_listener, add_paths, add_since, add_timeout
from nearstream.workers.cli.parser_topics import add_dead_letter_commands, add_kafka_commands
from nearstream.workers.operations.terminal import print_line

if TYPE_CHECKING:
    from nearstream.workers.cli.parser_options import Commands

SHELLS = ("bash", "zsh", "fish")
ROLES = ("sign", "match", "decide", "alert", "all")

# Who needs which commands, in the order of the help.
GROUPS = (
    ("anybody with files, without servers", ("scan", "compare", "demo")),
    ("operators, to set up and run", ("doctor", "topics", "worker", "serve", "settings", "completion")),
    ("operators, to watch", ("lag", "families", "stats", "audit")),
    ("operators, to repair", ("dlq", "rebuild", "index")),
    ("producers and consumers of documents", ("produce", "remove", "tail", "check", "novel", "mcp", "sign")),
    ("mail servers", ("milter", "lmtp", "label")),
    ("whoever asks why two documents are related, or not", ("explain", "why-not", "inspect", "tune")),
)
FIRST_STEPS = """\
nearstream says how each document relates to those before it. Three first steps:

  nearstream scan FOLDER    which files are copies, versions or parts of each other, without any server
  nearstream demo --live    the live page over a made-up day, without any server
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
        """Print the version and exit."""
        from importlib.metadata import version

        print_line(f"nearstream {version('nearstream')}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """Names the nearest known word in place of an unknown one."""

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


class _Grouped(argparse.RawDescriptionHelpFormatter):
    """Lists the commands under those who need them."""

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        rows, told = {row.dest: row for row in action._get_subactions()}, []
        for title, names in GROUPS:
            told.append(f"  {title}:\n")
            self._indent()
            told += map(super()._format_action, [rows[name] for name in names])
            self._dedent()
        return "".join(told)


@cache
def create_parser() -> argparse.ArgumentParser:
    """Create the parser of the whole command line, once.

    `command` of its result names the function of the chosen command.
    """
    parser: argparse.ArgumentParser = _Parser(
        prog="nearstream",
        description="Find out how each arriving document relates to the documents before it.",
        epilog=_EXIT_CODES,
        formatter_class=_Grouped,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")
    _add_local_commands(commands)
    _add_server_commands(commands)
    add_kafka_commands(commands)
    add_index_commands(commands)
    add_explaining_commands(commands)
    add_dead_letter_commands(commands)
    return parser


def _add_local_commands(commands: "Commands") -> None:
    """Add the commands that need no server."""
    demo = add(
        commands,
        "demo",
        "local_commands:run_demo",
        "match the example documents and check the relations found",
        example="nearstream demo --events",
        no="too few of the known relations were found",
    )
    demo.add_argument(
        "folder", nargs="?", type=Path, help="folder with documents.jsonl and relations.jsonl (default: our examples)"
    )
    _add_choice(demo)
    demo.add_argument("--live", action="store_true", help="show the live page over a made-up day instead, until Ctrl-C")
    demo.add_argument(
        "--speed",
        type=positive_seconds,
        default=20.0,
        metavar="N",
        help="live: seconds of the day that pass in a second (default 20)",
    )
    demo.add_argument(
        "--stack",
        action="store_true",
        help="live: send the day through Kafka and Redis to workers, then clean up",
    )
    demo.add_argument("--no-open", action="store_true", help="live: print the address, open no browser")
    scan = add(
        commands,
        "scan",
        "local_commands:scan_files",
        "say what each document of files is to those before it",
        example="nearstream scan --all articles/ mirror.jsonl.gz",
    )
    add_paths(scan)
    scan.add_argument(
        "--reference",
        action="append",
        metavar="PATH",
        help="documents with which all are compared too, and that are compared with none (more than once: several)",
    )
    _add_choice(scan)
    compare = add(
        commands,
        "compare",
        "local_commands:show_comparison",
        "show how two documents relate, with all evidence",
        example="nearstream compare old.txt new.txt",
        no="the documents are unrelated",
    )
    for name in ("a", "b"):
        compare.add_argument(
            name, metavar=name.upper(), help="file with one document: a text, JSON (.json) or JSON Lines (.jsonl)"
        )
    add_json(compare, "one JSON object")
    sign = add(
        commands,
        "sign",
        "signature_commands:write_signatures",
        "print the signatures of documents",
        example="nearstream sign manuscripts/*.txt > signatures",
    )
    add_paths(sign)
    sign.add_argument(
        "--anonymous", action="store_true", help="leave out ids, URLs, labels and addresses: the id is the digest"
    )
    settings = add(
        commands,
        "settings",
        "setup_commands:show_settings",
        "list all settings with their values and meanings",
        example="nearstream settings --json",
    )
    add_json(settings, "one JSON object per line")
    completion = add(
        commands,
        "completion",
        "setup_commands:print_completion",
        "print a script that completes commands in a shell",
        example='eval "$(nearstream completion bash)"',
    )
    completion.add_argument("shell", choices=SHELLS, help="shell of the script")


def _add_server_commands(commands: "Commands") -> None:
    """Add the commands that need both Kafka and Redis."""
    worker = add(
        commands,
        "worker",
        "server_commands:start_worker",
        "run one worker process",
        example="nearstream worker match",
        no="a crash, with nothing of the batch acknowledged",
    )
    worker.add_argument("role", nargs="?", choices=ROLES, default="all", help="agents to run (all: sign and match)")
    worker.add_argument(
        "--new-group", action="store_true", help="take the place of the group that has read the topics so far"
    )
    add_timeout(worker, 30.0)
    serve = add(
        commands,
        "serve",
        "server_commands:serve_api",
        "answer over HTTP whether a document is bulk, a copy of a known one, or new, and show the live page "
        "(NEARSTREAM_API)",
        example="NEARSTREAM_API=127.0.0.1:8080 nearstream serve",
    )
    add_since(serve, "the live page begins with the events", None, ending=", by default 1h")
    add_timeout(serve, 30.0)
    mcp = add(
        commands,
        "mcp",
        "server_commands:answer_agent",
        "give an agent tools that ask the HTTP API (NEARSTREAM_API), over MCP on stdin and stdout",
        example="NEARSTREAM_API=127.0.0.1:8080 nearstream mcp",
    )
    mcp.add_argument(
        "--timeout", type=positive_seconds, default=5.0, metavar="S", help="seconds to wait for an answer (default 5)"
    )
    _add_mail_commands(commands)
    doctor = add(
        commands,
        "doctor",
        "doctor_command:check_deployment",
        "check everything a worker needs, suggest remedies",
        example="nearstream doctor --timeout 2",
        no="a check failed",
    )
    add_json(doctor, "one JSON object per line")
    add_timeout(doctor, 5.0)


def _add_mail_commands(commands: "Commands") -> None:
    """Add the commands that a mail server connects to."""
    milter = add(
        commands,
        "milter",
        "server_commands:run_milter",
        "mark each message of a mail server with the header X-Nearstream, by asking the HTTP API (NEARSTREAM_API)",
        example="nearstream milter --listen 127.0.0.1:9466",
    )
    add_listener(milter, "127.0.0.1:9466")
    lmtp = add(
        commands,
        "lmtp",
        "server_commands:run_lmtp",
        "take mail from a mail server by LMTP, and send it to Kafka",
        example="nearstream lmtp --collection inbox",
    )
    add_listener(lmtp, "127.0.0.1:9467")
    add_timeout(lmtp, 30.0)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose what is printed about documents."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--all", action="store_true", help="also print the verdicts on unique and unchanged documents")
    choice.add_argument("--events", action="store_true", help="print the events of pairs instead of the verdicts")
    add_json(parser, "verdicts, or events, as JSON Lines")
