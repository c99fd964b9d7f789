"""Analyses and IR helpers shared by several passes."""
