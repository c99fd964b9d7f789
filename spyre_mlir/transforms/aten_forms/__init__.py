"""Passes that write operations of a model at the aten level in forms that suit the card."""
