"""The correct bundle that mutants are made from: a Llama layer of width 128, two heads, 128 tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import spyre_mlir
from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.machine.levels.run import find_function
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.mutants.image import Image, image_of, random_inputs

WIDTH, TOKENS, WORDS = 128, 128, 128


def llama_layer(directory: Path, *, names: bool = True) -> Image:
    """Compiles the layer and reads its bundle back; its weights are two sets of random numbers."""
    model, inputs = _model()
    compiled: Any = spyre_mlir.compile(model, inputs)
    compiled.save(directory)
    stored = read_bundle(directory, make_context())
    assert stored.program is not None
    values = stored.values()
    main = find_function(stored.program, "main")
    attributes: Any = main.arg_attrs or ()
    called: list[str] = [a.data["aten.name"].data for a in attributes]
    given = [values[n] if n in values else np.full((1, TOKENS), WORDS - 1) for n in called]
    superdsc = parse_module(compiled.mlir("superdsc"), make_context(), "superdsc")
    return image_of(directory, superdsc, [random_inputs(given, 1), random_inputs(given, 2)], names=names)


def _model() -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from tests.end_to_end.models import Logits

    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        intermediate_size=WIDTH + 64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    return Logits(LlamaForCausalLM(config)).eval(), (torch.randint(0, WORDS, (1, TOKENS)),)
