"""Files: SuperDSC JSON, bundle directories, the host program."""
