"""Calls of a model that have an effect and no result: assertions and prints."""
