"""From documents to token ids on the disk."""
