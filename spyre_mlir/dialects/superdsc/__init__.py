"""The superdsc dialect: a faithful mirror of the SuperDSC JSON, one op per file object."""
