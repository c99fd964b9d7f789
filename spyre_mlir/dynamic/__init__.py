"""Models with symbolic sizes: imported once, specialised for the sizes that calls have, saved and loaded."""
