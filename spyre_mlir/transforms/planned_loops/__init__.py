"""Loops of plans: the search for them, notes of those that `plan` puts, and those that `materialize-plan` makes."""
