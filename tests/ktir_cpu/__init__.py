"""KTIR against the interpreter of its authors, where a checkout of it is named by the variable KTIR_CPU."""
