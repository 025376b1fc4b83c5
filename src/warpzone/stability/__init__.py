"""Proof that environments can be made, played and closed again and again: real games, not stubs."""
