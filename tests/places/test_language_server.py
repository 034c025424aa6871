"""`ddpdoctor lsp`, by a real client over its standard streams."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

BAD = """\
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

def fit(model, data, world, rank):
    sampler = DistributedSampler(data, num_replicas=world, rank=rank)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(10):
        for batch in loader:
            model(batch).backward()  # 🔥
"""


class Editor:
    """Opens a file, and remembers what it was told."""

    def __init__(self) -> None:
        self.client = LanguageClient("editor", "1")
        self.told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def listen(params: types.PublishDiagnosticsParams) -> None:
            self.told.put_nowait(params)

    async def begin(self, folder: Path) -> None:
        await self.client.start_io(sys.executable, "-m", "ddpdoctor", "lsp")
        await self.client.initialize_async(
            types.InitializeParams(types.ClientCapabilities(), root_uri=folder.as_uri())
        )
        self.client.initialized(types.InitializedParams())

    async def end(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()


def changed(uri: str, version: int, text: str) -> types.DidChangeTextDocumentParams:
    whole = types.TextDocumentContentChangeWholeDocument(text)
    return types.DidChangeTextDocumentParams(
        types.VersionedTextDocumentIdentifier(version, uri), [whole]
    )


def applied(text: str, edits: list[types.TextEdit]) -> str:
    lines = text.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda each: -each.range.start.line):
        assert edit.range.start.line == edit.range.end.line
        line = lines[edit.range.start.line]
        begin, end = edit.range.start.character, edit.range.end.character
        lines[edit.range.start.line] = line[:begin] + edit.new_text + line[end:]
    return "".join(lines)


def test_an_editor_is_shown_what_lint_finds_its_fix_and_its_page(tmp_path: Path) -> None:
    async def talk() -> None:
        editor = Editor()
        await editor.begin(tmp_path)
        try:
            await look(editor)
        finally:
            await editor.end()

    async def look(editor: Editor) -> None:
        client, uri = editor.client, (tmp_path / "train me.py").as_uri()
        document: Any = types.TextDocumentItem(uri, "python", 1, BAD)
        client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        (found,) = (await editor.told.get()).diagnostics
        assert (found.code, found.source) == ("DDP203", "ddpdoctor")
        assert BAD.splitlines()[found.range.start.line].strip().startswith("sampler = ")

        where = types.TextDocumentIdentifier(uri)
        hover = await client.text_document_hover_async(types.HoverParams(where, found.range.start))
        assert hover is not None
        assert isinstance(hover.contents, types.MarkupContent)
        assert hover.contents.value.startswith("# DDP203 ")
        away = types.HoverParams(where, types.Position(0, 0))
        assert await client.text_document_hover_async(away) is None

        (action,) = (
            await client.text_document_code_action_async(
                types.CodeActionParams(where, found.range, types.CodeActionContext([]))
            )
            or ()
        )
        assert isinstance(action, types.CodeAction)
        assert action.edit is not None
        assert action.edit.changes is not None
        mended = applied(BAD, list(action.edit.changes[uri]))
        assert "sampler.set_epoch(epoch)" in mended

        client.text_document_did_change(changed(uri, 2, mended))
        assert not (await editor.told.get()).diagnostics
        client.text_document_did_change(changed(uri, 3, "def half(:"))
        assert not (await editor.told.get()).diagnostics

    asyncio.run(asyncio.wait_for(talk(), 60))


def test_columns_are_told_as_the_editor_counts_them() -> None:
    from pygls.workspace import TextDocument

    from ddpdoctor.language_server import _range

    document = TextDocument("file:///a.py", 'print("🔥", 1)\n', 1)
    there = _range((1, 0), (1, 10), document)
    assert there.end.character == 11, "UTF-16 has two units for the flame"
