"""The optimisers and their rates."""
