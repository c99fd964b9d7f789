"""Translation of a functional ATen graph into ops of the aten dialect."""
