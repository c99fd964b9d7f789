"""Ranges of a program's integers, and tensors that are float32 on the device."""
