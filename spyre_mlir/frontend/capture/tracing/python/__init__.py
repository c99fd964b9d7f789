"""Python code and Python state of a model that a trace has to see, or to leave alone."""
