"""Tasks: what an encoder is fine-tuned and measured on, and how their files are read."""
