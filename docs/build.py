"""python docs/build.py: the site, from the pages that the repository has anyway, into build/site.

What is written once is written elsewhere: the README, the pages of the failures, the help of the
commands, the docstrings of the API. --pages writes the pages alone, which needs no mkdocs.
"""

from __future__ import annotations

import argparse
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

from ddpdoctor import api, catalog, watch
from ddpdoctor.manual import commands
from ddpdoctor.report.pages import as_markdown

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGES = ROOT / "build" / "pages"
VERDICTS = ROOT / "reports" / "reference" / "gloo-4-ranks.md"
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


def _coded(page: str, own: str) -> str:
    """The page, with the codes that its prose names as links."""
    known = catalog.entries().keys() - {own}

    def linked(match: re.Match[str]) -> str:
        code = match["code"]
        return f"[{code}]({code}.md)" if code in known else match[0]

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
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", str(HERE / "mkdocs.yml")]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
