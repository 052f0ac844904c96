"""Learners on features: ridge regression, classification, components, clusters."""
