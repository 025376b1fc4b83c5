"""One self-contained HTML file about one or more runs."""
