"""The cache between processes: found by the next one, missed after a plugin has changed, shared by many at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.paths import ROOT

PLUGIN = """
import helper

def register():
    from spyre_mlir.plugins import registry

    @registry.register_decomposition("relu")
    def scaled(build, self):
        return self * helper.SCALE
"""

# One process after another, each with the packages of a folder: what a call gives, and whether anything was lowered.
# They are forked by one that has loaded torch and no plugin.
ONE_BY_ONE = """
import json, os, sys, torch, spyre_mlir.api

class Relu(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def child(site):
    sys.path.insert(0, site)
    steps = []
    x = torch.arange(-2.0, 2.0)
    compiled = spyre_mlir.compile(Relu(), (x,), numerics="exact", progress=steps.append)
    return {"result": compiled(x).tolist(), "lowered": "decompose-aten" in steps}

found = []
for site in sys.argv[1:]:
    answer, said = os.pipe()
    if os.fork() == 0:
        try:
            os.write(said, json.dumps(child(site)).encode())
        finally:
            os._exit(0)
    os.close(said)
    with open(answer) as file:
        found.append(json.loads(file.read()))
print(json.dumps(found))
"""

# Children of one process, which has compiled another program, begin together; the first is killed when its entry is
# written.
MANY = """
import json, os, signal, sys, torch, spyre_mlir
from spyre_mlir.cache.store import Store

class Layer(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(torch.relu(x) * 2, -1)

folder = sys.argv[1]
x = torch.arange(512.0).reshape(8, 64) / 512
exported = torch.export.export(Layer(), (x,))
spyre_mlir.compile(torch.nn.Softmax(-1), (x,), numerics="exact", cache=False)(x)  # whatever is loaded at first use
ready, go = os.pipe()

def child(number):
    os.close(go)
    os.read(ready, 1)  # until the parent closes its end
    if number == 0:
        Store.read = lambda *_: None  # another may have been faster
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
    look(number)

def look(number, **options):
    compiled = spyre_mlir.compile(exported, numerics="exact", **options)
    error = (compiled(x) - Layer()(x)).abs().max().item()
    with open(f"{folder}/{number}.json", "w") as file:
        json.dump({"error": error, "text": compiled.mlir("superdsc")}, file)

children = []
for number in range(4):
    if (pid := os.fork()) == 0:
        try:
            child(number)
            os._exit(0)
        except BaseException as error:
            print(number, repr(error), file=sys.stderr)
        finally:
            os._exit(1)
    children.append(pid)
os.close(go)
ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
steps = []
look(0, progress=steps.append)
print(json.dumps({"ends": ends, "steps": steps}))
"""


def run(program: str, cache: Path, *words: str) -> Any:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPYRE_MLIR_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *words],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def installed(folder: Path, scale: float) -> str:
    """A plugin that computes with a number of another module, as an installer leaves it, longer ago than it starts."""
    info = folder / "acme-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[spyre_mlir.plugins]\nacme = acme:register\n")
    for name, text in (("acme.py", PLUGIN), ("helper.py", f"SCALE = {scale}\n")):
        (folder / name).write_text(text)
        os.utime(folder / name, (scale, scale))
    return str(folder)


def test_the_next_process_lowers_nothing_until_a_plugin_changes(tmp_path: Path) -> None:
    none, two, three = str(tmp_path / "none"), installed(tmp_path / "2", 2.0), installed(tmp_path / "3", 3.0)
    plain, doubled, trebled = [0.0, 0.0, 0.0, 1.0], [-4.0, -2.0, 0.0, 2.0], [-6.0, -3.0, 0.0, 3.0]
    assert run(ONE_BY_ONE, tmp_path / "cache", none, none, two, three, two) == [
        {"result": plain, "lowered": True},
        {"result": plain, "lowered": False},
        {"result": doubled, "lowered": True},
        {"result": trebled, "lowered": True},
        {"result": doubled, "lowered": False},
    ]


def test_many_at_once_and_one_killed(tmp_path: Path) -> None:
    cache, results = tmp_path / "cache", tmp_path / "results"
    results.mkdir()
    done = run(MANY, cache, str(results))
    assert done["ends"] == [-signal.SIGKILL, *[0] * 3]
    assert sorted(path.suffix for path in cache.iterdir()) == [".entry", ".part"]
    # What they left is whole: the parent took it, and lowered nothing.
    assert done["steps"] == ["import"]
    found = [json.loads((results / f"{number}.json").read_text()) for number in range(4)]
    assert max(one["error"] for one in found) < 1e-6
    assert len({one["text"] for one in found}) == 1
