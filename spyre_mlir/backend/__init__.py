"""Bundle files: SuperDSC JSON, bundle directories, the host program."""
