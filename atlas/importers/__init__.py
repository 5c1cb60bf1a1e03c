"""What others wrote about their models, read into the atlas: configs, and Meta's catalogue."""
