"""Weights of a program: from models, state dicts and checkpoints, checked by name, shape and type."""
