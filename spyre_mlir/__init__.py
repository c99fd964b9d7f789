"""spyre-mlir: PyTorch models to IBM Spyre through readable MLIR levels."""
