"""Teaching an agent what it fails at: episodes found by trial, imitated by memory and heads."""
