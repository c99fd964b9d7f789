"""Loops of plans: notes of those that `plan` puts, and those that `materialize-plan` makes of notes."""
