"""Linting a set of files: survey each, join the surveys into a project, then run and judge.

Nothing here prints, and no file can stop the others: what cannot be looked at becomes a Trouble.
"""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from ddpdoctor.lint.cache import Cache
from ddpdoctor.lint.concerned import AMONG_RANKS, SAMPLES, is_of_ranks
from ddpdoctor.lint.engine import source as sources
from ddpdoctor.lint.engine.interpreter.loading import Loader, does_something
from ddpdoctor.lint.engine.libraries import Library
from ddpdoctor.lint.engine.locator import Locator, project_root
from ddpdoctor.lint.engine.project import OF_MANY_RANKS, Project
from ddpdoctor.lint.engine.source import Source, Unreadable
from ddpdoctor.lint.engine.survey import Survey, survey
from ddpdoctor.lint.judged import Judged, together
from ddpdoctor.lint.rule import Diagnostic, Rule, Trouble

if TYPE_CHECKING:
    from ddpdoctor.lint.engine.interpreter.program import Program

_T = TypeVar("_T")
_PARALLEL_FROM = 60
_MEMO_BYTES = 4_000_000
_IMPORTED_BYTES = 400_000
_NEAR = 2
"""So many imports away from other ranks, functions that nobody calls are still run alone."""


@dataclass(slots=True)
class Surveyed:
    """What the first pass knows of one file."""

    path: str
    digest: str = ""
    size: int = 0
    survey: Survey | None = None
    words: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(slots=True)
class Result:
    """What came of linting: findings before any suppression or selection."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    """Files that are too long to have been followed to their end."""
    sources: dict[str, str] = field(default_factory=dict)
    """Text of the files that have findings, for comments and fixes."""
    cells: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """For notebooks that have findings: number and first line of each cell."""
    files: int = 0
    read: int = 0
    """How many of them are Python, and could be read."""


class Reader:
    """Reads files, keeps a few parsed ones, and knows text that is not on disk (stdin)."""

    def __init__(self, given: dict[str, bytes] | None = None) -> None:
        self._given = given or {}
        self._memo: dict[str, Source] = {}
        self._room = _MEMO_BYTES

    def data(self, path: str) -> bytes:
        """The bytes of a file. Raises Unreadable."""
        return self._given[path] if path in self._given else sources.read(path)

    def digest(self, path: str) -> str:
        """Changes with the bytes of a file; "" where it cannot be read."""
        try:
            return sources.digest(self.data(path))
        except Unreadable:
            return ""

    def source(self, path: str) -> Source:
        """The decoded file. Raises Unreadable."""
        if path in self._memo:
            return self._memo[path]
        source = sources.from_bytes(path, self.data(path))
        if len(source.text) < self._room and "istributed" in source.text:  # rules may want it
            self._room -= len(source.text)
            self._memo[path] = source
        return source


def lint(
    paths: Sequence[str],
    *,
    given: dict[str, bytes] | None = None,
    jobs: int = 1,
    cache: Cache | None = None,
    effects: Sequence[str] = (),
) -> Result:
    """Lint these files, knowing the project around them. Raises nothing for a file's sake.

    `effects` say what the user's own libraries do. Raises UnknownEffect.
    """
    _state.library = Library(effects)
    with _no_collection():
        return _lint(paths, Reader(given), jobs, cache or Cache(None))


def _lint(paths: Sequence[str], reader: Reader, jobs: int, cache: Cache) -> Result:
    pool = _Pool(jobs if len(paths) >= _PARALLEL_FROM else 1)
    surveyed = {
        each.path: each for each in _survey_all(list(dict.fromkeys(paths)), reader, pool, cache)
    }
    locator = Locator(roots(paths))
    around = _imported(surveyed, locator, reader, cache)
    everything = [*surveyed.values(), *around]
    words = {word for each in everything for word in each.words}
    known = [each.survey for each in everything if each.survey]
    project = Project(known, locator, frozenset(words))
    result = Result(files=len(surveyed))
    result.troubles = [Trouble(e.path, e.trouble) for e in surveyed.values() if e.trouble]
    wanted = [each for each in surveyed.values() if each.survey]
    result.read = len(wanted)
    judged = _run_all(wanted, everything, project, reader, pool, cache)
    for each in judged:
        result.troubles += [Trouble(each.path, trouble) for trouble in each.troubles]
    result.cut = sorted(each.path for each in judged if each.is_cut)
    for path, found in together(judged, {each.path for each in wanted}).items():
        source = reader.source(path)
        result.diagnostics += found
        result.sources[path], result.cells[path] = source.text, source.cells
    result.diagnostics.sort()
    result.troubles.sort()
    cache.close()
    return result


def imported_of(paths: Sequence[str]) -> list[str]:
    """The files that are read besides these, because these import them."""
    reader, cache = Reader(), Cache(None)
    surveyed = {path: survey_one(path, reader) for path in paths}
    return [each.path for each in _imported(surveyed, Locator(roots(paths)), reader, cache)]


# --- first pass


def survey_one(path: str, reader: Reader) -> Surveyed:
    """Survey one file; a trouble where it cannot be."""
    out = Surveyed(path)
    try:
        data = reader.data(path)
        out.words = tuple(word for word in sorted(OF_MANY_RANKS) if word.encode() in data)
        out.size = len(data)
        source = reader.source(path)
        out.digest = source.digest
        out.survey = survey(path, source.tree)
    except Unreadable as error:
        out.trouble = str(error)
    except RecursionError:
        out.trouble = "cannot be analysed: nested too deeply"
    return out


def _survey_all(paths: list[str], reader: Reader, pool: _Pool, cache: Cache) -> Iterator[Surveyed]:
    missing = []
    for path in paths:
        try:
            data = reader.data(path) if cache.is_open else b""
            known = cache.survey(path, data) if cache.is_open else None
        except Unreadable:
            known = None
        if known:
            digest, old, words = known
            yield Surveyed(path, digest, len(data), old, words)
        else:
            missing.append(path)
    for each in pool.map(_survey_here, missing, reader):
        if each.survey:
            cache.keep_survey(each.digest, each.survey, each.words)
        yield each


def _survey_here(path: str) -> Surveyed:
    return survey_one(path, _state.reader)


def _imported(
    surveyed: dict[str, Surveyed], locator: Locator, reader: Reader, cache: Cache
) -> list[Surveyed]:
    """Files outside of what is linted that it imports, from the same tree, nearest first.

    No more text than a quarter of what is linted, or than 400 kB: one file must be quick.
    """
    found: dict[str, Surveyed] = {}
    queue = deque(surveyed.values())
    room = max(_IMPORTED_BYTES, sum(each.size for each in surveyed.values()) // 4)
    while queue and room > 0:
        each = queue.popleft()
        if each.survey is None:
            continue
        for name in (*each.survey.imports.values(), *each.survey.stars):
            place = locator.locate(each.path, name)
            if place is None or place[0] in surveyed or place[0] in found or room <= 0:
                continue
            if locator.is_near(each.path, place[0]):
                new = next(iter(_survey_all([place[0]], reader, _Pool(1), cache)))
                found[place[0]] = new
                room -= new.size
                queue.append(new)
    return list(found.values())


def roots(paths: Sequence[str]) -> list[str]:
    """Folders in which the modules of these files may be."""
    if not paths:
        return []
    found: dict[str, None] = {}
    folders = list(dict.fromkeys(str(Path(path).parent) for path in paths))
    whole = {folder: Path(os.path.normpath(Path.cwd() / folder)) for folder in folders}
    projects = {folder: project_root(path) for folder, path in whole.items()}
    # Sources that came without their project's files: what they have in common is their root,
    # but for the whole disk, which nobody could look through.
    loose = [whole[folder] for folder, root in projects.items() if root is None]
    common = Path(os.path.commonpath(loose)) if loose else Path("/")
    for folder in folders:
        root = projects[folder] or (common if common != common.parent else whole[folder])
        # As the files below it are named: what they import is looked for among these.
        base = str(root) if Path(folder).is_absolute() else os.path.relpath(root)
        found[base] = None
        found[f"{base}/src"] = None
    return list(found)


# --- second pass


def _run_all(
    wanted: list[Surveyed],
    everything: list[Surveyed],
    project: Project,
    reader: Reader,
    pool: _Pool,
    cache: Cache,
) -> list[Judged]:
    """What came of running each file that has to do with other ranks."""
    paths = [each.path for each in wanted]
    concerned = _state.concerned = _concerned_files(everything, reader, project)
    around = (
        repr((project.digest(), sorted(project.surveys), _state.library.own))
        if cache.is_open
        else ""
    )
    digests: dict[str, str] = {}

    def digest(path: str) -> str:
        if path not in digests:
            digests[path] = reader.digest(path)
        return digests[path]

    found: list[Judged] = []
    missing: list[str] = []
    for path in paths:
        if path in concerned:
            known = cache.judged(path, f"{around}{concerned[path] <= _NEAR}", digest)
            found += [known] if known else []
            missing += [] if known else [path]
    if missing:
        from ddpdoctor.lint.engine.interpreter.program import Program  # late: it takes a while,
        from ddpdoctor.lint.rules import all_rules  # and what is known already needs neither

        loader = Loader(reader.source, project.locator, paths)
        _state.program = Program(loader, project.words, project.imported)
        _state.rules = all_rules()
    for each in pool.map(_run_here, missing, reader, project):
        cache.keep_judged(each, f"{around}{concerned[each.path] <= _NEAR}", digest)
        found.append(each)
    return found


def _concerned_files(
    everything: list[Surveyed], reader: Reader, project: Project
) -> dict[str, int]:
    """The files that have to do with other ranks, and by how many imports others reach one."""
    locator, is_of_many = project.locator, bool(project.words)
    importers: dict[str, set[str]] = {}
    for each in everything:
        if each.survey is not None:
            for name in (*each.survey.imports.values(), *each.survey.stars):
                if place := locator.locate(each.path, name):
                    importers.setdefault(place[0], set()).add(each.path)
    found: dict[str, int] = {}
    queue = deque(
        (each.path, 0)
        for each in everything
        if each.survey and _is_of_interest(each.path, reader, is_of_many)
    )
    while queue:
        path, distance = queue.popleft()
        if path not in found:
            found[path] = distance
            queue.extend((each, distance + 1) for each in sorted(importers.get(path, ())))
    return found


def _is_of_interest(path: str, reader: Reader, is_of_many: bool) -> bool:
    try:
        data = reader.data(path)
    except Unreadable:
        return False
    return bool(is_of_ranks(data) or (is_of_many and AMONG_RANKS.search(data)))


def _run_here(path: str) -> Judged:
    from ddpdoctor.lint import running
    from ddpdoctor.lint.judging import fault_of_ours

    assert _state.program is not None
    assert _state.project is not None
    near = _state.concerned[path] <= _NEAR
    reaching = _state.project.lines_of_interest(path)
    text = _state.reader.data(path).decode(errors="replace")
    begins = _state.library.mentions_something(text) or does_something(text)
    if not (reaching or "__main__" in text or begins or SAMPLES.search(text)):
        return Judged(path)
    try:
        return running.run_and_judge(
            path, _state.program, _state.library, _state.rules, alone=near, reaching=reaching
        )
    except Exception as error:  # a fault of ours in one file must not hide what others have
        return Judged(path, troubles=[fault_of_ours(error)])


# --- processes


class _State:
    """What a worker inherits at the fork."""

    reader = Reader()
    project: Project | None = None
    program: Program | None = None
    rules: tuple[Rule, ...] = ()
    library = Library()
    concerned: Mapping[str, int] = MappingProxyType({})


_state = _State()


class _Pool:
    """Maps over files, in forked workers where there are many."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs if hasattr(os, "fork") else 1

    def map(
        self,
        function: Callable[[str], _T],
        paths: list[str],
        reader: Reader,
        project: Project | None = None,
    ) -> Iterable[_T]:
        _state.reader, _state.project = reader, project
        if self._jobs < 2 or len(paths) < _PARALLEL_FROM:
            return [function(path) for path in paths]
        # Not at the start: one file needs neither.
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(self._jobs, get_context("fork"), initializer=gc.disable) as pool:
            return list(pool.map(function, paths, chunksize=8))


class _no_collection:
    """Syntax trees hold no garbage, and the collector walks them again and again."""

    def __enter__(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was:
            gc.enable()
