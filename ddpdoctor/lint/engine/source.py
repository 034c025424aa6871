"""Reading one file: bytes to text to tree, or one line that says why not."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import tokenize
import warnings
from dataclasses import dataclass, field
from pathlib import Path

MAX_BYTES = 20_000_000
_MAGIC = re.compile(r"^(\s*)([%!?]|[\w.]+\?)")


class Unreadable(Exception):
    """A file that cannot be linted; the message says why, in one line."""


@dataclass(slots=True)
class Source:
    """The text of one Python file or notebook."""

    path: str
    text: str
    digest: str
    cells: tuple[tuple[int, int], ...] = ()
    """For a notebook: number of each cell, and the line (from 1) at which it begins."""
    _tree: ast.Module | None = field(default=None, repr=False)

    @property
    def lines(self) -> list[str]:
        """The lines as the parser counts them, without line ends."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @property
    def tree(self) -> ast.Module:
        """The syntax tree. Raises Unreadable where Python cannot parse the text."""
        if self._tree is None:
            self._tree = parse(self.text)
        return self._tree


def parse(text: str) -> ast.Module:
    """Parse, with every way in which Python refuses turned into Unreadable."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise Unreadable(f"cannot be parsed: {line}{error.msg}") from error
    except RecursionError as error:
        raise Unreadable("cannot be parsed: nested too deeply") from error
    except MemoryError as error:
        raise Unreadable("cannot be parsed: nested too deeply for the parser") from error
    except ValueError as error:
        raise Unreadable(f"cannot be parsed: {error}") from error


def read(path: str) -> bytes:
    """The content of a file. Raises Unreadable."""
    try:
        file = Path(path)
        if not file.is_file():
            raise Unreadable("is not a file" if file.exists() else "does not exist")
        if file.stat().st_size > MAX_BYTES:
            raise Unreadable(f"is larger than {MAX_BYTES // 1_000_000} MB")
        return file.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Unreadable(f"cannot be read: {reason}") from error


def digest(data: bytes) -> str:
    """Changes with the bytes of a file."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def from_bytes(path: str, data: bytes) -> Source:
    """Decode as Python itself would (BOM, coding line). Raises Unreadable."""
    if path.endswith(".ipynb"):
        text, cells = _notebook(data)
        return Source(path, text, digest(data), cells)
    return Source(path, _decode(data), digest(data))


def encoding_of(data: bytes) -> str:
    """The encoding that Python would read a file in. Raises SyntaxError."""
    return tokenize.detect_encoding(io.BytesIO(data).readline)[0]


def _decode(data: bytes) -> str:
    try:
        return data.decode(encoding_of(data))
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        what = getattr(error, "reason", None) or getattr(error, "msg", None) or str(error)
        raise Unreadable(
            f"cannot be decoded: {what} (without an encoding declaration, it is UTF-8)"
        ) from error


def _notebook(data: bytes) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The code cells as one program; IPython's own lines become `pass`."""
    try:
        document = json.loads(data)
        cells = document["cells"]
        language = document.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        lines: list[str] = []
        starts: list[tuple[int, int]] = []
        for number, cell in enumerate(cells if language == "python" else (), 1):
            if cell["cell_type"] != "code":
                continue
            source = cell["source"]
            body = source if isinstance(source, str) else "".join(source)
            starts.append((number, len(lines) + 1))
            lines.extend(_without_magic(body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable("is not a notebook that can be read") from error
    return "\n".join(lines) + "\n", tuple(starts)


def _without_magic(body: str) -> list[str]:
    lines = body.split("\n")
    if lines[0].startswith("%%") and not lines[0].startswith(("%%time", "%%capture")):
        return ["pass"] * len(lines)
    return [_MAGIC.sub(r"\1pass  # ", line) if _MAGIC.match(line) else line for line in lines]
