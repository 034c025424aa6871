"""`ddpdoctor lint` without the command line: options in, exit code out."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from ddpdoctor.lint import baseline, configuration, files, fixing
from ddpdoctor.lint.cache import Cache, default_folder
from ddpdoctor.lint.configuration import Settings, UsageError
from ddpdoctor.lint.linter import Result, lint
from ddpdoctor.lint.report import Report
from ddpdoctor.lint.rule import Diagnostic, Trouble
from ddpdoctor.lint.suppression import is_suppressed
from ddpdoctor.report.gravity import FailOn
from ddpdoctor.report.output import OutputError, Page, write_file

_ROUNDS = 10
_STDIN = "-"
_UNNAMED = "<stdin>.py"
_LINE = re.compile(r"(?<=\()line (\d+)(?=\)$)")
"""Where a note says that it is."""


@dataclass(frozen=True, slots=True)
class LintOptions:
    """What the command line says."""

    paths: tuple[str, ...] = (".",)
    """Files and folders; `-` is standard input."""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    format: str = "text"
    output: Path | None = None
    colour: bool = False
    statistics: bool = False
    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    baseline: Path | None = None
    write_baseline: Path | None = None
    fail_on: FailOn = FailOn.error
    exit_zero: bool = False
    stdin_filename: str = ""
    config: Path | None = None
    jobs: int = 0
    """Processes; 0 is one per core, up to 8."""
    cache: bool = True


def run(
    options: LintOptions,
    stdin: bytes | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> int:
    """Lint and print; 0 clean, 1 findings, 2 a usage error, 3 what was named was not checked.

    What is certain is an error, what is likely a warning; where `fail_on` is unchecked, files found
    on the way that could not be checked count too.
    """
    out, err = stdout or sys.stdout, stderr or sys.stderr
    try:
        return _run(options, stdin, out, err)
    except (UsageError, OutputError) as error:
        print(f"ddpdoctor: {' '.join(str(error).split())}", file=err)
        return 2


Wanted = Callable[[str], bool]
"""Whether a code is to be told."""


@dataclass(frozen=True, slots=True)
class _Examined:
    """What came of the files that were asked for."""

    settings: Settings
    wanted: Wanted
    named: list[str]
    given: dict[str, bytes]
    result: Result
    report: Report


def examine(options: LintOptions, stdin: bytes | None = None) -> Report:
    """What there is to say of the files, with nothing printed, fixed or written.

    Raises UsageError.
    """
    return _examined(options, stdin).report


def _examined(options: LintOptions, stdin: bytes | None) -> _Examined:
    settings = configuration.load(Path(_first(options)), options.config)
    wanted = _wanted(options, settings)
    named = [path for path in options.paths if path != _STDIN]
    if "" in named:
        raise UsageError("a PATH is empty")
    if missing := [path for path in named if not Path(path).exists()]:
        raise UsageError(f"{missing[0]} does not exist")
    given = _given(options, stdin)
    paths = [*given, *files.collect(named, settings.exclude)]
    if not paths:
        raise UsageError(f"there is no Python file and no notebook in {', '.join(named)}")
    result = _lint(paths, given, options, settings.effects)
    report = _report(result, wanted, settings, options)
    return _Examined(settings, wanted, named, given, result, report)


def _run(options: LintOptions, stdin: bytes | None, out: TextIO, err: TextIO) -> int:
    seen = _examined(options, stdin)
    if missing := _nothing_read(seen):
        raise UsageError(missing)
    report, changed = seen.report, 0
    if options.fix or options.diff:
        changed = _fix(seen, options, out)
    # What stdout gets may be no report: a diff, or the source that came by standard input.
    source = options.diff or (options.fix and bool(seen.given))
    reported = not (source or options.output or options.write_baseline or options.statistics)
    for trouble in () if reported and options.format == "text" else report.troubles:
        print(f"{trouble.path}: {trouble.message}", file=err)
    if options.diff:
        return 1 if changed and not options.exit_zero else 0
    if options.write_baseline:
        count = baseline.write(options.write_baseline, report.diagnostics)
        print(f"{count} findings written to {options.write_baseline}", file=err)
        return 0
    if options.statistics:
        _emit(_statistics(report), options, out)
    elif options.output or not source:
        _emit(shown(report, options.format, colour=options.colour), options, out)
    return _exit_code(report, [*seen.named, *seen.given], options)


def _nothing_read(seen: _Examined) -> str:
    """Why there was nothing to lint in all that was meant; "" if there was something.

    Source that was named, and cannot be parsed, was there: it could not be checked.
    """
    if list(seen.given.items()) == [(_UNNAMED, b"")] and not seen.named:
        return "standard input is empty"
    sources = {*seen.given, *filter(files.is_source, seen.named)}
    unread = seen.report.troubles
    if seen.result.read or not sources.isdisjoint(each.path for each in unread):
        return ""
    more = f", and {len(unread) - 1} more" if len(unread) > 1 else ""
    first = f"{unread[0].path} {unread[0].message}"
    return f"nothing in {', '.join(seen.named)} could be read as Python: {first}{more}"


def shown(report: Report, format_: str, *, colour: bool = False) -> str:
    """The report in a format."""
    if format_ == "text" and not (report.diagnostics or report.troubles or report.cut):
        return f"{report.summary()}\n"  # all that there is of a clean file, which is most of them
    from ddpdoctor.report.model import render

    return render(report.told(), format_, Page(colour=colour))


def _first(options: LintOptions) -> str:
    first = options.paths[0] if options.paths else "."
    return options.stdin_filename or "." if first == _STDIN else first


def _given(options: LintOptions, stdin: bytes | None) -> dict[str, bytes]:
    if _STDIN not in options.paths:
        return {}
    data = sys.stdin.buffer.read() if stdin is None else stdin
    return {options.stdin_filename or _UNNAMED: data}


def _lint(
    paths: list[str], given: dict[str, bytes], options: LintOptions, effects: tuple[str, ...]
) -> Result:
    jobs = options.jobs or min(8, len(os.sched_getaffinity(0)))
    cache = Cache(default_folder() if options.cache and not given else None)
    return lint(paths, given=given, jobs=jobs, cache=cache, effects=effects)


def _wanted(options: LintOptions, settings: Settings) -> Wanted:
    select, ignore = options.select or settings.select, settings.ignore + options.ignore
    more = settings.extend_select + options.extend_select
    if not (select or ignore or more):
        return lambda code: True  # all, whichever there are: nobody need import the rules for it
    chosen = configuration.matching(select or ("DDP",)) | configuration.matching(more)
    return (chosen - configuration.matching(ignore)).__contains__


def _report(result: Result, wanted: Wanted, settings: Settings, options: LintOptions) -> Report:
    """Selection, comments and the baseline, in this order."""
    lines: dict[str, list[str]] = {}
    for path, text in result.sources.items():
        lines[path] = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    asked = [
        each
        for each in result.diagnostics
        if wanted(each.code)
        and not any(each.code.startswith(code) for code in settings.ignored_for(each.path))
    ]
    open_ones = [
        each for each in asked if not is_suppressed(each.code, lines[each.path], *each.statement)
    ]
    old = options.baseline or (settings.folder / settings.baseline if settings.baseline else None)
    if old and not options.write_baseline:
        open_ones = baseline.without(old, open_ones)
    return Report(
        diagnostics=[_in_cell(each, result) for each in open_ones],
        troubles=result.troubles,
        cut=result.cut,
        paths=options.paths,
        files=result.files,
        suppressed=len(asked) - len(open_ones),
    )


def _in_cell(each: Diagnostic, result: Result) -> Diagnostic:
    """For a notebook, lines as they count in their cell."""
    cells = result.cells.get(each.path)
    if not cells:
        return each
    number, line = _within(cells, each.line)

    def told(match: re.Match[str]) -> str:
        other, there = _within(cells, int(match[1]))
        return f"line {there}" if other == number else f"cell {other}, line {there}"

    return replace(
        each,
        cell=number,
        line=line,
        end_line=each.end_line - (each.line - line),
        notes=tuple(_LINE.sub(told, note) for note in each.notes),
        fix=None,
    )


def _within(cells: Sequence[tuple[int, int]], line: int) -> tuple[int, int]:
    """(cell, line in it) of a line of the whole notebook."""
    number, start = max((cell for cell in cells if cell[1] <= line), key=lambda cell: cell[1])
    return number, line - start + 1


def _fix(seen: _Examined, options: LintOptions, out: TextIO) -> int:
    """Apply fixes until nothing changes, or show what they would change; how many files."""
    report, given, settings = seen.report, seen.given, seen.settings
    changed = 0
    for path in sorted({each.path for each in report.diagnostics if each.fix}):
        old = text = seen.result.sources[path]
        left, fixed = [each for each in report.diagnostics if each.path == path], 0
        for _ in range(_ROUNDS):
            text, count = fixing.apply(text, fixing.fixes_of(left, unsafe=options.unsafe_fixes))
            if not count:
                break
            fixed += count
            again = lint([path], given={**given, path: text.encode()}, effects=settings.effects)
            left = _report(again, seen.wanted, settings, options).diagnostics
        if text == old:
            continue
        changed += 1
        if options.diff:
            out.write(fixing.diff(path, old, text))
            continue
        if path in given:
            out.write(text)
        else:
            _write(path, text, report)
        report.fixed += fixed
        others = [each for each in report.diagnostics if each.path != path]
        report.diagnostics = sorted([*others, *left])
    if options.fix and not options.diff:
        for path in given:
            if not report.fixed:
                out.write(given[path].decode(errors="replace"))
    return changed


def _write(path: str, text: str, report: Report) -> None:
    try:
        fixing.write(path, text)
    except (OSError, ValueError, SyntaxError) as error:
        report.troubles.append(Trouble(path, f"could not be fixed: {error}"))


def _statistics(report: Report) -> str:
    names = {each.code: each.name for each in report.diagnostics}
    counts = report.counts().most_common()
    width = len(str(counts[0][1])) if counts else 1
    return "".join(f"{count:>{width}}  {code}  {names[code]}\n" for code, count in counts)


def _emit(text: str, options: LintOptions, out: TextIO) -> None:
    if options.output:
        write_file(options.output, text)
    else:
        out.write(text)


def _exit_code(report: Report, named: Sequence[str], options: LintOptions) -> int:
    if options.exit_zero:
        return 0
    unread = {trouble.path for trouble in report.troubles}
    severities = [diagnostic.severity for diagnostic in report.diagnostics]
    return options.fail_on.exit_code(
        severities, unseen=bool(unread), asked_for=not unread.isdisjoint(named)
    )
