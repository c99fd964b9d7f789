"""Calling convention of a compiled program: arguments, results, and the memory they share."""
