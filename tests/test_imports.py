"""The rules of the rooms: which part of the package may import which.

They are checked on the source, so that an import inside a function counts as well, except for the
rule on torch, which is about what is imported when the program starts.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "ddpdoctor"
MAY_IMPORT = {
    "stack": (),
    "watch": ("evidence",),
    "diagnose": ("evidence", "catalog"),
    "annotate": ("evidence", "catalog", "lint"),
}
WITHOUT_TORCH = ("lint", "catalog", "environment", "cli", "hosts")
MAY_NAME_CODES = ("diagnose", "annotate", "lint", "environment", "probe")


@dataclass(frozen=True)
class Import:
    """One module that a file imports."""

    file: str
    line: int
    module: str
    at_start: bool
    """Not inside a function, nor under TYPE_CHECKING."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def imports_of(package: Path, file: Path) -> Iterator[Import]:
    parts = file.relative_to(package.parent).with_suffix("").parts
    here = parts if file.name == "__init__.py" else parts[:-1]
    here = tuple(part for part in here if part != "__init__")

    def visit(node: ast.AST, at_start: bool) -> Iterator[Import]:
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            # `from package import module` is an import of package.module, if there is one.
            modules = [f"{module}.{alias.name}" for alias in node.names]
        for module in modules:
            yield Import(
                str(file.relative_to(package)), getattr(node, "lineno", 0), module, at_start
            )
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        )
        for child in ast.iter_child_nodes(node):
            yield from visit(child, at_start and not later)

    yield from visit(ast.parse(file.read_text(encoding="utf-8")), True)


def files_of(package: Path, room: str) -> list[Path]:
    module = package / f"{room}.py"
    return [module] if module.exists() else sorted((package / room).rglob("*.py"))


def strays(package: Path, room: str, allowed: tuple[str, ...]) -> list[str]:
    """Imports of the rest of the package that this room may not have."""
    return [
        str(found)
        for file in files_of(package, room)
        for found in imports_of(package, file)
        if found.module.split(".")[0] == package.name
        and found.module.split(".")[1:2] not in ([room], *([name] for name in allowed))
    ]


def torch_at_start(package: Path, room: str) -> list[str]:
    """Imports of torch that happen as soon as this room is imported, directly or through others."""
    waiting, seen, found = files_of(package, room), set[Path](), []
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        for one in imports_of(package, file):
            if not one.at_start:
                continue
            top, *rest = one.module.split(".")
            if top == "torch":
                found.append(str(one))
            elif top == package.name:
                waiting += modules_on_the_way(package, rest)
    return sorted(found)


def modules_on_the_way(package: Path, parts: list[str]) -> Iterator[Path]:
    """The files that importing package.a.b.name runs: each __init__.py, and the module itself."""
    for length in range(len(parts) + 1):
        folder = package.joinpath(*parts[:length])
        for file in (folder / "__init__.py", folder.with_suffix(".py")):
            if file.is_file() and file.is_relative_to(package):
                yield file


def circle(package: Path, room: str) -> list[str]:
    """Modules of a room that need one another, also where one imports the other late."""
    needs = {
        str(file.relative_to(package)): {
            str(other.relative_to(package))
            for one in imports_of(package, file)
            if one.module.split(".")[:2] == [package.name, room]
            for other in [*modules_on_the_way(package, one.module.split(".")[1:])][-1:]
            if other.name != "__init__.py"
        }
        for file in files_of(package, room)
    }
    while leaves := [name for name, others in needs.items() if not others & needs.keys()]:
        for name in leaves:
            del needs[name]
    return sorted(needs)


def codes_named(package: Path) -> list[str]:
    """Where a code of a pitfall stands in the program outside the rooms that are about codes."""
    places = []
    for file in sorted(package.rglob("*.py")):
        name = file.relative_to(package)
        if name.parts[0] in (*MAY_NAME_CODES, "reproducers"):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        documented = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        places += [
            f"{name}:{node.lineno} names {node.value!r}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documented
            and re.search(r"DDP[1-7]\d\d", node.value)
        ]
    return places


@pytest.mark.parametrize(("room", "allowed"), MAY_IMPORT.items(), ids=MAY_IMPORT)
def test_a_room_imports_only_what_it_may(room: str, allowed: tuple[str, ...]) -> None:
    assert files_of(PACKAGE, room)
    assert strays(PACKAGE, room, allowed) == []


def test_what_readers_give_needs_none_of_them() -> None:
    assert circle(PACKAGE, "postmortem") == []


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_a_room_that_must_start_fast_imports_no_torch_when_it_starts(room: str) -> None:
    assert torch_at_start(PACKAGE, room) == []


def test_adding_a_pitfall_touches_no_other_room() -> None:
    assert codes_named(PACKAGE) == []


def test_help_and_pages_are_shown_without_torch() -> None:
    code = (
        "import sys; from ddpdoctor import cli\n"
        "for asked in '--help', 'check --list', 'check --help', 'explain --all':\n"
        "    assert cli.run(asked.split()) == 0\n"
        "    print('torch' in sys.modules, file=sys.stderr)\n"
        "print('ddpdoctor.evidence.events' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )
    assert all(
        told in done.stdout for told in ("Commands", "unused-parameters", "--nproc", "# DDP")
    )
    assert done.stderr.split() == ["False"] * 5, "nor with what only readers of logs need"


def _imported_by(arguments: list[str], code: int, interesting: set[str]) -> str:
    program = (
        "import sys; from ddpdoctor import cli\n"
        f"assert cli.run({arguments!r}) == {code}\n"
        f"print(sorted({interesting!r} & {{*sys.modules}}), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )
    return done.stderr.strip()


def test_a_file_is_linted_without_what_only_reports_and_many_files_need(tmp_path: Path) -> None:
    file = tmp_path / "clean.py"
    file.write_text("import torch.distributed as dist\n\ndist.barrier()\n")
    slow = {"pydantic", "rich", "multiprocessing", "yaml", "torch"}
    assert _imported_by(["lint", "--no-cache", str(file)], 0, slow) == "[]"


def test_findings_of_lint_are_told_without_what_only_readers_of_logs_need(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        "import torch.distributed as dist\n\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    )
    slow = {"ddpdoctor.evidence.whole", "yaml", "torch"}
    assert _imported_by(["lint", "--no-cache", str(file)], 1, slow) == "[]"


def test_a_page_is_shown_without_the_other_commands() -> None:
    slow = {"ddpdoctor.lint.cli", "ddpdoctor.run.cli", "ddpdoctor.train", "psutil", "torch"}
    assert _imported_by(["explain", "DDP401"], 0, slow) == "[]"


# The checks themselves: each rule is broken once in a package made for it.


def make(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "ddpdoctor"
    for name in ("stack", "watch", "diagnose", "lint", "environment", *map(os.path.dirname, files)):
        (package / name).mkdir(parents=True, exist_ok=True)
        (package / name / "__init__.py").touch()
    for name, text in files.items():
        (package / name).write_text(text)
    return package


@pytest.mark.parametrize(
    ("file", "text", "stray"),
    [
        ("stack/a.py", "from ddpdoctor import evidence", "ddpdoctor.evidence"),
        ("stack/a.py", "from ddpdoctor.catalog import load", "ddpdoctor.catalog.load"),
        ("stack/a.py", "import ddpdoctor", "ddpdoctor"),
        ("stack/b/a.py", "from ... import evidence", "ddpdoctor.evidence"),
        ("stack/__init__.py", "from ..watch import log", "ddpdoctor.watch.log"),
        ("watch/a.py", "def f():\n    import ddpdoctor.catalog", "ddpdoctor.catalog"),
        ("watch/a.py", "try:\n    from ..launch import job\nexcept E: ...", "ddpdoctor.launch.job"),
        ("diagnose/b/a.py", "from ddpdoctor.watch.log import Log", "ddpdoctor.watch.log.Log"),
    ],
)
def test_an_import_from_the_wrong_room_is_found(
    tmp_path: Path, file: str, text: str, stray: str
) -> None:
    package = make(tmp_path, {file: text})
    room = file.split("/")[0]
    found = strays(package, room, MAY_IMPORT[room])
    assert [one.split(" imports ") for one in found] == [
        [f"{file}:{text.count(chr(10), 0, text.index('import')) + 1}", stray]
    ]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("stack/a.py", "import torch\nfrom ddpdoctor.stack import b\nfrom . import c"),
        ("stack/b/a.py", "from ..c import d\nfrom .e import f"),
        ("watch/a.py", "from ddpdoctor.evidence import Place\nfrom ddpdoctor import evidence"),
        (
            "diagnose/a.py",
            "from ddpdoctor import catalog\nfrom ddpdoctor.diagnose.case import C",
        ),
    ],
)
def test_an_import_from_the_right_room_is_let_pass(tmp_path: Path, file: str, text: str) -> None:
    package = make(tmp_path, {file: text})
    room = file.split("/")[0]
    assert strays(package, room, MAY_IMPORT[room]) == []


USES_TORCH = {"stack/ema.py": "import torch"}


@pytest.mark.parametrize(
    ("catalog", "others", "found"),
    [
        ("import torch", {}, True),
        ("from torch.distributed import barrier", {}, True),
        ("try:\n    import torch\nexcept ImportError: ...", {}, True),
        ("from ddpdoctor.stack import ema", USES_TORCH, True),
        ("from .stack.ema import EMA", {"stack/__init__.py": "import torch"}, True),
        ("import ddpdoctor.a", {"a.py": "from . import b", "b.py": "import torch"}, True),
        ("def load():\n    import torch", {}, False),
        ("if TYPE_CHECKING:\n    from torch import Tensor", {}, False),
        ("def load():\n    from .stack import ema", USES_TORCH, False),
        ("import torchmetrics", USES_TORCH, False),
    ],
)
def test_torch_at_the_start_is_found_through_other_modules_too(
    tmp_path: Path, catalog: str, others: dict[str, str], found: bool
) -> None:
    package = make(tmp_path, {"catalog.py": catalog, **others})
    assert bool(torch_at_start(package, "catalog")) is found


def test_a_code_in_the_program_is_found_and_one_in_a_docstring_is_not(tmp_path: Path) -> None:
    package = make(
        tmp_path,
        {
            "report/a.py": '"""Of DDP101."""\nif code == "DDP201":\n    """DDP301"""\n',
            "report/b.py": 'f"{x} DDP301"\nhelp = "DDP2"\n',
            "diagnose/a.py": 'CODE = "DDP101"\n',
        },
    )
    assert codes_named(package) == [
        "report/a.py:2 names 'DDP201'",
        "report/b.py:1 names ' DDP301'",
    ]


def test_what_several_hosts_need_is_not_loaded_on_one() -> None:
    at_start = [
        str(found)
        for file in PACKAGE.rglob("*.py")
        if file.parent.name != "hosts"
        for found in imports_of(PACKAGE, file)
        if found.at_start and found.module.startswith("ddpdoctor.hosts")
    ]
    assert at_start == []
