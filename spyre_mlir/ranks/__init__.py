"""Programs of several cards: one bundle a rank in a folder, and all ranks in one process."""
