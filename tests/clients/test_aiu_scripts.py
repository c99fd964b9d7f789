"""IBM's scripts in aiu-fms-testing-utils run on the hardware model as they are, and give what they give on the CPU.

Everything they read is written here: a tokenizer of bytes, and weights where ibm-fms leaves some uninitialised.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tests.clients.installed import needs
from tests.paths import ROOT

DISTRIBUTION = "--no-deps aiu-fms-testing-utils==0.9.0 && pip install -e '.[clients-aiu]'"
SITE = ROOT / "tests" / "clients" / "site"  # lets a torchvision of another build load
SCRIPTS = "aiu_fms_testing_utils.scripts"
RUNNER = ["-m", "spyre_mlir.torch_compile.sendnn", "--explain"]
SPECIAL = ["<s>", "</s>", "<pad>", "<unk>", "<mask>"]
SHORT = ["--max_prompt_length", "12", "--deterministic", "--no_early_termination"]
DYNAMIC = ("--compile_dynamic", "--compile_dynamic_sendnn")
SENULATOR = ["--device_type", "aiu-senulator", "--compile"]
LLAMA = ["--architecture", "llama", "--variant", "micro", *SHORT]

PAGED = """\
import runpy

from fms.models import register_model
from fms.models.llama import LLaMAConfig, _llama_factory_factory

sizes = dict(emb_dim=256, nheads=4, kvheads=2, nlayers=1, src_vocab_size=256, max_expected_seq_len=256)
register_model("llama", "tiny", _llama_factory_factory(LLaMAConfig(**sizes)))
runpy.run_module("aiu_fms_testing_utils.scripts.inference", run_name="__main__")
"""

pytestmark = pytest.mark.slow(
    reason="runs scripts of aiu-fms-testing-utils in processes of their own, where it is installed"
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a tokenizer of single bytes, no more than the 256 words of the micro models."""
    needs("aiu-fms-testing-utils", "0.9", DISTRIBUTION)
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())[: 256 - len(SPECIAL)]
    words = {word: number for number, word in enumerate([*SPECIAL, *letters])}
    made = Tokenizer(models.BPE(vocab=words, merges=[], unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.Fuse()  # the letter that stands for a byte: not every result is a text
    place = tmp_path_factory.mktemp("tokenizer")
    names = dict(zip(["bos_token", "eos_token", "pad_token", "unk_token", "mask_token"], SPECIAL, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=made, **names).save_pretrained(place)
    return place


def ran(place: Path, *words: object) -> str:
    """What a command of Python prints, with its errors; it must succeed."""
    found = [str(SITE), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(found)}
    environment |= {"HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    print(said)
    assert done.returncode == 0
    return said


def programs(said: str) -> list[tuple[str, int]]:
    """The programs in the runner's table: Dynamo's name of the graph, and launches."""
    rows = [line.split("│") for line in said.splitlines() if re.match(r"│ \d+/\d+ ", line)]
    return [(row[1].strip(), int(row[5])) for row in rows]


def on_both(place: Path, numerics: str, script: Sequence[object], given: Sequence[object], *compiled: str) -> list[str]:
    """What a script prints on the CPU without a compiler, and on the hardware model."""
    return [
        ran(place, *script, *given, "--device_type", "cpu", "--output_path", "cpu"),
        ran(
            place,
            *(*RUNNER, "--numerics", numerics, *script, *given),
            *("--device_type", "aiu-senulator", "--output_path", "aiu-senulator", "--compile", *compiled),
        ),
    ]


def texts(place: Path) -> list[str]:
    """What it generated there and there, a letter for a byte."""
    return [(place / device / "0.txt").read_text() for device in ("cpu", "aiu-senulator")]


@pytest.mark.parametrize("numerics", ["exact", "device"])
@pytest.mark.parametrize("compiled", [(), DYNAMIC], ids=["static", "dynamic"])
def test_inference(compiled: Sequence[str], numerics: str, tokenizer: Path, tmp_path: Path) -> None:
    """A program for the prompt and one for every length of the cache, of one captured graph if sizes are open."""
    given = [*LLAMA, "--tokenizer", tokenizer, "--max_new_tokens", "4", "--default_dtype", "fp16"]
    _, said = on_both(tmp_path, numerics, ["-m", f"{SCRIPTS}.inference"], given, *compiled)
    there, here = texts(tmp_path)
    assert there == here and len(there) == len("Below is an ") + 4 + 1
    assert len(programs(said)) == 4 and min(kernels for _, kernels in programs(said)) > 0
    assert len({graph for graph, _ in programs(said)}) == (2 if compiled else 4)


@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_inference_with_paged_attention(numerics: str, tokenizer: Path, tmp_path: Path) -> None:
    """The device runs the operators of ibm-fms for it; no small model of that has the heads that they want."""
    (tmp_path / "script.py").write_text(PAGED)
    given = ["--architecture", "llama", "--variant", "tiny", *SHORT, "--tokenizer", tokenizer]
    given += ["--attention_type", "paged", "--min_pad_length", "64", "--max_new_tokens", "3", "--default_dtype", "fp16"]
    _, said = on_both(tmp_path, numerics, [tmp_path / "script.py"], given, *DYNAMIC)
    there, here = texts(tmp_path)
    assert there == here
    assert "will run on the host" not in said
    assert len(programs(said)) == 2 and min(kernels for _, kernels in programs(said)) > 0


@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_validation(numerics: str, tokenizer: Path, tmp_path: Path) -> None:
    """Two prompts padded to a length, and every token compared with the model in float32."""
    words = [*RUNNER, "--numerics", numerics, "-m", f"{SCRIPTS}.validation", *LLAMA, "--tokenizer", tokenizer]
    words += ["--device_type", "aiu-senulator", "--validation_device", "cpu", "--default_dtype", "fp16"]
    words += ["--batch_size", "2", "--min_pad_length", "14", "--max_new_tokens", "3"]
    said = ran(tmp_path, *words, "--extra_get_model_kwargs", "nlayers=2")
    assert "The validation has passed! All the outputs match within threshold" in said
    assert len(programs(said)) == 3 and min(kernels for _, kernels in programs(said)) > 0


@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_run_encoders(numerics: str, tokenizer: Path, tmp_path: Path) -> None:
    """The answers for a masked word, with their probabilities to four digits."""
    for imported, version in (("datasets", "5"), ("evaluate", "0.4")):
        needs(imported, version, "-e '.[clients-aiu]'")
    from fms.models import get_model

    torch.manual_seed(0)
    model = get_model("roberta", "micro")
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.normal_(1.0 if "ln.weight" in name or "norm.weight" in name else 0.0, 0.05)
    torch.save(model.state_dict(), tmp_path / "model.pth")
    given = ["--architecture", "roberta", "--variant", "micro", "--tokenizer", tokenizer, "--deterministic"]
    given += ["--model_path", tmp_path / "model.pth"]
    answers: list[list[tuple[str, float]]] = []
    script = ["-m", f"{SCRIPTS}.run_encoders"]
    ways = ([*script, *given, "--device_type", "cpu"], [*RUNNER, "--numerics", numerics, *script, *given, *SENULATOR])
    for said in (ran(tmp_path, *words) for words in ways):
        found = re.findall(r"^\[ 0/ 1\]: (.*?) +\| +([\d.]+)$", said, re.MULTILINE)
        answers.append([(word, float(share)) for word, share in found])
    assert len(answers[0]) == 5
    assert [word for word, _ in answers[0]] == [word for word, _ in answers[1]]
    assert dict(answers[1]) == pytest.approx(dict(answers[0]), rel=0.02 if numerics == "device" else 0, abs=1e-4)
    assert sum(kernels for _, kernels in programs(said)) > 0
