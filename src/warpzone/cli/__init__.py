"""The `warpzone` command: one file for each subcommand, each thin."""
