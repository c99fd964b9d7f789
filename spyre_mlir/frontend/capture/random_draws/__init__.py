"""Random numbers of an exported program, as calls that say what they fill."""
