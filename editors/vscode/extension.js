// Starts spyre-lsp for files of the language and stops it with the editor.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("spyre-mlir").get("server");
  client = new LanguageClient(
    "spyre-mlir",
    "spyre-mlir",
    { command, args: ["--stdio"] },
    { documentSelector: [{ language: "spyre-mlir" }] },
  );
  return client.start();
};

exports.deactivate = () => client?.stop();
