"""The site's pages, as they are handed to mkdocs: all are there, and every link leads somewhere."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from ddpdoctor import catalog
from ddpdoctor.manual import commands

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_docs", ROOT / "docs" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    _load().build(folder)
    return folder


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    told = (re.sub(r"[`*]", "", heading).lower() for heading in _HEADING.findall(page.read_text()))
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading)).strip("-") for heading in told}


def broken(site: Path) -> Iterator[str]:
    for page in sorted(site.rglob("*.md")):
        for link in _LINK.findall(prose(page)):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = (page.parent / file).resolve() if file else page
            if not target.is_file():
                yield f"{page.relative_to(site)}: {link}"
            elif anchor and anchor not in anchors(target):
                yield f"{page.relative_to(site)}: {link} (no such heading)"


def test_every_link_leads_somewhere(site: Path) -> None:
    assert list(broken(site)) == []
    (site / "wrong.md").write_text(
        "[a](none.md) [b](index.md#nothing) [c](index.md#where-to-go-on)"
    )
    assert list(broken(site)) == [
        "wrong.md: none.md",
        "wrong.md: index.md#nothing (no such heading)",
    ]
    (site / "wrong.md").unlink()


def test_every_failure_has_a_page_and_those_that_are_performed_have_their_verdicts(
    site: Path,
) -> None:
    index = (site / "failures" / "index.md").read_text()
    for code, entry in catalog.entries().items():
        page = (site / "failures" / f"{code}.md").read_text()
        assert page.startswith(f"# {code} {entry.title}\n")
        assert f"[{code}]({code}.md)" in index
    assert "| broken | reproduced |" in (site / "failures" / "DDP301.md").read_text()
    assert "[DDP404](DDP404.md)" in (site / "failures" / "DDP401.md").read_text()


def test_every_command_is_told_with_its_options(site: Path) -> None:
    page = (site / "commands.md").read_text()
    names = [command.name for command in commands()]
    assert {"run", "diagnose", "attach", "check", "lint", "explain", "env", "probe"} <= {*names}
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == names
    assert "`--keep-going`" in page


def test_the_reference_stack_is_read_with_every_line_of_its_code(site: Path) -> None:
    page = (site / "stack.md").read_text()
    code = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    trainer = (ROOT / "ddpdoctor/stack/trainer.py").read_text()
    fit = trainer[trainer.index("\ndef fit(") :]
    lines = [line.strip() for line in fit.splitlines()]
    shown = {line.strip() for block in code for line in block.splitlines()}
    doc = set("".join(re.findall(r'"""(.*?)"""', fit, re.DOTALL)).splitlines())
    missing = {line for line in lines if line and not line.startswith(("#", '"""'))} - shown
    assert missing <= {line.strip() for line in doc}
    assert not any(line.startswith("# ") for line in shown), "comments are the text between"
    assert "### fit" in page


def test_what_mkdocs_is_told_to_show_is_there(site: Path) -> None:
    told = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text())
    shown = [file for entry in told["nav"] for file in entry.values()]
    assert [file for file in shown if not (site / file).is_file()] == []
    assert {file.name for file in site.glob("*.md")} <= {*shown}, "and all that is there is shown"
    assert told["strict"]
    assert "--quiet" not in (ROOT / "docs" / "build.py").read_text(), "strict counts what is told"
    assert told["theme"]["font"] is False, "the page fetches nothing from elsewhere"
