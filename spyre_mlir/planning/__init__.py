"""Plans: what a program costs at least, and what its kernels do where.

`bounds` says how long any plan takes at least, `steps` what a program has to do.
"""
