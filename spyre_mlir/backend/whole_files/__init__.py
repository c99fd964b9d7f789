"""Files and directories that are written as a whole or not at all, and checks of those that are read."""
