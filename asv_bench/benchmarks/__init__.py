"""Benchmarks of gzkcore: one module for each idea, one class for each question.

asv finds the classes by the prefixes of their methods: `time_`, `timeraw_`, `peakmem_`, `track_`. A
class shows speed and error side by side, and the competitor beside ours. Whatever is not timed
happens in `setup`, and there too each competitor is checked to compute the same numbers.
"""
