"""Playing to be watched: button movies, keyboards, players."""
