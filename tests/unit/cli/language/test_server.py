"""The language server as an editor sees it: over standard input and output, if pygls is installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from spyre_mlir.cli.language.server import make_server
from spyre_mlir.errors import InputError
from tests.paths import ROOT

URI = "file:///program.mlir"
BAD = """\
func.func @f(%x: tensor<4xf32>) {
  // 𝔘 is two units of UTF-16
  %0 = "aten.neg"(%x, %x) {𝔘} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}
""".replace(" {𝔘}", "")
GOOD = BAD.replace("(%x, %x)", "(%x)").replace("tensor<4xf32>, tensor<4xf32>)", "tensor<4xf32>)")


class Editor:
    """One end of the protocol."""

    def __init__(self, server: subprocess.Popen[bytes]) -> None:
        assert server.stdin is not None and server.stdout is not None
        self._in, self._out, self._number = server.stdin, server.stdout, 0

    def tell(self, method: str, params: Any, **more: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._in.flush()

    def ask(self, method: str, params: Any) -> Any:
        self._number += 1
        self.tell(method, params, id=self._number)
        return self.hear(lambda message: message.get("id") == self._number)["result"]

    def hear(self, wanted: Any) -> Any:
        while True:
            length = 0
            while line := self._out.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            message = json.loads(self._out.read(length))
            if wanted(message):
                return message

    def diagnostics(self) -> Any:
        method = "textDocument/publishDiagnostics"
        return self.hear(lambda message: message.get("method") == method)["params"]["diagnostics"]


@pytest.fixture
def editor() -> Iterator[Editor]:
    pytest.importorskip("pygls")
    command = [sys.executable, "-m", "spyre_mlir.cli.lsp", "--stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        made = Editor(server)
        made.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        made.tell("initialized", {})
        yield made
        made.ask("shutdown", None)
        made.tell("exit", None)
        assert server.wait() == 0


def test_an_editor_gets_errors_documentation_and_definitions(editor: Editor) -> None:
    opened = {"uri": URI, "languageId": "mlir", "version": 1, "text": BAD}
    editor.tell("textDocument/didOpen", {"textDocument": opened})
    (problem,) = editor.diagnostics()
    assert problem["range"]["start"] == {"line": 2, "character": 2}
    assert "1 operands more than the schema of aten.neg takes" in problem["message"]
    assert (problem["severity"], problem["source"]) == (1, "spyre-mlir")

    changed = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": GOOD}]}
    editor.tell("textDocument/didChange", changed)
    assert editor.diagnostics() == []

    document = {"uri": URI}
    shown = editor.ask("textDocument/hover", {"textDocument": document, "position": {"line": 2, "character": 12}})
    assert "**aten.neg**" in shown["contents"]["value"]
    assert editor.ask("textDocument/hover", {"textDocument": document, "position": {"line": 3, "character": 0}}) is None

    where = {"textDocument": document, "position": {"line": 2, "character": GOOD.splitlines()[2].index("%x")}}
    found = editor.ask("textDocument/definition", where)
    start = GOOD.splitlines()[0].index("%x")
    ends = {"start": {"line": 0, "character": start}, "end": {"line": 0, "character": start + 2}}
    assert found == {"uri": URI, "range": ends}
    name = {"textDocument": document, "position": where["position"]}
    assert editor.ask("textDocument/hover", name)["contents"]["value"].startswith("```mlir\nfunc.func @f(%x")
    nothing = {"textDocument": document, "position": {"line": 1, "character": 0}}
    assert editor.ask("textDocument/definition", nothing) is None

    editor.tell("textDocument/didChange", changed | {"contentChanges": [{"text": BAD}]})
    assert len(editor.diagnostics()) == 1
    editor.tell("textDocument/didClose", {"textDocument": document})
    assert editor.diagnostics() == []


def test_the_last_of_several_versions_is_checked_while_other_requests_are_answered(editor: Editor) -> None:
    line = "  %{0} = aten.neg(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
    large = GOOD.replace("  func.return", "".join(line.format(n) for n in range(1, 3000)) + "  func.return")
    editor.tell(
        "textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "mlir", "version": 1, "text": large}}
    )
    for version, text in enumerate([BAD, large, BAD, large + "func.func", BAD], start=2):
        changed = {"textDocument": {"uri": URI, "version": version}, "contentChanges": [{"text": text}]}
        editor.tell("textDocument/didChange", changed)
    editor.tell("textDocument/hover", {"textDocument": {"uri": URI}, "position": {"line": 2, "character": 12}}, id=99)
    first = editor.hear(lambda message: True)
    assert first["id"] == 99 and "**aten.neg**" in first["result"]["contents"]["value"]
    shown = editor.hear(lambda message: message.get("method") == "textDocument/publishDiagnostics")["params"]
    assert shown["version"] == 6
    assert [problem["range"]["start"]["line"] for problem in shown["diagnostics"]] == [2]


EXAMPLES = sorted((ROOT / "examples").glob("*.mlir"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_have_no_errors_and_every_op_and_value_is_explained(editor: Editor, path: Path) -> None:
    """A tour as an editor makes it: all ops have documentation or members, all values a definition."""
    uri, text = path.as_uri(), path.read_text()
    document, opened = {"uri": uri}, {"uri": uri, "languageId": "mlir", "version": 1, "text": text}
    editor.tell("textDocument/didOpen", {"textDocument": opened})
    assert editor.diagnostics() == []
    ops = values = 0
    for number, line in enumerate(text.splitlines()):
        for found in re.finditer(r"(?<![\w.])(?:aten|func)\.[\w.]+|%\w+", line.partition("//")[0]):
            place = {"textDocument": document, "position": {"line": number, "character": found.start() + 1}}
            if found[0].startswith("%"):
                values += 1
                (name,) = [editor.ask("textDocument/definition", place)["range"]]
                assert text.splitlines()[name["start"]["line"]][name["start"]["character"] :].startswith(found[0])
            else:
                ops += 1
                assert editor.ask("textDocument/hover", place)["contents"]["value"].startswith(f"**{found[0]}**\n\n")
    assert ops >= 4 and values >= 6


@pytest.mark.skipif(find_spec("pygls") is not None, reason="pygls is installed")
def test_without_pygls_the_error_says_what_to_install() -> None:
    with pytest.raises(InputError, match="a package that is not installed: pygls") as refused:
        make_server("1")
    assert refused.value.hint == "pip install 'spyre-mlir[lsp]'"
