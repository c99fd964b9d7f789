"""The op table: one declaration says everything about an operation."""
