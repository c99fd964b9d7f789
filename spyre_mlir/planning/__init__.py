"""Plans: what a program costs at least, what its kernels do where, and what another planner would do.

`bounds` says how long any plan takes at least, `steps` what a program has to do; `divisions` and `trips` search for
plans, `packing` and `scratchpad` place buffers, `rival` and `rival_score` divide as torch-spyre's planner does.
"""
