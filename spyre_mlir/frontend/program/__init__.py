"""An imported program and the memory of its arguments and results."""
