"""Benchmarks of gzkcore: one module for each idea, one class for each question.

asv finds the classes by the prefixes of their methods: `time_`, `timeraw_`, `peakmem_`, `track_`. A
class shows speed and error together, and other libraries beside ours. Everything that is not timed
happens in `setup`, which also checks that each competitor computes the same numbers.
"""
