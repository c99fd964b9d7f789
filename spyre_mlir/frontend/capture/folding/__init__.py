"""What torch computes of a graph ahead of all calls."""
