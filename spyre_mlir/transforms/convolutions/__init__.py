"""Passes that choose the forms of convolutions, by what stands around them."""
