"""Typed model of the SuperDSC JSON: keys, fields, and the descriptor of one file."""
