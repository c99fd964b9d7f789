"""Identity of values: equal for what other processes would find equal, another one for whatever computes otherwise."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spyre_mlir.cache.errors import NotCacheableError
from spyre_mlir.cache.identity import identity
from tests.paths import ROOT


def made(text: str) -> Any:
    """What a text calls `f`, as a script has it: nothing but the value itself tells two apart."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<script>", "exec"), namespace)  # noqa: S102 - texts of this file
    return namespace["f"]


PLAIN = "def f(x):\n return x + 1"
HELPED = "def g(x):\n return x * {}\ndef f(x):\n return g(x)"
BOUND = "def outer(k):\n def f(x):\n  return x * k\n return f\nf = outer({})"
CLASS = """
class Base:
    step = {base}
class f(Base):
    size = {size}
    def apply(self, x):
        return x * self.size + {added}
    @staticmethod
    def fixed():
        return {fixed}
    @property
    def half(self):
        return {half}
"""
DATACLASS = """
from dataclasses import dataclass, field
@dataclass(frozen=True)
class Made:
    a: int = {}
    b: list = field(default_factory=list)
f = Made()
"""


def of_class(**changed: int) -> str:
    return CLASS.format(**{"base": 1, "size": 2, "added": 3, "fixed": 4, "half": 5, **changed})


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        HELPED.format(2),
        BOUND.format(2),
        of_class(),
        DATACLASS.format(1),
        "f = {'a': [1, 2.5, None, (True, 'x')], 'b': {3, 1}}",
        "from functools import partial\nf = partial(max, 1)",
        "import numpy as np\ndef f(x):\n return np.tanh(x)",
        "from numpy import tanh\ndef f(x):\n return tanh(x)",
        "import logging\nlog = logging.getLogger('acme')\ndef f(x):\n log.info(x)",
        "import re\nf = re.compile('a+')",
        "import torch\nf = (torch.float16, torch.ops.aten.add.Tensor, torch.ops.aten.add)",
        "from functools import cache\n@cache\ndef f(x):\n return x",
        "from typing import TypeVar\nT = TypeVar('T')\ndef f(x):\n return T, list[int]",
        "def f(n):\n return n and f(n - 1)",
        "def g(n):\n return f(n)\ndef f(n):\n return g(n)",
        "class f:\n pass\nf.itself = f",
        "def f(n):\n return n in ALL\nALL = {f, len}",
        "x = []\nx.append(x)\nf = x",
        "import enum\nclass Kind(enum.Enum):\n A = 1\nf = Kind.A",
    ],
)
def test_the_same_text_has_the_same_identity(text: str) -> None:
    assert identity(made(text)) == identity(made("\n\n" + text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (PLAIN, "def f(x):\n return x + 2"),
        (PLAIN, "def f(x):\n return x - 1"),
        (PLAIN, "def g(x):\n return x + 1\nf = g"),
        (PLAIN, "f = lambda x: x + 1"),
        ("def f(x):\n return 0.0", "def f(x):\n return -0.0"),
        ("def f(x):\n return 1", "def f(x):\n return True"),
        ("def f(x):\n return 1", "def f(x):\n return 1.0"),
        ("def f(x, k=1):\n return x", "def f(x, k=2):\n return x"),
        ("def f(x, *, k=1):\n return x", "def f(x, *, k=2):\n return x"),
        ("def f(x):\n return x.a", "def f(x):\n return x.b"),
        ("def f(x):\n return len(x)", "len = sum\ndef f(x):\n return len(x)"),
        (HELPED.format(2), HELPED.format(3)),
        (BOUND.format(2), BOUND.format(3)),
        (BOUND.format("[1]"), BOUND.format("[2]")),
        (of_class(), of_class(base=9)),
        (of_class(), of_class(size=9)),
        (of_class(), of_class(added=9)),
        (of_class(), of_class(fixed=9)),
        (of_class(), of_class(half=9)),
        (DATACLASS.format(1), DATACLASS.format(2)),
        ("k = [1, 2]\ndef f(x):\n return k", "k = [2, 1]\ndef f(x):\n return k"),
        ("f = {'a': 1}", "f = {'a': 2}"),
        ("f = {'a': 1}", "f = {'b': 1}"),
        ("f = [1, 2]", "f = (1, 2)"),
        ("f = {1, 2}", "f = {1, 3}"),
        ("f = ['ab', 'c']", "f = ['a', 'bc']"),
        ("f = [[], []]", "x = []\nf = [x, x]"),
        ("f = [].append", "f = [1].append"),
        ("f = 'abc'.join", "f = 'abd'.join"),
        ("from functools import partial\nf = partial(max, 1)", "from functools import partial\nf = partial(max, 2)"),
        ("from functools import partial\nf = partial(max, 1)", "from functools import partial\nf = partial(min, 1)"),
        ("import re\nf = re.compile('a+')", "import re\nf = re.compile('a+', re.I)"),
        ("import numpy as np\nf = np.zeros(2)", "import numpy as np\nf = np.zeros((2, 1))"),
        ("import numpy as np\nf = np.zeros(2)", "import numpy as np\nf = np.zeros(2, int)"),
        ("import numpy as np\nf = np.zeros(2)", "import numpy as np\nf = np.array([0, -0.0])"),
        ("import torch\nf = torch.float16", "import torch\nf = torch.float32"),
        ("def g():\n return 1\nf = lambda: [g() for _ in 'a']", "def g():\n return 2\nf = lambda: [g() for _ in 'a']"),
        ("class K:\n pass\nf = K()\nf.a = 1", "class K:\n pass\nf = K()\nf.a = 2"),
        ("def f(x):\n return f.a\nf.a = 1", "def f(x):\n return f.a\nf.a = 2"),
        ("f = len", "f = sum"),
        ("f = str.upper", "f = str.lower"),
    ],
)
def test_whatever_computes_otherwise_has_another_identity(one: str, other: str) -> None:
    assert identity(made(one)) != identity(made(other))


def test_values_that_are_equal_may_be_one_object_or_two() -> None:
    """As constants of code are, by whether it was compiled or read."""
    one = (1, ("a", 2.5))
    other = (one[0], *one[1:])
    assert other == one and other is not one
    assert identity([one, one]) == identity([one, other])


def test_a_wrapped_function_is_not_its_wrapper_alone() -> None:
    wrapped = "import functools\ndef d(g):\n @functools.wraps(g)\n def w(x):\n  return g(x)\n return w\n"
    assert identity(made(f"{wrapped}@d\n{PLAIN}")) != identity(made(f"{wrapped}@d\n{PLAIN} + 1"))


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (object(), "builtins.object"),
        (threading.Lock(), "lock"),
        (itertools.count(), "itertools.count"),
        (torch.zeros(2), "torch.Tensor"),
        ((n for n in "a"), "generator"),
        ({"a": [object()]}, "builtins.object"),
        (np.array([object()]), "an array of Python objects"),
        (made("x = object()\ndef f():\n return x"), "builtins.object"),
        (made("def f(x=object()):\n return x"), "builtins.object"),
        (made("def f():\n import no_such_package"), "no_such_package has no source"),
        (type("K", (), {"__module__": "no_such_package"}), "no_such_package has no source"),
    ],
)
def test_what_no_other_process_would_recognise_is_named(value: object, what: str) -> None:
    with pytest.raises(NotCacheableError, match=what):
        identity(value)


def test_an_object_that_answers_strangely_is_refused() -> None:
    class Strange:
        @property
        def __wrapped__(self) -> object:
            raise TypeError("not so")

    with pytest.raises(NotCacheableError, match="has no identity: not so"):
        identity(Strange())


WITH_HELPER = """
from acme_helper import scale

def f(x):
    from . import near
    import acme_late
    return scale(x)
"""


def installed(folder: Path, **changed: str) -> Path:
    files = {"acme/__init__.py": WITH_HELPER, "acme/near.py": "a = 1", "acme_late.py": "b = 1"}
    files["acme_helper.py"] = "def scale(x):\n return x * 2"
    for name, text in (files | {k.replace("__", "/") + ".py": v for k, v in changed.items()}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        os.utime(folder / name, (0, 0))
    return folder


def identity_in_a_process(folder: Path, seed: int) -> str:
    program = "import acme\nfrom spyre_mlir.cache.identity import identity\nprint(identity([acme.f, {'a', 'b', 'c'}]))"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.strip()


def test_processes_agree_until_a_package_changes(tmp_path: Path) -> None:
    """The second process reads byte code that the first one wrote, and has other hashes of texts."""
    first = installed(tmp_path / "first")
    known = identity_in_a_process(first, 1)
    assert len(known) == 64
    assert identity_in_a_process(first, 2) == known
    for number, name in enumerate(("acme_helper", "acme_late", "acme__near")):
        other = installed(tmp_path / str(number), **{name: "def scale(x):\n return x * 3"})
        assert identity_in_a_process(other, 1) != known, name
