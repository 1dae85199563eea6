"""Fine-tune an encoder for tasks, score it and predict with it; joins examples and networks."""
