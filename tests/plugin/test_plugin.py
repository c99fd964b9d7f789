"""The example plugin, installed beside the package: every kind of extension, found by its entry point."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.paths import ROOT

PLUGIN = Path(__file__).with_name("acme_spyre.py")

# Runs in a process of its own: plugins are loaded once per process, and torch operators stay.
PROGRAM = """
import json, sys
import numpy as np
import torch
import acme_spyre
import spyre_mlir

acme = torch.ops.acme

class Everything(torch.nn.Module):
    def forward(self, x, w):
        y = acme.marker(acme.softer(x, 2.0))
        z = acme.blend(y, acme.twice(x), 0.25)
        return acme.total(z, [-1]), acme.largest(z), acme.largest(w), acme.median(w), acme.digest(w, 3)

torch.manual_seed(0)
x, w = torch.randn(4, 96).half(), torch.randn(4, 96)
compiled = spyre_mlir.compile(Everything(), (x, w), host_fallback="allow")
verified = compiled.verify(x, w)
compiled.save(sys.argv[1])
np.save(sys.argv[2] + "/x.npy", x.numpy())
np.save(sys.argv[2] + "/w.npy", w.numpy())
for number, result in enumerate(Everything()(x.double(), w)):
    np.save(f"{sys.argv[2]}/wanted{number}.npy", result.double().numpy())
print(json.dumps({
    "verified": bool(verified), "levels": [level.level for level in verified.levels],
    "host": sorted((step.op, step.reason) for step in compiled.host_steps),
    "aten": compiled.mlir("aten"), "kernel": compiled.mlir("spyre.kernel"),
}))
"""


def install(folder: Path, entry: str = "acme_spyre:register") -> Path:
    """What an installer leaves behind: the module, and who it says it is."""
    site = folder / "site"
    info = site / "acme_spyre-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(PLUGIN, site)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-spyre\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[spyre_mlir.plugins]\nacme = {entry}\n")
    return site


def run(python: list[str], site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT), str(site)])
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run([*python, *words], capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("plugin"))


def test_the_plugin_is_short() -> None:
    assert len(PLUGIN.read_text().splitlines()) < 100


def test_every_extension_works_at_every_level_and_from_the_saved_bundle(
    site: Path, python: list[str], tmp_path: Path
) -> None:
    done = run(python, site, "-c", PROGRAM, str(tmp_path / "bundle"), str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["verified"]
    assert found["levels"] == ["aten", "spyre.loop", "spyre.kernel", "superdsc", "bundle"]
    assert found["host"] == [
        ["acme::digest", "the op table has no entry for it"],
        ["acme::largest", "no decomposition of acme::largest is for these arguments"],
        ["acme::median", "a fallback is registered for it"],
    ]
    assert "acme::twice" not in found["aten"], "converted at import"
    assert "acme::marker" in found["aten"]
    assert '"softplus"' in found["kernel"]
    assert "softplusBeta = 2.0" in found["kernel"]
    inputs = [word for name in "xw" for word in ("--input", f"{name}={tmp_path / name}.npy")]
    results = tmp_path / "results"
    done = run(
        python, site, "-c", "import acme_spyre; from spyre_mlir.cli.run import main; main()",
        str(tmp_path / "bundle"), *inputs, "--output", str(results), "--numerics", "exact",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for number, file in enumerate(sorted(results.iterdir())):
        wanted = np.load(tmp_path / f"wanted{number}.npy")
        np.testing.assert_allclose(np.load(file).astype(np.float64), wanted, rtol=1e-3, atol=1e-3)
    assert len(list(results.iterdir())) == 5


def test_pass_of_a_plugin_is_listed(site: Path, python: list[str]) -> None:
    done = run(python, site, "-m", "spyre_mlir.cli.opt", "--list-passes")
    assert done.returncode == 0, done.stderr
    assert any(line.startswith("acme-drop-markers\tacme_spyre.") for line in done.stdout.splitlines())


def test_plugins_that_clash_are_both_named(tmp_path: Path, python: list[str]) -> None:
    site = install(tmp_path, "acme_spyre:register")
    info = site / "bolt-1.0.dist-info"
    info.mkdir()
    (site / "bolt.py").write_text("import torch\ndef register():\n    from spyre_mlir.plugins import registry\n"
        "    registry.register_fallback('acme::median')(torch.median)\n")  # fmt: skip
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bolt\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[spyre_mlir.plugins]\nbolt = bolt:register\n")
    program = tmp_path / "empty.mlir"
    program.write_text("builtin.module {}\n")
    done = run(python, site, "-m", "spyre_mlir.cli.opt", str(program))
    assert done.returncode == 1, done.stderr
    assert (
        "the plugin bolt (bolt:register) cannot be loaded: the fallback of acme::median is claimed by both "
        in done.stderr
    )
    assert "acme" in done.stderr.partition("claimed by both")[2]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("entry", "because"),
    [
        ("acme_missing:register", "No module named 'acme_missing'"),
        ("acme_spyre:absent", "has no attribute 'absent'"),
        ("acme_spyre:define", "missing 2 required positional arguments"),
        ("json:JSONDecodeError", "missing 3 required positional arguments"),
        ("os:abc", "'module' object is not callable"),
    ],
)
def test_plugin_that_cannot_be_loaded_is_named(entry: str, because: str, tmp_path: Path, python: list[str]) -> None:
    program = tmp_path / "empty.mlir"
    program.write_text("builtin.module {}\n")
    done = run(python, install(tmp_path, entry), "-m", "spyre_mlir.cli.opt", str(program))
    assert done.returncode == 1, done.stderr
    assert f"the plugin acme ({entry}) cannot be loaded" in done.stderr
    assert because in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
