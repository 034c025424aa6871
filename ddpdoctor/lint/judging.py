"""What the rules say of runs in the head: findings at their places, whichever file they are in."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from ddpdoctor.lint.engine.interpreter.loading import Text
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.telling import steps
from ddpdoctor.lint.rule import Diagnostic, Hit, Related, Rule, characters


def judge(run: Run, rules: Iterable[Rule], troubles: list[str]) -> Iterator[Diagnostic]:
    """Ask rules about one run; of a lone function that does nothing there is nothing to ask."""
    for rule in rules if run.is_entry or run.root.items else ():
        try:
            for hit in rule.check(run):
                text = run.source(hit.path or run.path)
                if text is not None:
                    yield _diagnostic(rule, hit, text)
        except RecursionError:
            troubles.append(f"{rule.code} gave up: nested too deeply")
        except Exception as error:  # a fault of ours must not hide what other rules found
            troubles.append(fault_of_ours(error, f" in {rule.code}"))


def cleared(run: Run, rules: Iterable[Rule], troubles: list[str]) -> Iterator[tuple[str, int, str]]:
    """What a run shows to be right: (file, line, code)."""
    for rule in rules:
        try:
            for node, path in rule.clears(run) if rule.clears is not None else ():
                yield path, getattr(node, "lineno", 1), rule.code
        except Exception as error:
            troubles.append(fault_of_ours(error, f" in {rule.code}"))


def fault_of_ours(error: Exception, where: str = "") -> str:
    """What is said of an exception that no file should bring about."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"a fault of ours{where} ({what}); please report it"


def _diagnostic(rule: Rule, hit: Hit, text: Text) -> Diagnostic:
    node = hit.node
    lines = text.lines
    line, start = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end_line = getattr(node, "end_lineno", None) or line
    end = getattr(node, "end_col_offset", None) or start
    if isinstance(node, ast.ExceptHandler | ast.If | ast.For | ast.While | ast.With | ast.Try):
        end_line, end = line, len(lines[line - 1].encode()) if line <= len(lines) else start
    excerpt = lines[line - 1] if line <= len(lines) else ""
    last = lines[end_line - 1] if end_line <= len(lines) else ""
    first_line, last_line, function = text.statement(line)
    notes = dict.fromkeys((*hit.notes, *steps(hit.why)))
    return Diagnostic(
        path=text.path,
        line=line,
        column=characters(excerpt, start) + 1,
        code=rule.code,
        name=rule.name,
        confidence=hit.confidence or rule.confidence,
        message=hit.message,
        notes=tuple(_told(each, text.path) for each in notes),
        help=hit.help,
        end_line=end_line,
        end_column=characters(last, end) + 1,
        function=function,
        excerpt=excerpt,
        fix=hit.fix,
        related=tuple(each for each in notes if isinstance(each, Related)),
        statement=(first_line, last_line),
        harmless=rule.harmless or hit.harmless,
        stands=hit.stands,
    )


def _told(note: str | Related, path: str) -> str:
    """A note in words, with its line; with its file too where that is another one."""
    if isinstance(note, str):
        return note
    where = f"line {note.line}" if note.path == path else f"{PurePath(note.path).name}:{note.line}"
    return f"{note.message} ({where})"
