"""The dashboard: a server and a page that read run folders, and send commands through them."""
