"""Regular expressions mean the same in every patch release of Python that nearstream runs on."""

import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Python 3.11.0 to 3.11.4 match some texts that they should not: https://github.com/python/cpython/issues/106052
_POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")


def possessive_groups(code: str) -> list[str]:
    strings = (token for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.type == tokenize.STRING)
    return [token.string for token in strings if _POSSESSIVE_GROUP.search(token.string)]


def test_no_group_is_possessive() -> None:
    files = [path for path in (ROOT / "src").rglob("*.py") if possessive_groups(path.read_text())]
    assert not files, "write (?>(?:...)*), with a bound where a stranger decides how often"


def test_the_check_finds_one() -> None:
    for quantifier in ("*+", "++", "?+", "{2,}+", "{0,8}+"):
        assert possessive_groups(f'_HEAD = re.compile(rb"(?:a?b){quantifier}c")\n')
    assert not possessive_groups('_HEAD = re.compile(rb"(?>(?:a?b)*)c[ab]*+")\n')
