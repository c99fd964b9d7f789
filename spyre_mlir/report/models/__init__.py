"""Models described without compiling them to files: their contents, the support of their operations, a picture."""
