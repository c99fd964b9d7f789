"""Typed model of the SuperDSC JSON: keys, fields, and what one file says."""
