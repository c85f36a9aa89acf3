"""Work on a whole store or a whole model: check, backup, export, import."""
