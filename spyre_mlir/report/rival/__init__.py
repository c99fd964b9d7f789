"""Plans beside those of torch-spyre's published rules."""
