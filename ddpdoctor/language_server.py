"""`ddpdoctor lsp`: what `lint` finds, in an editor, as one types.

Diagnostics of the text as it stands, a quick fix for each finding that has one, and the page of a
code where the pointer rests on its finding.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from ddpdoctor import __version__, catalog
from ddpdoctor.lint.command import LintOptions, examine
from ddpdoctor.lint.configuration import UsageError
from ddpdoctor.lint.rule import Diagnostic
from ddpdoctor.report.pages import as_markdown

SOURCE = "ddpdoctor"
_SEVERITIES = {
    "certain": types.DiagnosticSeverity.Error,
    "likely": types.DiagnosticSeverity.Warning,
}


def serve() -> None:
    """Speak with an editor on standard input and output until it hangs up."""
    _server().start_io()


def _server() -> LanguageServer:
    server = LanguageServer(SOURCE, __version__)
    known: dict[str, tuple[int | None, list[_Seen]]] = {}

    def seen(uri: str) -> list[_Seen]:
        """What is found in a document as it is now, read once for each version of it."""
        document = server.workspace.get_text_document(uri)
        if uri not in known or known[uri][0] != document.version:
            try:
                known[uri] = document.version, _read(document)
            except UsageError as error:  # of the configuration
                told = types.LogMessageParams(types.MessageType.Warning, str(error))
                server.window_log_message(told)
                known[uri] = document.version, []
        return known[uri][1]

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def look(params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        shown = [each.shown for each in seen(uri)]
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown))

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def forget(params: types.DidCloseTextDocumentParams) -> None:
        known.pop(params.text_document.uri, None)
        gone = types.PublishDiagnosticsParams(params.text_document.uri, [])
        server.text_document_publish_diagnostics(gone)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )
    def fixes(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        return [
            types.CodeAction(
                title=each.title,
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[each.shown],
                edit=types.WorkspaceEdit(changes={uri: each.edits}),
                is_preferred=each.is_safe,
            )
            for each in seen(uri)
            if each.edits and _meet(each.shown.range, params.range)
        ]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def page(params: types.HoverParams) -> types.Hover | None:
        pointed = types.Range(params.position, params.position)
        for each in seen(params.text_document.uri):
            if _meet(each.shown.range, pointed):
                text = as_markdown(catalog.entries()[str(each.shown.code)])
                content = types.MarkupContent(types.MarkupKind.Markdown, text)
                return types.Hover(content, each.shown.range)
        return None

    return server


@dataclass(frozen=True)
class _Seen:
    """A finding as an editor is told of it."""

    shown: types.Diagnostic
    title: str
    """Of its fix."""
    edits: list[types.TextEdit]
    """Its fix; none where it has none."""
    is_safe: bool


def _read(document: TextDocument) -> list[_Seen]:
    """Lint it; nothing is found where it cannot be parsed yet. Raises UsageError."""
    options = LintOptions(paths=("-",), stdin_filename=document.path or "<editor>.py", jobs=1)
    report = examine(options, document.source.encode())
    return [_seen(each, document) for each in report.diagnostics]


def _seen(each: Diagnostic, document: TextDocument) -> _Seen:
    title = each.help or f"Fix {each.code} {each.name}"
    is_safe = each.fix is not None and each.fix.safe
    shown = types.Diagnostic(
        range=_range(_begin(each), _end(each), document),
        message="\n".join([each.message, *each.notes, *([each.help] if each.help else [])]),
        severity=_SEVERITIES[each.confidence],
        code=each.code,
        source=SOURCE,
    )
    edits = [
        types.TextEdit(_range(edit.start, edit.end, document), edit.text)
        for edit in (each.fix.edits if each.fix is not None else ())
    ]
    return _Seen(
        shown, title if is_safe else f"{title} (changes more than the bug)", edits, is_safe
    )


def _begin(each: Diagnostic) -> tuple[int, int]:
    return each.line, each.column - 1


def _end(each: Diagnostic) -> tuple[int, int]:
    return max((each.end_line, each.end_column - 1), _begin(each))


def _range(begin: tuple[int, int], end: tuple[int, int], document: TextDocument) -> types.Range:
    """From lines from 1 and columns in characters to what the editor counts in."""
    first, last = (types.Position(line - 1, column) for line, column in (begin, end))
    return document.position_codec.range_to_client_units(document.lines, types.Range(first, last))


def _meet(one: types.Range, other: types.Range) -> bool:
    return not (
        (one.end.line, one.end.character) < (other.start.line, other.start.character)
        or (other.end.line, other.end.character) < (one.start.line, one.start.character)
    )
