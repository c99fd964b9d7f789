"""Name of the device."""

DEVICE = "spyre"
VARIABLE = "SPYRE_MLIR_DEVICE"  # of the environment: 1 switches the device on where torch is imported
