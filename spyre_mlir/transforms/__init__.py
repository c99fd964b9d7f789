"""One pass per file; the file is named as the pass."""
