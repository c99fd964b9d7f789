"""Helpers for IR of any level: whole modules, and integers as attributes."""
