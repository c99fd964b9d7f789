"""Damaged inputs and the tools they go to: a case is a seed, and a seed is a case."""

from __future__ import annotations

import io
import random
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

import spyre_mlir
from tests.fuzz import mutate
from tests.paths import ROOT

TOOLS = ("opt", "run", "translate", "compile")
X = torch.linspace(-1, 1, 64 * 32).reshape(64, 32)


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(32, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.relu(self.linear(x)), -1)


@dataclass
class Corpus:
    """Files to damage.

    Attributes:
        texts: IR texts with the words of a command after the file, by the tool that reads them.
        descriptors: SuperDSC files.
        bundle: a bundle directory.
        program: a saved program.
        ktir: the program as KTIR.
    """

    texts: dict[str, list[tuple[str, list[str]]]] = field(default_factory=dict)
    descriptors: list[str] = field(default_factory=list)
    bundle: Path = Path()
    program: bytes = b""
    ktir: str = ""


def corpus(folder: Path) -> Corpus:
    """Makes the files that need making."""
    made = Corpus()
    for path in sorted((ROOT / "tests" / "lit").rglob("*.mlir")):
        text = path.read_text(encoding="utf-8")
        for tool, words in _commands(text):
            made.texts.setdefault(tool, []).append((text, words))
    files = sorted((ROOT / "tests" / "data").glob("superdsc_*/*.json"))
    made.descriptors = [p.read_text(encoding="utf-8") for p in files if p.stat().st_size < 100_000]
    torch.manual_seed(0)
    model = Layer().eval()
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(model, (X,)), buffer)
    made.program = buffer.getvalue()
    compiled = spyre_mlir.compile(model, (X,))
    assert isinstance(compiled, spyre_mlir.CompiledModel)
    made.bundle = compiled.save(folder / "bundle")
    made.ktir = compiled.ktir()
    for level in ("aten", "spyre.loop", "spyre.kernel", "superdsc"):
        made.texts.setdefault("run", []).append((compiled.mlir(level), []))
        made.texts["run"].append((compiled.mlir(level, generic=True), []))
    return made


def _commands(text: str) -> list[tuple[str, list[str]]]:
    """Tool and words behind the file, of the RUN lines of a lit test."""
    found = []
    for line in text.splitlines():
        command = line.partition("RUN:")[2].replace("not ", " ").partition("|")[0].split()
        tool = command[0].removeprefix("spyre-") if command else ""
        if tool in TOOLS and "%s" in command:
            words = [w for w in command[1:] if w != "%s" and "%" not in w and not w.startswith(("2>", ">"))]
            found.append((tool, words if tool == "opt" else []))
    return found


Case = tuple[str, str, list[str]]
"""Kind, tool, and its arguments."""


def case(seed: int, files: Corpus, folder: Path) -> Case:
    """The damaged files of a seed in a folder, and the command that reads them."""
    rng = random.Random(seed)
    kind, make = KINDS[seed % len(KINDS)]
    tool, words = make(rng, files, folder)
    return kind, tool, words


def _written(folder: Path, name: str, content: str | bytes) -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return str(path)


def _text(tool: str) -> Callable[[random.Random, Corpus, Path], tuple[str, list[str]]]:
    def make(rng: random.Random, files: Corpus, folder: Path) -> tuple[str, list[str]]:
        text, words = rng.choice(files.texts[tool])
        return tool, [*words, _written(folder, "t.mlir", mutate.of_text(text, rng))]

    return make


def _to_superdsc(rng: random.Random, files: Corpus, folder: Path) -> tuple[str, list[str]]:
    text, _ = rng.choice(files.texts["run"])
    way = rng.choice((["--mlir-to-superdsc"], ["--target", "ktir"], ["--mlir-to-superdsc", "-o", str(folder / "out")]))
    return "translate", [*way, _written(folder, "t.mlir", mutate.of_text(text, rng))]


def _descriptor(rng: random.Random, files: Corpus, folder: Path) -> tuple[str, list[str]]:
    path = _written(folder, "sdsc_0.json", mutate.of_json(rng.choice(files.descriptors), rng))
    return rng.choice(
        (("translate", ["--check", path]), ("translate", ["--superdsc-to-mlir", path]), ("run", ["--no-check", path]))
    )


def _bundle(rng: random.Random, files: Corpus, folder: Path) -> tuple[str, list[str]]:
    bundle = shutil.copytree(files.bundle, folder / "b")
    path = rng.choice(sorted(p for p in bundle.rglob("*") if p.is_file()))
    if path.suffix == ".json":
        path.write_text(mutate.of_json(path.read_text(), rng), encoding="utf-8", errors="surrogatepass")
    elif path.suffix == ".mlir":
        path.write_text(mutate.of_text(path.read_text(), rng), encoding="utf-8", errors="surrogatepass")
    else:
        path.write_bytes(mutate.of_bytes(path.read_bytes(), rng))
    device = ["--numerics", "device"] if rng.random() < 0.5 else []
    return rng.choice(
        (
            ("run", [str(bundle), *device]),
            ("run", ["--no-check", str(bundle), *device]),
            ("run", ["--no-check", str(bundle), "--on-fault", "collect"]),
            ("run", ["--no-check", str(bundle), "--time"]),
            ("translate", ["--check", str(bundle)]),
            ("translate", ["--superdsc-to-mlir", str(bundle)]),
        )
    )


def _numbers(rng: random.Random, files: Corpus, folder: Path) -> tuple[str, list[str]]:
    buffer = io.BytesIO()
    np.save(buffer, X.numpy())
    data = buffer.getvalue()
    damaged = mutate.of_bytes(data[:128], rng) + data[128:] if rng.random() < 0.7 else mutate.of_bytes(data, rng)
    if rng.random() < 0.5:
        damaged = mutate.of_text(data[10:128].decode("latin-1"), rng).encode("latin-1", "replace")[:65535]
        damaged = data[:8] + len(damaged).to_bytes(2, "little") + damaged + data[128:]
    return "run", [str(files.bundle), "--no-check", "--input", f"x={_written(folder, 'x.npy', damaged)}"]


def _safetensors(rng: random.Random, files: Corpus, folder: Path) -> tuple[str, list[str]]:
    data = (files.bundle / "data.safetensors").read_bytes()
    head = rng.choice((256, len(data)))
    damaged = mutate.of_bytes(data[:head], rng) + data[head:]
    return "run", [str(files.bundle), "--no-check", "--input", _written(folder, "x.safetensors", damaged)]


def _program(rng: random.Random, files: Corpus, folder: Path) -> tuple[str, list[str]]:
    damaged = mutate.of_bytes(files.program, rng)
    if rng.random() < 0.8:
        with zipfile.ZipFile(io.BytesIO(files.program)) as archive:
            members = {m.filename: archive.read(m) for m in archive.infolist()}
        name = rng.choice(sorted(members))
        text = name.endswith(".json")
        members[name] = (
            mutate.of_json(members[name].decode(), rng).encode("utf-8", "surrogatepass")
            if text
            else mutate.of_bytes(members[name], rng)
        )
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        damaged = buffer.getvalue()
    path = _written(folder, "m.pt2", damaged)
    return "compile", [path, *rng.choice((["--info"], ["--emit", "aten"], ["--emit", "superdsc"]))]


def _ktir(rng: random.Random, files: Corpus, folder: Path) -> tuple[str, list[str]]:
    path = _written(folder, "k.mlir", mutate.of_text(files.ktir, rng))
    return rng.choice((("run", [path]), ("opt", [path])))


_FLAGS = {
    "opt": ("-p", "--pass-pipeline", "--list-passes", "-t", "mlir", "--split-input-file", "--print-op-generic", "-o",
            "decompose-aten", "builtin.module(", "fuse{", "--dump-dir", "--print-ir-after", "--verify-diagnostics"),
    "run": ("--input", "x=", "x=/dev/null", "--numerics", "device", "--seed", "-1", "--probe", "%0", "list", "--bisect",
            "--time", "--trace", "--report", "--json", "--accuracy", "--to", "superdsc",
            "--on-fault", "warn", "--nan", "fault", "--memory-limit", "0", "1T"),
    "translate": ("--check", "--superdsc-to-mlir", "--mlir-to-superdsc", "--target", "ktir", "-o", "--older-spaces"),
    "compile": ("--info", "--emit", "aten", "spyre.nest", "-o", "--target", "ktir", "--addresses", "concrete",
                "--share-files", "--loops", "unroll", "--graph", "--levels", "--report", "--sdsc-version", "TS25",
                "--json", "--explain", "--compare", "--dim", "s0=3"),
}  # fmt: skip


def _command(rng: random.Random, files: Corpus, folder: Path) -> tuple[str, list[str]]:
    tool = rng.choice(TOOLS)
    text, _ = rng.choice(files.texts["run"])
    paths = [
        str(folder), str(folder / "nothing"), str(files.bundle), "/dev/null", "", "-x", "é", "\udcff", "a\0b",
        "x" * 5000,         _written(folder, "t.mlir", text), _written(folder, "m.pt2", files.program),
    ]  # fmt: skip
    words = [rng.choice(rng.choice((_FLAGS[tool], tuple(paths)))) for _ in range(rng.randrange(6))]
    return tool, ["--" if w == "-" else w for w in words]


def _soup(rng: random.Random, files: Corpus, folder: Path) -> tuple[str, list[str]]:
    tool = rng.choice(("opt", "run"))
    return tool, [_written(folder, "t.mlir", mutate.soup(rng))]


KINDS: tuple[tuple[str, Callable[[random.Random, Corpus, Path], tuple[str, list[str]]]], ...] = (
    ("text, opt", _text("opt")),
    ("text, run", _text("run")),
    ("SuperDSC", _descriptor),
    ("bundle", _bundle),
    ("text, translate", _to_superdsc),
    ("KTIR", _ktir),
    ("text, opt", _text("opt")),
    ("SuperDSC", _descriptor),
    ("bundle", _bundle),
    (".npy", _numbers),
    ("safetensors", _safetensors),
    (".pt2", _program),
    ("command line", _command),
    ("soup", _soup),
)
