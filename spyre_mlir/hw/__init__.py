"""Facts of the machine: numbers, formats, layout arithmetic. Plain Python and numpy, no IR."""
