"""The migrations, one file for each revision of the schema."""
