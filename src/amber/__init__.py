"""amber: pre-train text encoders as discriminators, on your own text."""

__version__ = "0.1.0"
