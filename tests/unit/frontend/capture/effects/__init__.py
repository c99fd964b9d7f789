"""Unit tests of `spyre_mlir.frontend.capture.random_draws`."""
