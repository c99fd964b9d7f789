"""Stand-ins for what `vllm_spyre_next.custom_ops.rms_norm` imports of vllm; its wheel pins one build of that."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"vllm": {}},
    "handlers": {"vllm": {"class": "logging.NullHandler"}},
    "loggers": {"vllm": {}},
}


class RMSNorm(torch.nn.Module):
    """The attributes of vllm's layer that a layer for another device reads, and its dispatch to `forward_oot`."""

    def __init__(self, hidden_size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.hidden_size, self.variance_epsilon = hidden_size, eps
        self.variance_size_override, self.has_weight = None, True
        self.weight = torch.nn.Parameter(torch.ones(hidden_size))

    @staticmethod
    def register_oot(name: str) -> Callable[[type], type]:
        return lambda layer: layer


def vllm_modules(library: torch.library.Library) -> dict[str, ModuleType]:
    """What `sys.modules` must have.

    Args:
        library: takes the operator that the package registers; a fragment of the namespace ``vllm``.
    """
    layers: dict[str, torch.nn.Module] = {}
    config = SimpleNamespace(compilation_config=SimpleNamespace(static_forward_context=layers))

    def direct_register_custom_op(op_name: str, op_func: Any, mutates_args: list[str], fake_impl: Any) -> None:
        library.define(op_name + torch.library.infer_schema(op_func, mutates_args=mutates_args))
        library.impl(op_name, op_func, "CPU")
        library._register_fake(op_name, fake_impl)

    names: dict[str, dict[str, Any]] = {
        "vllm": {},
        "vllm.config": {"get_current_vllm_config": lambda: config},
        "vllm.envs": {"VLLM_CONFIGURE_LOGGING": True, "VLLM_LOGGING_CONFIG_PATH": None},
        "vllm.forward_context": {"get_forward_context": lambda: SimpleNamespace(no_compile_layers=layers)},
        "vllm.logger": {"DEFAULT_LOGGING_CONFIG": LOGGING, "init_logger": _logger},
        "vllm.model_executor": {},
        "vllm.model_executor.layers": {},
        "vllm.model_executor.layers.layernorm": {"RMSNorm": RMSNorm},
        "vllm.utils": {},
        "vllm.utils.torch_utils": {"direct_register_custom_op": direct_register_custom_op},
    }
    modules = {name: ModuleType(name) for name in names}
    for name, attributes in names.items():
        vars(modules[name]).update(attributes)
    return modules


def _logger(name: str) -> Any:
    return SimpleNamespace(debug=print, info=print)
