"""Explanations of plans: divisions, loops and memories of kernels, what else was looked at, and at what price."""
