"""Calling convention of a compiled program: arguments, results, memory they share."""
