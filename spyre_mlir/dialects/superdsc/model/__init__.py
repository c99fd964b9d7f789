"""Typed model of the SuperDSC JSON: keys, fields, and the descriptor of one file.

Decision: docs/decisions/0030-a-typed-model-of-the-format.md
"""
