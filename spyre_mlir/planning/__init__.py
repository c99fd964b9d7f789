"""Planning on plain numbers: packing of scratchpads, and the published rules of another planner. No IR."""
