"""Conversion between SuperDSC JSON, ops and descriptors."""
