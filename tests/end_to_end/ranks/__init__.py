"""Programs of several ranks, each rank a process of its own."""
