"""PyTorch's own database of operator samples, run through the compiler and compared with torch."""
