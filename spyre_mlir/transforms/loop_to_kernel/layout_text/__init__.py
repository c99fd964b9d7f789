"""Layouts that are said: by the text of a program, by hints in its model, and why the others are as they are."""
