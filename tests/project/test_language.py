"""Docstrings, comments and documents use words that a Kafka or Python engineer knows."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ODD = re.compile(
    r"\b(tells?|told|untold|whoever|whom|nobody|somebody|anybody|amid|anew|borne|bears?|stands?|stood|so many|so much|"
    r"letters?|the same|on wish|is none|are none|talks? to|hears?|mended?|mends|cure[sd]?|company|holds? up|"
    r"who (is|was|has|may|reads|writes|asks|admits))\b|;",
    re.IGNORECASE,
)
ALLOWED = re.compile(r"dead[- ]letters?|who (else )?(can|could)|https?://|&[a-z]+;", re.IGNORECASE)
DIRECTIVE = re.compile(r"#\s*(noqa|type:|fmt:|pragma|!)")
COMMENT = {".lua": re.compile(r"--\s?(.*)"), ".c": re.compile(r"(?://|/\*+|^\s*\*\s)\s?(.*)")}
COMMENT[".h"] = COMMENT[".c"]
FIRST_LINE_WORDS = 16
FEW, SHARE = 2, 0.05  # of the lines of prose that a change adds
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def python_lines(source: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of docstrings and comments, and whether each begins a docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield from ((line.strip(), number == 0) for number, line in enumerate(text.splitlines()))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string):
            yield token.string.lstrip("# "), False


def lines_of(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield each line of prose in a file, and whether it begins a docstring."""
    source = path.read_text()
    if path.suffix == ".py":
        yield from python_lines(source)
    elif path.suffix == ".md":
        yield from ((line.strip(), False) for line in source.splitlines())
    else:
        found = map(COMMENT[path.suffix].search, source.splitlines())
        yield from ((match[1].strip(), False) for match in found if match)


def is_odd(line: str, is_first: bool) -> bool:
    """Return whether a reader may have to decode this line."""
    return bool(ODD.search(ALLOWED.sub(" ", line))) or (is_first and len(line.split()) > FIRST_LINE_WORDS)


def git(*arguments: str) -> str:
    """Return what git says, nothing where it fails."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_a_change_adds_few_lines_that_have_to_be_decoded() -> None:
    """Judge the lines that are added to what is published, or else to the last commit before this one."""
    bases = [git("merge-base", "HEAD", published).strip() for published in ("@{upstream}", "HEAD~1")]
    base = next(filter(None, bases), "HEAD")  # a checkout without history has no change
    prose = []
    for name in git("diff", "--name-only", "--diff-filter=d", base, "--", "src", "docs", "README.md").split():
        if Path(name).suffix in {".py", ".md", *COMMENT}:
            lines = git("diff", "--unified=0", base, "--", name).splitlines()
            added = "\n".join(line[1:].strip() for line in lines if line.startswith("+"))
            told = [(line, is_first) for line, is_first in lines_of(ROOT / name) if line and line in added]
            prose += [(f"{name}: {line}", is_odd(line, is_first)) for line, is_first in told]
    odd = [line for line, is_line_odd in prose if is_line_odd]
    assert len(odd) <= max(FEW, SHARE * len(prose)), "\n".join(odd)
