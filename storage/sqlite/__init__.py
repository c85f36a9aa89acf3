"""What only SQLite needs."""
