"""Device memory of the machine: values, shadow state, strided access."""
