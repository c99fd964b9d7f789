"""The protocol: a server of pygls that answers with what the modules beside it find."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from spyre_mlir.cli.language.diagnostics import Diagnosis, problems_of
from spyre_mlir.cli.language.navigation import definition_of, hover_text, shown_definition, word_at
from spyre_mlir.errors import InputError
from spyre_mlir.universe import make_context

NAME = "spyre-lsp"
PAUSE = 0.2  # seconds without another change before a text is checked; a large one takes seconds


def make_server(version: str) -> Any:
    """Make a server for `.mlir` files; `start_io` of it serves one editor.

    Args:
        version: of this package.

    Raises:
        InputError: pygls is not installed.
    """
    try:
        pygls = import_module("pygls.lsp.server")
        types: Any = import_module("lsprotocol.types")
    except ImportError as error:
        raise InputError(
            f"the language server needs a package that is not installed: {error.name}",
            hint="pip install 'spyre-mlir[lsp]'",
        ) from error
    server: Any = pygls.LanguageServer(NAME, version)
    context, checks, one_by_one = make_context(), make_context(), asyncio.Lock()

    async def show(params: Any) -> None:
        """Checks a text beside the other requests, and only the last of several versions in a row."""
        uri, version = params.text_document.uri, params.text_document.version
        await asyncio.sleep(PAUSE)
        async with one_by_one:
            document = server.workspace.text_documents.get(uri)
            if document is None or document.version != version:
                return
            problems = await asyncio.to_thread(problems_of, document.source, checks)
        if document.version == version and uri in server.workspace.text_documents:
            found = [_diagnostic(types, document, one) for one in problems]
            shown = types.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=version)
            server.text_document_publish_diagnostics(shown)

    def close(params: Any) -> None:
        """Takes the errors of a file that is no longer open out of the editor's list."""
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    def hover(params: Any) -> Any:
        document, line, column = _place(server, params)
        word = word_at(document.source, line, column)
        text = None if word is None else hover_text(word, context) or shown_definition(document.source, line, column)
        contents = types.MarkupContent(kind=types.MarkupKind.Markdown, value=text or "")
        return None if text is None else types.Hover(contents=contents)

    def definition(params: Any) -> Any:
        document, line, column = _place(server, params)
        found = definition_of(document.source, line, column)
        return None if found is None else types.Location(uri=document.uri, range=_range(types, document, *found))

    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(show)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(show)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(close)
    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)
    server.feature(types.TEXT_DOCUMENT_DEFINITION)(definition)
    return server


def _place(server: Any, params: Any) -> tuple[Any, int, int]:
    document = server.workspace.get_text_document(params.text_document.uri)
    place = document.position_codec.position_from_client_units(document.lines, params.position)
    return document, place.line, place.character


def _range(types: Any, document: Any, line: int, start: int, end: int) -> Any:
    own = types.Range(types.Position(line, start), types.Position(line, end))
    return document.position_codec.range_to_client_units(document.lines, own)


def _diagnostic(types: Any, document: Any, problem: Diagnosis) -> Any:
    return types.Diagnostic(
        range=_range(types, document, problem.line, problem.start, problem.end),
        message=problem.message,
        severity=types.DiagnosticSeverity.Error,
        source="spyre-mlir",
    )
