"""The networks: embeddings, encoder, heads, initial weights, and their folders."""
