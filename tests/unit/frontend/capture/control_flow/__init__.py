"""Unit tests of `spyre_mlir.frontend.capture.control_flow`."""
