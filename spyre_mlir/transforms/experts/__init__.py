"""Mixtures of experts at the aten level: where rows sorted by expert come from, and how they are computed instead."""
