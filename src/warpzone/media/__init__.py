"""Pictures, videos and a window to show them in; nothing here knows the game."""
