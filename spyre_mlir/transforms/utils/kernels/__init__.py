"""Facts of kernel ops that several passes ask for."""
