"""Models of other packages on several ranks, each divided by its own package, and what they give on this rank.

Every function gives the numbers of one rank and of `torch.compile(backend="spyre")`, and the text of its programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from spyre_mlir.torch_compile.history import programs
from tests.end_to_end.ranks.programs import WIDTH, whole_mlp

IDS = torch.arange(6).reshape(1, 6)


def _compared(model: nn.Module, whole: torch.Tensor, *given: Any, allow: str = "error", **named: Any) -> dict[str, Any]:
    """Run a divided model, twice; a graph break or an unwanted host step is an error."""

    def numbers(result: Any) -> np.ndarray[Any, Any]:
        tensor = getattr(result, "logits", result)
        return tensor.detach().numpy().copy()

    compiled: Any = torch.compile(model, backend="spyre", fullgraph=True, options={"host_fallback": allow})
    first, second = numbers(compiled(*given, **named)), numbers(compiled(*given, **named))
    made = programs(compiled)[-1]
    return {
        "one rank": whole.detach().numpy(),
        "eager": numbers(model(*given, **named)),
        "spyre": first,
        "again": second,
        "text": made.mlir("aten"),
        "steps": {step.op for step in made.host_steps},
    }


def mlp_of_dtensors() -> dict[str, Any]:
    x = torch.linspace(-1, 1, 4 * WIDTH).reshape(4, WIDTH)
    with torch.no_grad():
        model = whole_mlp()
        whole = model(x)
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        return _compared(model, whole, x)


def llama_of_dtensors() -> dict[str, Any]:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 64, "head_dim": 16}
    model = LlamaForCausalLM(LlamaConfig(num_attention_heads=4, num_key_value_heads=4, **sizes)).eval()
    columns = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
    layer = dict.fromkeys(columns, ColwiseParallel()) | dict.fromkeys(
        ("self_attn.o_proj", "mlp.down_proj"), RowwiseParallel()
    )
    with torch.no_grad():
        whole = model(IDS, use_cache=False).logits
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        parallelize_module(model, mesh, {f"model.layers.{n}.{k}": v for n in range(2) for k, v in layer.items()})
        return _compared(model, whole, IDS, use_cache=False)


def llama_of_fms() -> dict[str, Any]:
    from fms.models.llama import LLaMA, LLaMAConfig
    from fms.utils.serialization import load_state_dict_into_model
    from fms.utils.tp_wrapping import apply_tp

    torch.manual_seed(0)
    sizes = {"src_vocab_size": 64, "emb_dim": 64, "nlayers": 2, "hidden_grow_factor": 2, "multiple_of": 64}
    model = LLaMA(LLaMAConfig(nheads=4, kvheads=4, max_expected_seq_len=32, **sizes)).eval()
    model.reset_parameters()
    with torch.no_grad():
        whole, weights = model(IDS), {name: value.clone() for name, value in model.state_dict().items()}
        divided = apply_tp(model, dist.group.WORLD)
        load_state_dict_into_model(divided, weights, "llama", "fms", distributed_strategy="tp", rank=dist.get_rank())
        return _compared(divided.eval(), whole, IDS)


class RankExperts(nn.Module):
    """The experts of this rank; what others choose comes from other ranks."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        each = whole.num_experts // dist.get_world_size()
        self.first, self.act_fn = dist.get_rank() * each, whole.act_fn
        own = slice(self.first, self.first + each)
        self.gate_up, self.down = nn.Parameter(whole.gate_up_proj[own]), nn.Parameter(whole.down_proj[own])

    def forward(self, x: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x)
        for number in range(self.gate_up.shape[0]):
            weight = torch.where(chosen == self.first + number, weights, 0.0).sum(-1, keepdim=True)
            gate, up = (x @ self.gate_up[number].t()).chunk(2, -1)
            total = total + weight * ((self.act_fn(gate) * up) @ self.down[number].t())
        return funcol.all_reduce(total, "sum", dist.group.WORLD)


def mixtral_of_experts() -> dict[str, Any]:
    from transformers import MixtralConfig, MixtralForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 64, "head_dim": 16}
    config = MixtralConfig(num_attention_heads=4, num_key_value_heads=4, num_local_experts=4, **sizes)
    model: Any = MixtralForCausalLM(config).eval()
    with torch.no_grad():
        whole = model(IDS, use_cache=False).logits
        for layer in model.model.layers:
            layer.mlp.experts = RankExperts(layer.mlp.experts)
        return _compared(model, whole, IDS, allow="allow", use_cache=False)


def pipeline_of_two() -> dict[str, Any]:
    """Two stages; of four ranks, two divide a stage among them."""
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
    from torch.distributed.tensor import Replicate

    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("stages", "parts"))
    whole, number = whole_mlp(), mesh["stages"].get_local_rank()
    x = torch.linspace(-1, 1, 4 * WIDTH).reshape(4, WIDTH)
    with torch.no_grad():
        one = whole(x).numpy()
        stages: Any = whole[:2], whole[2:]
        if mesh["parts"].size() > 1:
            columns = ColwiseParallel(output_layouts=Replicate())
            parallelize_module(stages[0], mesh["parts"], {"0": columns})
            parallelize_module(stages[1], mesh["parts"], {"0": RowwiseParallel(input_layouts=Replicate())})
        compiled: Any = torch.compile(
            stages[number], backend="spyre", fullgraph=True, options={"host_fallback": "error"}
        )
        stage = PipelineStage(compiled, number, 2, torch.device("cpu"), group=mesh["stages"].get_group())
        schedule = ScheduleGPipe(stage, n_microbatches=2)
        results = [schedule.eval(*((x,) if number == 0 else ())) for _ in range(2)]
        return {
            "one rank": one,
            "results": [] if number == 0 else [r.numpy().copy() for r in results],
            "text": programs(compiled)[-1].mlir("aten"),
        }


def all_models() -> dict[str, dict[str, Any]]:
    """What every model gives that is not run by default."""
    found = {m.__name__: m() for m in (llama_of_dtensors, mixtral_of_experts, pipeline_of_two)}
    try:
        return found | {llama_of_fms.__name__: llama_of_fms()}
    except ModuleNotFoundError:
        return found


def small_models() -> dict[str, dict[str, Any]]:
    """What models give that are run by default."""
    return {m.__name__: m() for m in (mlp_of_dtensors, pipeline_of_two)}
