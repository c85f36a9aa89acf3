"""Tables, screens and trees for a terminal, with Rich."""
