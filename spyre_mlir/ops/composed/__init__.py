"""Ops made of other ops of the table."""
