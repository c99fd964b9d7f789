"""`torch.compile(model, backend="spyre")`: PyTorch's own door to the compiler, found by its entry point."""

from spyre_mlir.torch_compile.backend import spyre
from spyre_mlir.torch_compile.history import Compilation, compilations, explain, forget

__all__ = ["Compilation", "compilations", "explain", "forget", "spyre"]
