"""Helpers that every layer uses: threads, random seeds, types, checks, wording, files."""
