"""Playing for people: button movies, keyboards, players."""
