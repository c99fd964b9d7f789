"""`spyre_mlir.analyzer` has the classes of conversions, and the package has them too."""

import spyre_mlir
from spyre_mlir import analyzer
from spyre_mlir.plugins import registry


def test_the_classes_are_one_wherever_they_are_imported_from() -> None:
    assert analyzer.NodeInfo is registry.NodeInfo
    assert analyzer.OpNode is registry.OpNode is spyre_mlir.OpNode
    assert analyzer.TensorMeta is registry.TensorMeta is spyre_mlir.TensorMeta
