"""Passes that cut nests of the loop level into nests over parts of one of their loops, or join such parts."""
