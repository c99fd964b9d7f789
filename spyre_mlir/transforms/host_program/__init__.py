"""Passes about the program of the host: launches, control flow, and what stays on the device between them."""
