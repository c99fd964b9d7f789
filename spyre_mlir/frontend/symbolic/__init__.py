"""Symbols of exported programs: their names, sizes in them, conditions on them, and their values in a call."""
