"""Documents to batches: what is trained on, in which order, with which random numbers."""
