"""Five hundred mutants of a compiled Llama layer, and who notices each: `python -m tests.mutants 500`."""
