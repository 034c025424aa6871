"""python docs/build.py: the site, from the pages that the repository has anyway, into build/site.

What is written once is written elsewhere: the README, the pages of the failures, the help of the
commands, the docstrings of the API. --pages writes the pages alone, which needs no mkdocs.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor import api, catalog, watch
from ddpdoctor.manual import commands
from ddpdoctor.report.pages import as_markdown

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGES = ROOT / "build" / "pages"
VERDICTS = ROOT / "reports" / "reference" / "gloo-4-ranks.md"
STACK = ROOT / "ddpdoctor" / "stack"
_READ = {
    "trainer": "It reads from top to bottom; what it calls is below, as it is met.",
    "process_group": "Who owns the group, on which device, and how a model is wrapped.",
    "samplers": "Which samples a rank sees: all of them once, over all ranks, and in a new order.",
    "loss": "What ranks with unequal slices do to a mean.",
    "ema": "Built after the wrap, and the same on all ranks.",
    "evaluation": "Exact, without padding.",
    "checkpoint": "A file is whole or not there, and no rank reads what is not written yet.",
    "resume": "As if the training had never stopped.",
    "outcome": "One rank fails: all raise the same error, and none waits.",
    "stopping": "A SIGTERM saves, and ends all ranks at the same step.",
}
"""The files of the reference stack that the site reads, and why."""
_LINKS = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "reports/reference/gloo-4-ranks.md": "failures/index.md",
}


def build(into: Path) -> None:
    """Write all pages, as mkdocs wants them."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(HERE / "pages", into)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    index = (into / "index.md").read_text(encoding="utf-8")
    (into / "index.md").write_text(index.replace("<!-- verdict -->", _verdict(readme)))
    for name in ("README", "CONTRIBUTING", "CHANGELOG"):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        (into / f"{name.lower()}.md").write_text(_linked(text, into))
    (into / "commands.md").write_text(_commands())
    (into / "api.md").write_text(_api())
    (into / "stack.md").write_text(_coded("\n".join(_stack()), "", "failures/"))
    _failures(into / "failures")


def _verdict(readme: str) -> str:
    """The first example of a verdict that the README shows."""
    match = re.search(r"^```\n\$ ddpdoctor run.*?^```$", readme, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[0]


def _linked(text: str, into: Path) -> str:
    """With links to what became of the pages that it links; other files are taken along."""
    for before, after in _LINKS.items():
        text = text.replace(f"]({before})", f"]({after})")
    for link in re.findall(r"\]\(([^):#]+)\)", text):
        if link not in _LINKS.values() and (ROOT / link).is_file():
            (into / link).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / link, into / link)
    return text


def _commands() -> str:
    parts = ["# The commands\n"]
    for command in commands():
        parts.append(f"## {command.name}\n\n{command.help}\n\n```\n{command.usage}\n```\n")
        if command.options:
            parts.append("| option | |\n| --- | --- |")
            parts += [f"| `{o.flags}` | {_cell(o.help)} |" for o in command.options]
            parts.append("")
    return "\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _api() -> str:
    parts = [f"# From Python\n\n{_prose(api)}\n"]
    for module, name in ((api, "lint"), (api, "diagnose"), (watch, "start")):
        function = getattr(module, name)
        signature = f"{module.__name__}.{name}{inspect.signature(function)}"
        parts.append(f"## {name}\n\n```python\n{signature}\n```\n\n{_prose(function)}\n")
    return "\n".join(parts)


def _prose(thing: object) -> str:
    """A docstring, with its examples as code."""
    text = inspect.cleandoc(thing.__doc__ or "")
    return re.sub(r"((?:^    .*\n?|^\n(?=    ))+)", _as_code, text, flags=re.MULTILINE)


def _as_code(match: re.Match[str]) -> str:
    lines = [line.removeprefix("    ") for line in match[1].rstrip().splitlines()]
    return "\n```python\n" + "\n".join(lines).strip() + "\n```\n"


def _stack() -> Iterator[str]:
    """The stack's own files, with what their comments say as the text between their lines."""
    yield "# The reference stack, read line by line\n"
    yield "The files of `ddpdoctor/stack/` as they are: what their comments say is the text here."
    for name, why in _READ.items():
        source = (STACK / f"{name}.py").read_text(encoding="utf-8")
        tree = ast.parse(source)
        yield f"\n## {name}.py\n\n{why}\n\n{ast.get_docstring(tree)}\n"
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield from _read(node, source.splitlines())


def _read(node: ast.FunctionDef | ast.ClassDef, lines: list[str]) -> Iterator[str]:
    """A function or a class: its docstring, then code and comments in turn."""
    yield f"\n### {node.name}\n\n{ast.get_docstring(node) or ''}\n"
    told = range(0)
    if ast.get_docstring(node):
        told = range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    shown = (lines[n - 1] for n in range(first, (node.end_lineno or 0) + 1) if n not in told)
    for is_said, part in itertools.groupby(shown, lambda line: line.lstrip().startswith("# ")):
        text = list(part)
        if is_said:
            yield "\n" + " ".join(line.strip().removeprefix("# ") for line in text) + "\n"
        elif code := "\n".join(text).strip("\n"):
            yield f"```python\n{code}\n```"


def _failures(into: Path) -> None:
    into.mkdir()
    verdicts = _verdicts()
    rows = ["# The failures\n", "| code | | family | shows as |", "| --- | --- | --- | --- |"]
    for code, entry in catalog.entries().items():
        known = ", ".join(entry.symptoms)
        rows.append(f"| [{code}]({code}.md) | {entry.title} | {entry.family} | {known} |")
        page = as_markdown(entry)
        if code in verdicts:
            page += f"\n\n## Verdicts\n\nOn 4 ranks by gloo, each performed.\n\n{verdicts[code]}"
        (into / f"{code}.md").write_text(f"{_coded(page, code)}\n")
    (into / "index.md").write_text("\n".join(rows) + "\n")


def _verdicts() -> dict[str, str]:
    """Code -> the table of what held and what did not."""
    parts = re.split(r"^## (DDP\d+) .*$", VERDICTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {code: text[text.index("| form") :].strip() for code, text in found.items()}


def _coded(page: str, own: str, folder: str = "") -> str:
    """The page, with the codes that its prose names as links to those in the folder."""
    known = catalog.entries().keys() - {own}

    def linked(match: re.Match[str]) -> str:
        code = match["code"]
        return f"[{code}]({folder}{code}.md)" if code in known else match[0]

    # What is code, a heading or a table stays as it is.
    parts = re.split(r"(^```.*?^```$|`[^`\n]*`|^#[^\n]*|^\|[^\n]*)", page, flags=re.M | re.S)
    return "".join(
        part if n % 2 else re.sub(r"\b(?P<code>DDP\d{3})\b", linked, part)
        for n, part in enumerate(parts)
    )


def main() -> int:
    """Write the pages, and the site of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", action="store_true", help="write the pages alone")
    asked = parser.parse_args()
    build(PAGES)
    if asked.pages:
        return 0
    command = [sys.executable, "-m", "mkdocs", "build", "-f", str(HERE / "mkdocs.yml")]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
