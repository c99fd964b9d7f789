"""Execution of one SuperDSC, and the checks that watch it."""
