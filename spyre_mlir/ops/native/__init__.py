"""Ops with a device function, a view or a copy of their own."""
