"""The agent's network: encoder, memory, heads."""
