"""Programs in which a value decides a size: divided into programs of known sizes, and steps of the host between."""
