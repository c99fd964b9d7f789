"""Operations that the machine computes by rules of their own, core by core or on all cores together."""
