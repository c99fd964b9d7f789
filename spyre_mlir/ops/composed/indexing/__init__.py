"""Composed gathers, scatters, masks and rearrangements."""
