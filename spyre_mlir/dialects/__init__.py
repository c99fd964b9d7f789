"""xDSL definitions of the levels."""
