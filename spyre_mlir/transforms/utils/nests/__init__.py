"""Analyses and rewrites of nests of the loop level."""
