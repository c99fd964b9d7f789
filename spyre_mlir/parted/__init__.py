"""A model in which data decides sizes: programs of known sizes, with steps of the host between them."""
