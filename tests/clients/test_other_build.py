"""A torchvision of another build than torch loads, and so does transformers beside it, in a process of its own too."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.clients.installed import needs
from tests.clients.other_build import mend
from tests.paths import ROOT

SITE = ROOT / "tests" / "clients" / "site"
IMPORTS = "import torchvision.ops, transformers; transformers.LlamaForCausalLM; print(torchvision.__version__)"


def test_it_is_mended_once() -> None:
    before = list(sys.meta_path)
    mend()  # conftest has
    assert sys.meta_path == before


def test_a_process_of_its_own_imports_it() -> None:
    needs("torchvision", "0.28", "-e '.[clients]'")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SITE), str(ROOT)])}
    words = [sys.executable, "-c", IMPORTS]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:5]) == (0, "0.28."), done.stderr
