"""Execution of bundles and host programs, their schedule and timeline."""
