"""Recognition of heads, of turned channels, and of experts among operations at the aten level."""
