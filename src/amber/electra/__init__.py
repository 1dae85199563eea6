"""The method: masking, sampling, the two losses, what is measured."""
