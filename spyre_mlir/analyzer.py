"""What conversions of plugins are told of a call, and give back; under the name that PyTorch-IR has for the module."""

from spyre_mlir.ops.call_info import NodeInfo, OpNode, TensorMeta

__all__ = ["NodeInfo", "OpNode", "TensorMeta"]
