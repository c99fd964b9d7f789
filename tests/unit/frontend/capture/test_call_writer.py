"""New calls stand where the old one stood, and take over its name."""

import torch

from spyre_mlir.frontend.capture.call_writer import CallWriter, replace_node
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from tests.functions import FunctionModel

X = torch.ones(2, 3)


def test_a_call_in_the_place_of_another() -> None:
    exported = with_own_graph(torch.export.export(FunctionModel(torch.exp), (X,)))
    (node,) = exported.graph.find_nodes(op="call_function", target=torch.ops.aten.exp.default)
    write, name = CallWriter(node), node.name
    made = write(torch.ops.aten.sum.dim_IntList, write(torch.ops.aten.neg.default, node.args[0]), [1])
    assert made.meta["val"].shape == (2,)
    assert made.meta["stack_trace"] == node.meta["stack_trace"]
    replace_node(node, made)
    assert made.name == name == exported.graph_signature.output_specs[0].arg.name
    exported.graph_module.recompile()
    exported.graph.lint()
    assert torch.equal(exported.graph_module(X)[0], torch.full((2,), -3.0))
