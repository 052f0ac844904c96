"""The command `gzkcore`."""
