"""Classes of plugins' conversions, under the name that PyTorch-IR has for the module: calls, tensors, ops."""

from spyre_mlir.ops.call_info import NodeInfo, OpNode, TensorMeta

__all__ = ["NodeInfo", "OpNode", "TensorMeta"]
