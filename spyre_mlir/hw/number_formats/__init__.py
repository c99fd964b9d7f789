"""Numbers as the device stores them: rounding, bits, and their fast forms."""
