"""Equal regions of a program: how they are found, made one function, and put back."""
