"""Ops, attributes and custom syntax of the superdsc dialect."""
