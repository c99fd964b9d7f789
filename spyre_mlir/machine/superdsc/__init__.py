"""Execution of one SuperDSC, and its runtime checks."""
