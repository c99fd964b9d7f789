"""Values in a graph that torch computes ahead of all calls."""
