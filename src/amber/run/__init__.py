"""Run: train, evaluate and inspect; the one layer that joins text, tokens and networks."""
